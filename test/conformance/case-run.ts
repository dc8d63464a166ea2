// Runs one case: waits for a good moment, performs the steps in order, and compares. Ends at the first step with a
// difference.
import { setTimeout as sleep } from 'node:timers/promises';
import { errorText } from '../../shared/errors.ts';
import { waitUntil } from '../support/wait-until.ts';
import {
  type Case,
  changesFiles,
  domainsOf,
  type Json,
  type Step,
  usesMemcached,
} from './case-file.ts';
import { compare, fillWindowStarts, waitForRoomMs, withoutDefaults } from './comparison.ts';
import { actions, counterIncreases, questions, reads, type Scene } from './observations.ts';
import type { WorkerUnderTest } from './worker-under-test.ts';

const readTimeoutMs = 60_000;
/** After a match: late statistics would be wrong too. */
const lateStatsMs = 150;
/** How long service-wide counters must be unchanged before a case reads them. */
const quietMs = 600;
const retryPauseMs = 300;
/** How long the worker may take to notice changed files. */
const reloadMs = 250;

/** Every difference, human-readable; none when the case passes. */
export async function runCase(worker: WorkerUnderTest, one: Case): Promise<string[]> {
  const configBefore = changesFiles(one) ? await readConfig(worker) : undefined;
  let problems = await attempt(worker, one);
  for (let retry = 0; retry < (one.retries ?? 0) && problems.length > 0; retry += 1) {
    await sleep(retryPauseMs);
    await forgetCounters(worker, one);
    problems = await attempt(worker, one);
  }
  if (one.alone !== true && worker.restoreFiles()) {
    await sleep(reloadMs);
    await waitUntil(async () => (await readConfig(worker)) === configBefore, readTimeoutMs);
  }
  return problems;
}

/** A start that must fail. */
export async function runStartFailure(worker: WorkerUnderTest, one: Case): Promise<string[]> {
  const ending = await worker.process.waitForEnd((one.within ?? 60) * 1000);
  if (ending === undefined)
    return ['the worker is still running; it should have ended with an error'];
  if (ending === 0) return ['the worker ended with exit code 0; an error was expected'];
  // A defect of ours must not be mistaken for a rejection of the settings.
  return /^\s+at /m.test(worker.process.output())
    ? [`the worker shows a stack: ${worker.process.output()}`]
    : [];
}

async function attempt(worker: WorkerUnderTest, one: Case): Promise<string[]> {
  const text = JSON.stringify([one.config, one.steps]);
  await sleep(waitForRoomMs(text, Date.now(), one.minute_room ?? 5));
  await waitForQuiet(worker, one);
  const scene: Scene = { worker, one, before: new Map(worker.statsd.totals) };
  for (const [index, step] of one.steps.entries()) {
    const problems = await runStep(scene, step).catch((error) => [errorText(error)]);
    if (problems.length > 0) {
      return problems.map((problem) => `step ${index + 1} (${kindOf(step)}): ${problem}`);
    }
  }
  return [];
}

async function runStep(scene: Scene, step: Step): Promise<string[]> {
  const kind = kindOf(step);
  if (isKey(actions, kind)) {
    await actions[kind](scene, step);
    return [];
  }
  const isRead = isKey(reads, kind);
  const observe = isRead ? reads[kind] : questions[kind];
  const observeAll = async (): Promise<Json> => {
    if (step.repeat === undefined) return (await observe(scene, step)) ?? null;
    const seen: Json[] = [];
    for (let count = 0; count < step.repeat; count += 1)
      seen.push((await observe(scene, step)) ?? null);
    return seen;
  };
  const check = async (): Promise<string[]> =>
    compareStep(step, kind, step.expect ?? null, await observeAll());

  if (!isRead && step.eventually !== true) return check();
  const settleMs = (step.settle ?? 0) * 1000;
  if (step.eventually !== true) await sleep(settleMs);
  let problems: string[] = [];
  const holds = async (): Promise<boolean> => {
    problems = await check();
    return problems.length === 0;
  };
  await waitUntil(holds, Math.max(readTimeoutMs, settleMs + 3000), 30);
  if (problems.length === 0 && (kind === 'stats' || kind === 'wire')) {
    await sleep(lateStatsMs);
    await holds();
  }
  return problems;
}

function compareStep(step: Step, kind: string, expected: Json, actual: Json): string[] {
  if (step.at_least === true) {
    const [least, got] = [expected, actual] as Record<string, number>[];
    return Object.entries(least ?? {})
      .filter(([name, value]) => (got?.[name] ?? 0) < value)
      .map(([name, value]) => `${name}: expected at least ${value}, got ${got?.[name] ?? 0}`);
  }
  if (step.subset === true) {
    const wanted = expected as Record<string, Json>;
    const seen = Object.entries(actual as Record<string, Json>);
    return compare(expected, Object.fromEntries(seen.filter(([name]) => name in wanted)));
  }
  if (kind === 'redis') {
    const rows = expected as { key: string }[];
    const filled = rows.map((row) => ({ ...row, key: fillWindowStarts(row.key, Date.now()) }));
    return compare(filled, actual);
  }
  return compare(withoutMessageDefaults(expected), actual);
}

/** A case may also spell out defaults in an expected message. */
function withoutMessageDefaults(expected: Json): Json {
  if (Array.isArray(expected)) return expected.map(withoutMessageDefaults);
  if (typeof expected !== 'object' || expected === null) return expected;
  return Object.fromEntries(
    Object.entries(expected).map(([name, value]) => [
      name,
      name === 'body' || name === 'message' ? withoutDefaults(value) : value,
    ]),
  );
}

function kindOf(step: Step): keyof typeof actions | keyof typeof questions | keyof typeof reads {
  for (const table of [actions, questions, reads]) {
    for (const kind of Object.keys(table)) if (kind in step) return kind as keyof typeof actions;
  }
  throw new Error(`no known kind of step among ${Object.keys(step).join(', ')}`);
}

function isKey<T extends object>(table: T, key: PropertyKey): key is keyof T {
  return key in table;
}

/** Earlier hits may not have reached the service-wide counters yet. */
async function waitForQuiet(worker: WorkerUnderTest, one: Case): Promise<void> {
  const prefixes = one.steps.flatMap((step) => step.stats ?? []);
  const wide = prefixes.filter((prefix) => prefix.startsWith('ratelimit'));
  if (wide.length === 0) return;
  let last = '';
  let sinceMs = performance.now();
  await waitUntil(() => {
    const now = JSON.stringify(counterIncreases({ worker, before: new Map() }, wide));
    if (now !== last) {
      last = now;
      sinceMs = performance.now();
    }
    return performance.now() - sinceMs >= quietMs;
  }, readTimeoutMs);
}

async function forgetCounters(worker: WorkerUnderTest, one: Case): Promise<void> {
  if (usesMemcached(one)) {
    await (await worker.memcached()).flush();
    return;
  }
  const redis = await worker.redis('redis');
  for (const domain of domainsOf(one)) {
    for (const key of (await redis.command('KEYS', `*${domain}_*`)) as string[]) {
      await redis.command('DEL', key);
    }
  }
}

async function readConfig(worker: WorkerUnderTest): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${worker.process.ports.debug}/rlconfig`, {
    signal: AbortSignal.timeout(readTimeoutMs),
  });
  return answer.text();
}
