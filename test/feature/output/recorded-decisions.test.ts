// Tests recorded decisions, from requests of callers to the lines of the file.
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import type { RecordedDecision, RecordGap, RecordHeader } from '../../../shared/decision-record.ts';
import { eventually } from '../../support/eventually.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';
import { createWorkerCaller } from '../../support/worker-caller.ts';
import { startWorker } from '../../support/worker-in-process.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

const rules = `
domain: d
descriptors:
  - {key: user, rate_limit: {unit: minute, requests_per_unit: 2}}
  - {key: secret, detailed_metric: true, rate_limit: {unit: minute, requests_per_unit: 2}}
  - {key: free, rate_limit: {unlimited: true}}
  - key: path
    value: /files/*
    share_threshold: true
    rate_limit: {unit: hour, requests_per_unit: 5}
`;
const memory = { BACKEND_TYPE: 'memory' };

type Line = RecordHeader | RecordedDecision | RecordGap;

async function readLines(path: string): Promise<Line[]> {
  const text = await readFile(path, 'utf8').catch(() => '');
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  return whole
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

async function readDecisions(path: string): Promise<RecordedDecision[]> {
  return (await readLines(path)).filter((line) => 'domain' in line);
}

/** Waits until the file contains this many decisions. */
async function recorded(path: string, count: number): Promise<RecordedDecision[]> {
  let found: RecordedDecision[] = [];
  await eventually(`${count} decisions in ${path}`, async () => {
    found = await readDecisions(path);
    return found.length >= count;
  });
  return found;
}

/** Neither a minute nor a second ends during a test. */
const stoppedClock = { ...systemClock, wallMs: () => Date.parse('2026-11-21T12:00:15.250Z') };

const usersOf = (decisions: readonly RecordedDecision[]) =>
  decisions.map(({ descriptors }) => descriptors[0]?.entries[0]?.value ?? '');

test('RECORD_DECISIONS: a line has the request, its answer, and everything that its replay needs', async (t) => {
  const path = join(createTemporaryFolder(t), 'decisions');
  const env = { ...memory, RECORD_DECISIONS: path, RECORD_DECISIONS_RATE: '1' };
  const worker = await startWorker(t, { env, rules, clock: stoppedClock });
  const { http } = await worker.started;
  const ask = async (body: object) => {
    await fetch(`http://${http.text}/json`, { method: 'POST', body: JSON.stringify(body) });
  };
  const entries = (key: string, value: string) => [{ key, value }];
  await ask({
    domain: 'd',
    descriptors: [
      { entries: entries('user', 'ada'), hitsAddend: 3 },
      { entries: entries('free', 'x') },
      { entries: entries('nothing', 'x') },
    ],
  });
  await ask({
    domain: 'd',
    hitsAddend: 2,
    descriptors: [
      { entries: entries('user', 'bob'), isNegativeHits: true },
      { entries: entries('other', 'y'), limit: { requestsPerUnit: 9, unit: 'HOUR' } },
    ],
  });
  const [first, second] = await recorded(path, 2);
  t.deepEqual(first, {
    time: stoppedClock.wallMs(),
    domain: 'd',
    descriptors: [
      { entries: entries('user', 'ada'), hits_addend: 3 },
      { entries: entries('free', 'x') },
      { entries: entries('nothing', 'x') },
    ],
    code: 'OVER_LIMIT',
    statuses: [
      { code: 'OVER_LIMIT', rule: 'd.user', limit: 2, unit: 'minute', remaining: 0, reset: 45 },
      { code: 'OK', rule: 'd.free', unlimited: true },
      { code: 'OK' },
    ],
  });
  t.like(second, {
    hits_addend: 2,
    code: 'OK',
    descriptors: [
      { entries: entries('user', 'bob'), is_negative_hits: true },
      { entries: entries('other', 'y'), limit: { requests_per_unit: 9, unit: 3 } },
    ],
    statuses: [
      { code: 'OK', rule: 'd.user', remaining: 2 },
      { code: 'OK', rule: 'd.other_y', limit: 9, unit: 'hour', remaining: 7 },
    ],
  });
  const [header] = await readLines(path);
  t.like(header, {
    decisions: 1,
    rate: 1,
    hashed_keys: [],
    settings: {
      week_reset_day: 4,
      calendar_months: false,
      shadow_mode: false,
      quota_mode: false,
      stop_increment_when_over_limit: false,
    },
  });
  t.is((await stat(path)).mode & 0o777, 0o600, 'only its owner reads it');
});

test('RECORD_DECISIONS_RATE: a descriptor is recorded with all its requests or none, the same ones on each worker', async (t) => {
  const folder = createTemporaryFolder(t);
  const users = Array.from({ length: 400 }, (_, index) => `user-${index}`);
  const record = async (name: string): Promise<RecordedDecision[]> => {
    const path = join(folder, name);
    const env = { ...memory, RECORD_DECISIONS: path, RECORD_DECISIONS_RATE: '0.1' };
    const worker = await startWorker(t, { env, rules });
    for (const user of [...users, ...users]) await worker.decide(`user=${user}`);
    // All records before a later one are in the file.
    let later = 0;
    await eventually('a later one is recorded', async () => {
      await worker.decide(`nothing=${++later}`);
      return (await readDecisions(path)).some(({ descriptors }) =>
        descriptors.some(({ entries }) => entries[0]?.key === 'nothing'),
      );
    });
    return (await readDecisions(path)).filter(({ statuses }) => statuses?.[0]?.rule === 'd.user');
  };
  const one = usersOf(await record('one'));
  const two = usersOf(await record('two'));
  t.deepEqual(one, two);
  const chosen = new Set(one);
  t.is(one.length, 2 * chosen.size, 'both requests of each');
  t.true(chosen.size > 15 && chosen.size < 80, `${chosen.size} of ${users.length}`);
});

test('descriptors outside of the sample, and those that share a counter with other values, are marked', async (t) => {
  const path = join(createTemporaryFolder(t), 'decisions');
  const env = { ...memory, RECORD_DECISIONS: path, RECORD_DECISIONS_RATE: '0.3' };
  const worker = await startWorker(t, { env, rules });
  for (let index = 0; index < 100; index++) {
    await worker.decide(`user=${index}`, `path=/files/${index}`, 'user=all');
  }
  const decisions = await recorded(path, 30);
  const marks = decisions.map(({ statuses = [] }) => statuses.map(({ sampled }) => sampled));
  t.true(marks.every(([, file]) => file === false));
  const ofAll = new Set(marks.map(([, , all]) => all));
  t.is(ofAll.size, 1, 'a descriptor is in the sample always or never');
  t.true(marks.some(([user]) => user === undefined));
});

test('RECORD_DECISIONS_MAX_PER_SECOND: excess decisions are missing in the file, which reports the gap', async (t) => {
  const path = join(createTemporaryFolder(t), 'decisions');
  const env = {
    ...memory,
    RECORD_DECISIONS: path,
    RECORD_DECISIONS_RATE: '1',
    RECORD_DECISIONS_MAX_PER_SECOND: '5',
  };
  const worker = await startWorker(t, { env, rules, clock: stoppedClock });
  for (let index = 0; index < 8; index++) t.is((await worker.decide(`user=${index}`)).status, 200);
  await eventually('the gap is recorded', async () => {
    const gaps = (await readLines(path)).filter((line) => 'dropped' in line);
    return gaps.reduce((sum, { dropped }) => sum + dropped, 0) === 3;
  });
  t.is((await readDecisions(path)).length, 5);
  t.regex(await worker.page('/stats'), /^ratelimit\.recording\.dropped: 3$/m);
  t.regex(await worker.page('/stats'), /^ratelimit\.recording\.written: 5$/m);
  t.is(worker.log.lines.filter((line) => line.includes('MAX_PER_SECOND=5 a second')).length, 1);
});

test('RECORD_DECISIONS_HASHED_KEYS, RECORD_DECISIONS_HASH_SECRET: values of these keys are nowhere in the file, and distinct ones stay distinct', async (t) => {
  const folder = createTemporaryFolder(t);
  const record = async (name: string, hashKey: string): Promise<string[]> => {
    const path = join(folder, name);
    const env = {
      ...memory,
      RECORD_DECISIONS: path,
      RECORD_DECISIONS_RATE: '1',
      RECORD_DECISIONS_HASHED_KEYS: 'secret',
      RECORD_DECISIONS_HASH_SECRET: hashKey,
    };
    const worker = await startWorker(t, { env, rules });
    for (const value of ['ada.lovelace', 'bob', 'ada.lovelace']) {
      await worker.decide(`secret=${value}`, 'user=plain');
    }
    const decisions = await recorded(path, 3);
    t.notRegex(await readFile(path, 'utf8'), /lovelace|bob|sesame/);
    t.deepEqual(decisions[0]?.descriptors[1]?.entries, [{ key: 'user', value: 'plain' }]);
    t.like((await readLines(path))[0], { hashed_keys: ['secret'] });
    return usersOf(decisions);
  };
  const [ada, bob, again] = await record('one', 'sesame-1');
  t.regex(ada ?? '', /^[0-9a-f]{32}$/);
  t.is(ada, again);
  t.not(ada, bob);
  t.deepEqual(await record('two', 'sesame-1'), [ada, bob, again]);
  t.not((await record('three', 'sesame-2'))[0], ada);
});

test('RECORD_DECISIONS_FILE_SIZE_IN_BYTES, RECORD_DECISIONS_FILES: a full file is rotated, and this many are kept', async (t) => {
  const folder = createTemporaryFolder(t);
  const path = join(folder, 'decisions');
  const maxBytes = 4 * 1024 * 1024;
  const env = {
    ...memory,
    RECORD_DECISIONS: path,
    RECORD_DECISIONS_RATE: '1',
    RECORD_DECISIONS_FILE_SIZE_IN_BYTES: `${maxBytes}`,
    RECORD_DECISIONS_FILES: '2',
  };
  const worker = await startWorker(t, { env, rules });
  const value = 'x'.repeat(60_000);
  for (let index = 0; index < 220; index++) await worker.decide(`nothing=${value}${index}`);
  await eventually('three files were filled', async () => {
    const last = (await readDecisions(path)).at(-1);
    return last?.descriptors[0]?.entries[0]?.value === `${value}219`;
  });
  t.deepEqual((await readdir(folder)).sort(), ['decisions', 'decisions.1']);
  for (const name of ['decisions', 'decisions.1']) {
    t.true((await stat(join(folder, name))).size <= maxBytes);
    const [header, ...others] = await readLines(join(folder, name));
    t.true(header !== undefined && 'decisions' in header);
    t.true(others.every((line) => 'domain' in line));
  }
});

test('while the disk is full decisions continue, and it is logged once', async (t) => {
  const env = { ...memory, RECORD_DECISIONS: '/dev/full', RECORD_DECISIONS_RATE: '1' };
  const worker = await startWorker(t, { env, rules, clock: stoppedClock });
  await worker.decide('user=ada');
  const isReported = (line: string) => line.includes('Decisions are not recorded in /dev/full');
  await eventually('the failure is logged', () => worker.log.lines.some(isReported));
  await worker.decide('user=ada');
  t.is((await worker.decide('user=ada')).status, 429);
  await eventually('they are counted', async () =>
    /^ratelimit\.recording\.dropped: [1-9]/m.test(await worker.page('/stats')),
  );
  t.is(worker.log.lines.filter(isReported).length, 1);
  t.regex(worker.log.lines.find(isReported) ?? '', /ENOSPC.*decisions are not affected/);
});

test('the processes of a worker record in one file', async (t) => {
  const redis = await startRedisServer(t);
  const path = join(createTemporaryFolder(t), 'decisions');
  const worker = await startWorkerProcess(t, {
    rules: { 'a.yaml': rules },
    env: {
      KVSTORE_URL: redis.url,
      WORKER_PROCESSES: '2',
      RECORD_DECISIONS: path,
      RECORD_DECISIONS_RATE: '1',
    },
  });
  for (let caller = 0; caller < 8; caller++) {
    const { decide } = createWorkerCaller(t, worker);
    for (let index = 0; index < 5; index++)
      t.is(await decide('d', 'user', `${caller}-${index}`), 'OK');
  }
  await worker.stop();
  const decisions = await readDecisions(path);
  t.is(new Set(usersOf(decisions)).size, 40);
  t.is((await readLines(path)).length, 41);
});
