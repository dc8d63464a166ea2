import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { eventually } from '../support/eventually.ts';
import { logLines } from '../support/worker-messages.ts';
import { spawnWorkerProcess } from '../support/worker-process.ts';

const memory = { BACKEND_TYPE: 'memory' };
const limit = 'rate_limit: {unit: minute, requests_per_unit: 5}';
const head = 'domain: d\ndescriptors:\n  - key: k\n    ';
const goodRules = `${head}${limit}\n`;

const mistakes = [
  {
    text: `${head}rate_limt: {unit: minute, requests_per_unit: 5}`,
    problem: "4:5: unknown key 'rate_limt'",
    path: 'descriptors[0].rate_limt',
    rule: 'unknown-key',
    hint: "did you mean 'rate_limit'?",
  },
  {
    text: 'domain: d\ndescriptors:\n  - key: k\n   rate_limit:\n      unit: minute',
    problem: '4:4: not valid YAML: sequence item without - indicator',
    rule: 'yaml-syntax',
    hint: "'rate_limit' at 4:4 begins at the wrong column: move it to column 5, below 'key' at 3:5",
  },
];

// Proof of migrating.md: A first load that fails is no initial configuration: the gRPC and HTTP ports open
// after the first good one (unless `FORCE_START_WITHOUT_INITIAL_CONFIG`)
test('rules with a mistake are reported with file, line, column and a hint, and open no port until they are corrected', async (t) => {
  const [{ text: first = '' } = {}, ...later] = mistakes;
  const worker = await spawnWorkerProcess(t, { env: memory, rules: { 'a.yaml': `${first}\n` } });
  const file = join(worker.rulesFolder, 'a.yaml');
  const write = (text: string) => writeFile(file, `${text}\n`);
  let listed = 0;
  const nextError = async () => {
    await eventually('the mistake is logged', () => logLines(worker, 'error').length > listed);
    return logLines(worker, 'error')[listed++];
  };
  const lineOf = (problem: string, consequence: string) =>
    `Error loading new configuration: ${file}:${problem}; ` +
    `could not load 1 file from ${worker.rulesFolder} (1 error): ${consequence}`;
  for (const { text, problem, ...others } of mistakes) {
    if (text !== first) await write(text);
    const [line, column] = problem.split(':');
    t.like(await nextError(), {
      message: lineOf(
        problem,
        'there are no rules, and the gRPC and HTTP ports stay closed until this is repaired',
      ),
      fields: { file, line, column, ...others },
    });
    const health = fetch(`http://127.0.0.1:${worker.ports.http}/healthcheck`);
    await t.throwsAsync(health, undefined, 'a worker without rules answers no caller');
    const status = await worker.page('/status');
    t.true(status.includes(`${file}:${line}:${column}: error: `), 'the debug port shows the same');
    t.true(status.includes(`\n    hint: ${others.hint}`), 'the debug port shows the same');
  }
  t.is(later.length, listed - 1, 'each is logged once');

  await write(goodRules);
  const config = 'd.k: unit=MINUTE requests_per_unit=5, shadow_mode: false, quota_mode: false\n';
  await eventually('it serves', async () => (await worker.page('/rlconfig')) === config);
  await write(goodRules.replace('minute', 'mintue'));
  const problem = "4:24: invalid rate limit unit 'mintue'";
  t.is((await nextError())?.message, lineOf(problem, 'the rules loaded before stay in force'));
  t.is(await worker.page('/rlconfig'), config);
});

// Proof of migrating.md: Settings out of range, contradicting or misspelled are reported, all at once
test('wrong settings are reported together, and end the start', async (t) => {
  const env = { ...memory, STATS_FLUSH_INTERVAL: '5', KVSTORE_TIMEOUT: 'fast' };
  const worker = await spawnWorkerProcess(t, { env });
  t.is(await worker.waitForEnd(60_000), 1);
  t.regex(
    worker.output(),
    /KVSTORE_TIMEOUT=.*\n.*STATS_FLUSH_INTERVAL=.*\n.*Not started: 2 settings are wrong; .*worker.* lists all of them"\n$/,
  );
});
