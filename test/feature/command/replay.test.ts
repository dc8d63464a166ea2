// Tests `check --replay` on recorded decisions: recordings of a real worker, and files of every other kind.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { RecordedDecision, RecordHeader } from '../../../shared/decision-record.ts';
import { runInProcess } from '../../support/command-run.ts';
import { eventually } from '../../support/eventually.ts';
import { createManualClock } from '../../support/manual-clock.ts';
import { testScenarios } from '../../support/scenarios.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';
import { startWorker } from '../../support/worker-in-process.ts';

function createFolder(t: ExecutionContext) {
  const path = createTemporaryFolder(t);
  return {
    path,
    write(name: string, text: string): string {
      writeFileSync(join(path, name), text);
      return join(path, name);
    },
  };
}

const users = (limit: number) =>
  `domain: d\ndescriptors:\n  - {key: user, rate_limit: {unit: minute, requests_per_unit: ${limit}}}\n`;

const startMs = Date.parse('2026-11-24T10:00:00Z');
const header: RecordHeader = {
  decisions: 1,
  time: startMs,
  instance: 'i',
  rate: 1,
  hashed_keys: [],
  settings: {
    week_reset_day: 4,
    calendar_months: false,
    shadow_mode: false,
    quota_mode: false,
    stop_increment_when_over_limit: false,
  },
};

const decisionOf = (user: string): RecordedDecision => ({
  time: startMs,
  domain: 'd',
  descriptors: [{ entries: [{ key: 'user', value: user }] }],
  code: 'OK',
  statuses: [{ code: 'OK', rule: 'd.user' }],
});

/** Without the lines of `check` itself. */
async function replay(args: readonly string[]) {
  const run = await runInProcess(['check', ...args]);
  return { ...run, report: run.out.slice(run.out.indexOf('\n\n') + 2) };
}

test('recorded decisions are reproduced, and the effect of another limit is shown', async (t) => {
  const folder = createFolder(t);
  const path = join(folder.path, 'decisions');
  const clock = createManualClock(startMs);
  const env = { BACKEND_TYPE: 'memory', RECORD_DECISIONS: path, RECORD_DECISIONS_RATE: '1' };
  const rules = users(3);
  const worker = await startWorker(t, { env, rules, clock });
  let refused = 0;
  for (let second = 0; second < 90; second += 5) {
    for (const user of ['ada', 'bob', 'ada', 'ada']) {
      const { status } = await worker.decide(`user=${user}`);
      if (status === 429) refused++;
    }
    clock.advance(5_000);
  }
  // Twelve times in the first minute, six times in the second.
  t.is(refused, 36 - 3 + (18 - 3) + (12 - 3) + (6 - 3));
  const written = () => readFileSync(path, 'utf8').split('\n').length - 1;
  await eventually('everything is written', () => written() === 1 + 18 * 4);
  const same = folder.write('same.yaml', rules);
  const { out } = await runInProcess(['check', same, '--replay', path, '--json']);
  const json = JSON.parse(out).replay;
  t.like(json, { decisions: 72, asRecorded: 72, undecided: 0, rate: 1, values: [] });
  t.like(json.requests, { before: refused, after: refused, newlyLimited: 0, freed: 0 });

  const lower = folder.write('lower.yaml', users(2));
  const { code, report } = await replay([lower, '--replay', path]);
  t.is(code, 0);
  t.is(
    report,
    `72 decisions of 1m25s from 2026-11-24T10:00:00Z, compared with the answers that were recorded
refused: 60 before, 64 after (+4); newly limited 4, freed 0

rule    asked  before  after  change
d.user  72     60      64     +4

value     rule    before  after  change
user=ada  d.user  48      50     +2
user=bob  d.user  12      14     +2
`,
  );
});

// On a stopped clock: on a busy machine, progress messages would be printed.
testScenarios(test, new URL('replay.txt', import.meta.url), (words) =>
  runInProcess(words, { clock: createManualClock(startMs) }),
);

test('more values than are kept, and a million characters in one, stay within bounds', async (t) => {
  const folder = createFolder(t);
  const decisions = Array.from({ length: 120_000 }, (_, user) => decisionOf(`u${user}`));
  const long = decisionOf('x'.repeat(900_000));
  const lines = [header, ...decisions, long].map((record) => JSON.stringify(record));
  const file = folder.write('decisions', `${lines.join('\n')}\n${'x'.repeat(3_000_000)}\n`);
  const { report } = await replay([folder.write('a.yaml', users(0)), '--replay', file]);
  t.regex(report, /^refused: 0 before, 120001 after/m);
  t.regex(report, /^and 99980 more$/m);
  t.regex(report, /^ {2}\S+:120003: it is longer than 1048576 bytes$/m);
  t.regex(report, /^too many values to list: refused for others 0 before, 20001 after$/m);
});
