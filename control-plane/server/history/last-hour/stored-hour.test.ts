import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { createManualClock, type ManualClock } from '../../../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../../../test/support/recorded-log.ts';
import { createRulesFolder } from '../../../../test/support/rules-folder.ts';
import { TrafficHistory } from '../../fleet/traffic-history.ts';
import { createMarks } from './marks.ts';
import { openStoredHour } from './stored-hour.ts';

const slotMs = 5_000;

function setUp(stateDirectory: string, clock: ManualClock, store = '/rules') {
  const log = createRecordedLog();
  const history = new TrafficHistory(clock);
  const marks = createMarks(clock);
  const stored = openStoredHour({
    stateDirectory,
    store,
    history,
    marks,
    readInForce: () => 'a1',
    log,
    clock,
  });
  const report = (slots: number) => {
    for (let index = 0; index < slots; index++) {
      clock.advance(slotMs);
      history.add({ decisions: 10, overLimit: 1 / 3, errors: 0 }, 5);
    }
  };
  return { log, history, marks, stored, report };
}

function toFile(t: ExecutionContext) {
  const folder = createRulesFolder(t).path;
  return { folder, file: join(folder, 'last-hour.json') };
}

test('slots known before a restart are known after it, and the time in between is unknown', async (t) => {
  const { folder } = toFile(t);
  const clock = createManualClock();
  const first = setUp(folder, clock);
  first.report(12);
  first.marks.note({ kind: 'in_force', revision: 'a1', text: 'Revision a1 is in force' });
  const before = first.history.read();
  await first.stored.stop();
  clock.advance(120_000);
  const second = setUp(folder, clock);
  t.is(await second.stored.read(), 'a1');
  t.deepEqual(second.marks.read(), first.marks.read());
  second.report(4);
  const slots = second.history.read();
  t.deepEqual(
    slots
      .slice(0, before.length)
      .map(({ atMs, decisions, overLimit }) => [atMs, decisions, overLimit]),
    before.map(({ atMs }) => [atMs, 10, 0.333]),
  );
  t.is(slots.length, before.length + 3);
  t.true((slots[before.length]?.atMs ?? 0) - (before.at(-1)?.atMs ?? 0) >= 120_000);
  t.deepEqual(second.log.lines, []);
  clock.advance(3_600_000);
  const third = setUp(folder, clock);
  await third.stored.read();
  t.deepEqual([third.history.read(), third.marks.read()], [[], []]);
});

test('the hour is written every half minute if it has changed, and never when it is empty', async (t) => {
  const { folder, file } = toFile(t);
  const clock = createManualClock();
  const { stored, report } = setUp(folder, clock);
  stored.start();
  clock.advance(30_000);
  await stored.stop();
  t.false(existsSync(file));
  stored.start();
  report(5);
  t.false(existsSync(file));
  report(1);
  await stored.stop();
  t.true(existsSync(file));
  const { mtimeMs, ino } = statSync(file);
  await stored.stop();
  t.like(statSync(file), { mtimeMs, ino });
});

test('an hour with the most marks takes less than a third of the limit, and can be read again', async (t) => {
  const { folder, file } = toFile(t);
  const clock = createManualClock();
  const { stored, report, marks, history } = setUp(folder, clock);
  report(800);
  for (let index = 0; index < 450; index++)
    marks.note({ kind: 'reset', revision: undefined, text: 'é'.repeat(1_000) });
  await stored.stop();
  t.true(statSync(file).size < 333_000, `${statSync(file).size} bytes`);
  const again = setUp(folder, clock);
  await again.stored.read();
  t.is(again.history.read().length, history.read().length);
  t.is(again.marks.read().length, 400);
});

test('a file that is damaged, too large or of another store is logged, set aside and ignored', async (t) => {
  const { folder, file } = toFile(t);
  const clock = createManualClock();
  const first = setUp(folder, clock);
  first.report(6);
  await first.stored.stop();
  const good = readFileSync(file, 'utf8');
  const cases: readonly (readonly [text: string, problem: RegExp])[] = [
    [good.slice(0, -20), /JSON/],
    ['{}', /it is not the last hour of charts/],
    [good.replace('"format":1', '"format":2'), /it is of a newer version \(format 2\)/],
    [good.replace('10,0.333', '-10,0.333'), /it is not the last hour of charts/],
    [good.replace('/rules', '/others'), /it is of another store, \/others/],
    [good.padEnd(1_000_001), /it is too large/],
  ];
  for (const [text, problem] of cases) {
    writeFileSync(file, text);
    const { stored, history, log } = setUp(folder, clock);
    t.is(await stored.read(), undefined);
    t.deepEqual(history.read(), []);
    t.is(log.lines.length, 1);
    t.regex(log.lines[0] ?? '', problem);
    t.regex(
      log.lines[0] ?? '',
      /^warning .*last-hour\.json cannot be read \(.*\): the charts start empty(?:; it is kept as .*)?$/,
    );
    const isOfOthers = text.includes('/others');
    t.is(readFileSync(isOfOthers ? file : `${file}.unreadable`, 'utf8'), text);
  }
});

test('a state directory that cannot be written is reported once', async (t) => {
  const { file } = toFile(t);
  writeFileSync(file, '');
  const { stored, report, log } = setUp(file, createManualClock());
  for (let times = 0; times < 2; times++) {
    report(6);
    await stored.stop();
  }
  t.is(log.lines.length, 1);
  t.regex(log.lines[0] ?? '', /cannot be written \(.*\): after a restart the charts start empty$/);
});
