import { setImmediate } from 'node:timers/promises';
import test from 'ava';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../../test/support/recorded-log.ts';
import { parseWorkerSettings } from '../../settings.ts';
import { awaitFirstConnection, type StartupOptions } from './first-connection.ts';

/** The waits, in seconds, of a start whose first `count` attempts fail. */
async function collectWaits(
  count: number,
  random: () => number,
  startup = { initialIntervalMs: 1_000, maxIntervalMs: 30_000, maxElapsedMs: 0 },
): Promise<string[]> {
  const lines = await collectLines(count, random, startup, 'refused');
  return lines.flatMap((line) => /next attempt in (\S+) s/.exec(line)?.[1] ?? []);
}

async function collectLines(
  count: number,
  random: () => number,
  startup: StartupOptions,
  failure: string,
): Promise<readonly string[]> {
  const clock = createManualClock();
  const log = createRecordedLog();
  let attempts = 0;
  const connected = awaitFirstConnection(
    {
      name: 'key-value store h:1',
      addressSetting: 'REDIS_PERSECOND_URL',
      describeRemedy: () => undefined,
      startup,
      tryToConnect: () =>
        ++attempts > count ? Promise.resolve() : Promise.reject(new Error(failure)),
      clock,
      random,
      log,
    },
    new AbortController().signal,
  );
  for (let attempt = 0; attempt < count; attempt++) {
    // By then a due attempt has failed, and the next wait has begun.
    await setImmediate();
    clock.advance(startup.maxIntervalMs);
  }
  await connected;
  return log.lines;
}

test('the first wait is as configured, and later ones vary up to twice the longest before', async (t) => {
  const halfway = () => 0.5;
  t.deepEqual(await collectWaits(7, halfway), ['1', '1.5', '2.5', '4.5', '8.5', '15.5', '15.5']);
});

test('no wait is shorter than the first', async (t) => {
  t.deepEqual(await collectWaits(4, () => 0), ['1', '1', '1', '1']);
});

test('a wait is a whole number of milliseconds', async (t) => {
  t.deepEqual(await collectWaits(3, () => 1 / 3), ['1', '1.333', '2']);
});

// Proof of migrating.md: `KVSTORE_STARTUP_MAX_INTERVAL` is 1.5s unless it is set, so that a worker serves soon
// after its store is there
test('by default a start detects within 1.5 s that the store can be reached', async (t) => {
  const result = parseWorkerSettings({ KVSTORE_URL: 'h:1' });
  if (!result.ok) return t.fail(result.problems.join());
  const waits = await collectWaits(20, () => 0.999, result.settings.bothStores.startup);
  t.is(waits.length, 20);
  t.true(Math.max(...waits.map(Number)) <= 1.5);
});
