// Tests how a pool of connections to one server ends and retries; its other behaviour is in the store contract.
import test from 'ava';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../../test/support/recorded-log.ts';
import { startRedisServer } from '../../../test/support/redis-server.ts';
import { createStubMetrics } from '../../../test/support/stub-metrics.ts';
import type { ServerBreaker } from '../failure/outages.ts';
import { createOutages } from '../failure/outages.ts';
import { createKnownExpiries } from '../known-expiries.ts';
import { type RawReply, toCommandText } from './connection.ts';
import { openConnection } from './connection-opening.ts';
import { createConnectionTotals } from './connection-totals.ts';
import { createRedisPool, type RedisPoolDeps } from './redis-pool.ts';

function createPool(open: RedisPoolDeps['open'], clock: Clock) {
  const log = createRecordedLog();
  const metrics = createStubMetrics();
  const outages = createOutages({ metricPrefix: 'p', metrics, clock, onOver: () => {} });
  const breakers: ServerBreaker[] = [];
  const healths: boolean[] = [];
  const totals = createConnectionTotals({
    clock,
    connections: {
      active: metrics.gauge('active'),
      total: metrics.counter('total'),
      localClose: metrics.counter('localClose'),
    },
    onHealthChange: (isHealthy) => healths.push(isHealthy),
  });
  const pool = createRedisPool(
    {
      size: 1,
      onEmpty: { behavior: 'wait', waitMs: 0 },
      closeOnReadonlyError: false,
      describeRemedy: () => 'start it',
      timeoutMs: 10_000,
      pipelineWindowMs: 0,
      jitterMaxSeconds: 0,
      failureMode: 'error',
    },
    {
      name: 'store',
      addressSetting: 'REDIS_URL',
      open,
      knownExpiries: createKnownExpiries(),
      totals,
      outages: {
        ...outages,
        addServer(...args) {
          const breaker = outages.addServer(...args);
          breakers.push(breaker);
          return breaker;
        },
      },
      clock,
      log,
    },
  );
  const counts = () =>
    ['active', 'total', 'localClose'].map((name) => metrics.snapshot().get(name));
  return { pool, log, totals, counts, healths, outages, breaker: breakers[0] as ServerBreaker };
}

const tick = () => new Promise((resolve) => setImmediate(resolve));

test('commands that another server sent here are answered before the pool ends', async (t) => {
  const redis = await startRedisServer(t);
  const { pool } = createPool(
    (signal) =>
      openConnection(
        {
          address: { kind: 'tcp', host: '127.0.0.1', port: redis.port ?? 0 },
          database: 0,
          readCredentials: async () => undefined,
          tls: undefined,
          timeoutMs: 10_000,
          callDuration: undefined,
          clock: systemClock,
        },
        signal,
      ),
    systemClock,
  );
  t.teardown(() => pool.close());
  await pool.tryToOpen(AbortSignal.timeout(60_000));
  const answered = new Promise<RawReply[]>((resolve) => {
    // The server answers when an item is added to the list.
    pool.sendCommands([toCommandText('BLPOP', 'list', 0)], resolve);
  });
  const ended = pool.drain(10_000).then(() => pool.close());
  await redis.command('RPUSH', 'list', 'value');
  t.deepEqual(await answered, [['list', 'value']]);
  await ended;
});

test('a server that falls silent is tried at once, and with a pause after a failed trial', async (t) => {
  const clock = createManualClock(0);
  let attempts = 0;
  const open = async () => {
    attempts++;
    return {
      send: () => {},
      ask: async () => 1,
      destroy: () => {},
      ended: new Promise<string>(() => {}),
    };
  };
  const { pool, totals, counts, healths, breaker } = createPool(open, clock);
  clock.advance(1_000);
  pool.stayOpen();
  await tick();
  t.deepEqual([attempts, totals.since.getTime()], [1, 1_000]);
  t.deepEqual(counts(), [1, 1, undefined]);
  breaker.openOnTimeout('silent');
  await tick();
  t.deepEqual([attempts, breaker.state], [2, 'half-open']);
  t.deepEqual(counts(), [1, 2, 1]);
  breaker.open('silent again');
  clock.advance(249);
  await tick();
  t.deepEqual([attempts, pool.active, totals.since.getTime()], [2, 0, 1_000]);
  t.deepEqual(counts(), [0, 2, 2]);
  clock.advance(1);
  await tick();
  t.deepEqual([attempts, pool.active, totals.since.getTime()], [3, 1, 1_250]);
  t.deepEqual(healths, [true, false, true, false, true]);
  totals.close();
  pool.close();
  t.deepEqual(counts(), [0, 3, 3]);
  t.is(healths.length, 5, 'what ends with the worker is no outage');
  const late = new Promise((resolve) => pool.sendCommands(['PING'], resolve));
  t.deepEqual(await late, [new Error('the connection was closed')]);
});

test('an unreachable server is logged at once, and then every 30 seconds', async (t) => {
  const clock = createManualClock(0);
  const open = () => Promise.reject(new Error('connect ECONNREFUSED'));
  const { pool, log, outages, breaker } = createPool(open, clock);
  const linesAfter = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      clock.advance(1_000);
      await tick();
    }
    return log.lines.filter((line) => line.includes('ECONNREFUSED')).length;
  };
  pool.stayOpen();
  await tick();
  t.deepEqual([await linesAfter(0), await linesAfter(28), await linesAfter(30)], [1, 1, 2]);
  t.regex(
    log.lines[0] ?? '',
    /^error .+: connect ECONNREFUSED; start it; retrying until it answers; decisions follow KVSTORE_FAILURE_MODE=error$/,
  );
  t.is(breaker.refusal?.message, 'store: connect ECONNREFUSED; start it');
  pool.forget();
  t.true(outages.areOver, 'it is no longer used');
  pool.close();
});
