// Recorded decisions replayed by `check --replay`: what a real worker recorded, and files of every other kind.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { RecordedDecision, RecordHeader } from '../../../shared/decision-record.ts';
import { runInProcess } from '../../support/command-run.ts';
import { eventually } from '../../support/eventually.ts';
import { createManualClock } from '../../support/manual-clock.ts';
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

function decisionOf(
  user: string,
  second: number,
  code: 'OK' | 'OVER_LIMIT' = 'OK',
): RecordedDecision {
  return {
    time: startMs + second * 1000,
    domain: 'd',
    descriptors: [{ entries: [{ key: 'user', value: user }] }],
    code,
    statuses: [{ code, rule: 'd.user' }],
  };
}

const toLines = (...records: readonly object[]) =>
  records.map((record) => `${JSON.stringify(record)}\n`).join('');

/** Without the lines of `check` itself. */
async function replay(args: readonly string[]) {
  const run = await runInProcess(['check', ...args]);
  return { ...run, report: run.out.slice(run.out.indexOf('\n\n') + 2) };
}

test('what a worker recorded is decided again as it was, and shows what another limit would do', async (t) => {
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

test('a file with other lines is read for what it has, and each other line is numbered', async (t) => {
  const folder = createFolder(t);
  const file = folder.write(
    'decisions',
    [
      toLines(header, decisionOf('ada', 0)),
      'oops\n\n{"domain":"d"}\n[1]\n{"a":1}\n{"time":1,"dom\n',
      toLines(decisionOf('ada', 1), { dropped: 12, from: startMs, time: startMs + 500 }),
      toLines({ ...decisionOf('ada', 2), code: 'ERROR', statuses: undefined }),
      `${'x'.repeat(3_000_000)}\n`,
      toLines({ decisions: 2 }, decisionOf('ada', 3), header, decisionOf('ada', 4)),
      JSON.stringify(decisionOf('ada', 5)).slice(0, -9),
    ].join(''),
  );
  const rules = folder.write('rules.yaml', users(2));
  const { code, report } = await replay([rules, '--replay', file]);
  t.is(code, 0);
  t.is(
    report.replaceAll(folder.path, ''),
    `3 decisions of 4s from 2026-11-24T10:00:00Z, compared with the answers that were recorded
refused: 0 before, 1 after (+1); newly limited 1, freed 0

rule    asked  before  after  change
d.user  3      0       1      +1

value     rule    before  after  change
user=ada  d.user  0       1      +1

the recording lacks 12 decisions, first from 2026-11-24T10:00:00Z: counters of these times are too low
left out as the store had failed: 1 decision
left out: 10 lines that are no record
  /decisions:3: it is not JSON
  /decisions:4: it is not JSON
  /decisions:5: it is a decision without its members
  /decisions:6: it is neither a header, nor a decision, nor a gap
  /decisions:7: it is neither a header, nor a decision, nor a gap
  /decisions:8: it is cut, or not JSON
  /decisions:12: it is longer than 1048576 bytes
  /decisions:13: version 2 of the format is not known
  /decisions:14: it follows the header of another version
  /decisions:17: it is cut, or not JSON
`,
  );
});

test('files of several workers are one traffic, in the order of time', async (t) => {
  const folder = createFolder(t);
  const one = folder.write('one', toLines(header, decisionOf('ada', 0), decisionOf('ada', 59)));
  const two = folder.write(
    'two',
    toLines(header, decisionOf('ada', 30), decisionOf('ada', 61), decisionOf('ada', 62)),
  );
  const rules = folder.write('rules.yaml', users(2));
  const { report } = await replay([rules, '--replay', one, '--replay', two]);
  t.regex(report, /^5 decisions of 1m2s from/);
  t.regex(report, /^refused: 0 before, 1 after/m);
});

test('two sets of rules are compared with each other', async (t) => {
  const folder = createFolder(t);
  const decisions = Array.from({ length: 10 }, (_, second) => decisionOf('ada', second));
  const file = folder.write('decisions', toLines(header, ...decisions));
  const [rules, other] = [folder.write('a.yaml', users(8)), folder.write('b.yaml', users(3))];
  const { report } = await replay([rules, '--replay', file, '--against', other]);
  t.is(
    report.replaceAll(folder.path, ''),
    `10 decisions of 9s from 2026-11-24T10:00:00Z, compared with /b.yaml
refused: 7 before, 2 after (-5); newly limited 0, freed 5

rule    asked  before  after  change
d.user  10     7       2      -5

value     rule    before  after  change
user=ada  d.user  7       2      -5

under the other rules 3 of 10 answers are as recorded
`,
  );
});

test('a descriptor that only came along keeps its recorded answer', async (t) => {
  const folder = createFolder(t);
  const [one] = decisionOf('ada', 0).descriptors;
  const [other] = decisionOf('bob', 0).descriptors;
  const both: RecordedDecision = {
    ...decisionOf('ada', 0),
    descriptors: [one ?? { entries: [] }, other ?? { entries: [] }],
    code: 'OVER_LIMIT',
    statuses: [{ code: 'OK' }, { code: 'OVER_LIMIT', sampled: false }],
  };
  const file = folder.write('decisions', toLines({ ...header, rate: 0.01 }, both, both));
  const { report } = await replay([folder.write('a.yaml', users(1)), '--replay', file]);
  t.regex(report, /^refused: 2 before, 2 after \(0\); newly limited 0, freed 0$/m);
  t.regex(report, /^user=ada +d\.user +0 +1 +\+1$/m);
  t.notRegex(report, /bob/);
  t.regex(report, /^the recording has 1 % of all descriptors: times 100 for all traffic$/m);
});

test('rules that name values which are hashed are told', async (t) => {
  const folder = createFolder(t);
  const file = folder.write(
    'decisions',
    toLines({ ...header, hashed_keys: ['user'] }, decisionOf('0f', 0)),
  );
  const rules = folder.write(
    'a.yaml',
    `${users(1)}  - {key: user, value: ada, rate_limit: {unlimited: true}}\n`,
  );
  const { report } = await replay([rules, '--replay', file]);
  t.regex(report, /^values are hashed that 1 rule names, so it matches nothing: d\.user_ada$/m);
});

test('with --strict a value that is newly limited fails', async (t) => {
  const folder = createFolder(t);
  const file = folder.write('decisions', toLines(header, decisionOf('a', 0), decisionOf('a', 1)));
  const args = (limit: number) => [
    folder.write(`${limit}.yaml`, users(limit)),
    ...['--replay', file, '--strict'],
  ];
  t.is((await replay(args(2))).code, 0);
  t.is((await replay(args(1))).code, 1);
});

test('a file without decisions is an input that cannot be used, and rules with errors replay nothing', async (t) => {
  const folder = createFolder(t);
  const rules = folder.write('a.yaml', users(1));
  const none = await runInProcess(['check', rules, '--replay', rules]);
  t.is(none.code, 2);
  t.regex(
    none.err,
    /^error: --replay: there is no recorded decision; line 1 of '\S+' is left out: it is not JSON\n$/m,
  );
  const missing = await runInProcess(['check', rules, '--replay', join(folder.path, 'not-there')]);
  t.is(missing.code, 2);
  t.regex(missing.err, /^error: --replay '\S+' cannot be read: it does not exist/);
  const file = folder.write('decisions', toLines(header, decisionOf('a', 0)));
  const bad = folder.write('bad.yaml', 'domain: d\ndescriptors: [{}]\n');
  const wrong = await runInProcess(['check', bad, '--replay', file]);
  t.is(wrong.code, 1);
  t.notRegex(wrong.out, /decision/);
  const against = await runInProcess(['check', rules, '--replay', file, '--against', bad]);
  t.is(against.code, 2);
  t.regex(against.err, /^error: --against '\S+' has errors:\n/);
  t.is((await runInProcess(['check', rules, '--against', rules])).code, 2);
  t.is((await runInProcess(['check', rules, '--replay', file, '--format', 'sarif'])).code, 2);
});

test('more values than are kept, and a million characters in one, stay within bounds', async (t) => {
  const folder = createFolder(t);
  const decisions = Array.from({ length: 120_000 }, (_, user) => decisionOf(`u${user}`, 0));
  const long = decisionOf('x'.repeat(900_000), 0);
  const file = folder.write('decisions', toLines(header, ...decisions, long));
  const { report } = await replay([folder.write('a.yaml', users(0)), '--replay', file]);
  t.regex(report, /^refused: 0 before, 120001 after/m);
  t.regex(report, /^and 99980 more$/m);
  t.regex(report, /^too many values to list: refused for others 0 before, 20001 after$/m);
});
