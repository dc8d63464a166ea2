import test from 'ava';
import { createManualClock } from '../test/support/manual-clock.ts';
import { createRepeatedLog, type RepeatedLogDeps } from './repeated-log.ts';

function setUp(again?: RepeatedLogDeps['again']) {
  const clock = createManualClock();
  const lines: string[] = [];
  const write = (text: string) => lines.push(text);
  const log = createRepeatedLog({ clock, write, intervalMs: 5_000, ...(again && { again }) });
  return { clock, lines, log };
}

test('the first report is logged at once, later ones once per interval with their number', (t) => {
  const { clock, lines, log } = setUp();
  log.report('gone');
  for (let times = 0; times < 99; times++) {
    clock.advance(100);
    log.report('gone');
  }
  t.deepEqual(lines, ['gone', 'gone (and 49 more like it)']);
  t.is(clock.pending, 0);
});

test('a recovery is logged with its duration, once, and only where the outage was logged', (t) => {
  const { clock, log } = setUp();
  t.is(log.recover(), undefined);
  log.report('gone');
  clock.advance(1_500);
  log.report('gone');
  t.deepEqual(log.recover(), { seconds: 1.5, times: 2 });
  t.is(log.recover(), undefined);
});

for (const again of ['when-reported', 'when-changed'] as const) {
  test(`a matter that starts and ends often logs each of the two at most once per interval (${again})`, (t) => {
    const { clock, lines, log } = setUp(again);
    let recoveries = 0;
    for (let times = 0; times < 40; times++) {
      log.report('gone');
      if (log.recover()) recoveries++;
      clock.advance(200);
    }
    t.is(lines.length, 2);
    t.is(recoveries, 2);
  });
}

test('matters of different keys do not delay each other', (t) => {
  const { lines, log } = setUp();
  log.report('a is gone', 'a');
  log.report('b is gone', 'b');
  log.report('a is gone', 'a');
  t.deepEqual(lines, ['a is gone', 'b is gone']);
  t.is(log.recover('a')?.times, 2);
  t.is(log.recover('b')?.times, 1);
});

test('a line for changes is not logged again while the state is the same', (t) => {
  const { clock, lines, log } = setUp('when-changed');
  for (let times = 0; times < 5; times++) {
    log.report('refused');
    clock.advance(100_000);
  }
  log.report('timed out');
  log.report('refused');
  t.deepEqual(lines, ['refused', 'timed out']);
  t.is(log.recover()?.times, 7);
});

test('in-time: repetitions are logged when the interval ends, with the latest text', (t) => {
  const { clock, lines, log } = setUp('in-time');
  for (let times = 0; times < 100; times++) log.report(`refusal ${times}`, 'refusal');
  log.report('alone', 'other');
  t.deepEqual(lines.splice(0), ['refusal 0', 'alone']);
  clock.advance(5_000);
  t.deepEqual(lines.splice(0), ['refusal 99 (and 98 more like it)']);
  log.report('refusal 100', 'refusal');
  t.deepEqual(lines, []);
  clock.advance(5_000);
  t.deepEqual(lines.splice(0), ['refusal 100']);
});

test('in-time: a matter that has stopped is new again, and no timer is left', (t) => {
  const { clock, lines, log } = setUp('in-time');
  log.report('a');
  clock.advance(25_000);
  t.is(clock.pending, 0);
  log.report('a');
  t.deepEqual(lines, ['a', 'a']);
});

test('the number of keys is bounded', (t) => {
  const { clock, lines, log } = setUp('in-time');
  for (let times = 0; times < 1000; times++) log.report(`text ${times}`, `key ${times}`);
  t.is(lines.length, 33);
  clock.advance(5_000);
  t.is(lines.at(-1), 'text 999 (and 966 more like it)');
  t.is(lines.length, 34);
});

for (const again of ['when-reported', 'when-changed'] as const) {
  test(`outages that are over leave room for those of others (${again})`, (t) => {
    const { clock, lines, log } = setUp(again);
    for (let server = 1; server <= 100; server++) {
      log.report(`server ${server} is away`, `${server}`);
      clock.advance(5_000);
      t.is(log.recover(`${server}`)?.times, 1);
    }
    t.is(lines.length, 100);
  });

  test(`more than 32 outages within one interval are logged as one (${again})`, (t) => {
    const { lines, log } = setUp(again);
    for (let server = 1; server <= 100; server++) {
      log.report(`server ${server} is away`, `${server}`);
      log.recover(`${server}`);
    }
    t.is(lines.length, 33);
  });
}

test('a flush logs the counted reports', (t) => {
  const { clock, lines, log } = setUp('in-time');
  log.report('a');
  log.report('b');
  log.report('c', 'other');
  log.flush();
  t.deepEqual(lines, ['a', 'c', 'b']);
  t.is(clock.pending, 0);
});
