// How a pool of connections to one real server ends; the rest of its behaviour is in the store contract.
import test from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import { createRecordedLog } from '../../../test/support/recorded-log.ts';
import { startRedisServer } from '../../../test/support/redis-server.ts';
import { createRegistry } from '../../metrics/registry.ts';
import { createOutages } from '../failure/outages.ts';
import { type RawReply, toCommandText } from './connection.ts';
import { openConnection } from './connection-opening.ts';
import { createConnectionTotals } from './connection-totals.ts';
import { createKnownExpiries } from './known-expiries.ts';
import { createRedisPool } from './redis-pool.ts';

test('commands that another server sent here are answered before the pool ends', async (t) => {
  const redis = await startRedisServer(t);
  const log = createRecordedLog();
  const metrics = createRegistry({ runtimeNamesMax: 1, log });
  const pool = createRedisPool(
    {
      size: 1,
      onEmpty: { behavior: 'wait', waitMs: 0 },
      closeOnReadonlyError: false,
      timeoutMs: 10_000,
      pipelineWindowMs: 0,
      jitterMaxSeconds: 0,
      failureMode: 'error',
    },
    {
      name: 'store',
      addressSetting: 'REDIS_URL',
      open: (signal) =>
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
      knownExpiries: createKnownExpiries(),
      totals: createConnectionTotals({
        clock: systemClock,
        connections: {
          active: metrics.gauge('active'),
          total: metrics.counter('total'),
          localClose: metrics.counter('localClose'),
        },
        onHealthChange: () => {},
      }),
      outages: createOutages({ metricPrefix: 'p', metrics, clock: systemClock, onOver: () => {} }),
      clock: systemClock,
      log,
    },
  );
  t.teardown(() => pool.close());
  await pool.tryToOpen(AbortSignal.timeout(10_000));
  const answered = new Promise<RawReply[]>((resolve) => {
    // It answers when something is put into the list.
    pool.sendCommands([toCommandText('BLPOP', 'list', 0)], resolve);
  });
  const ended = pool.drain(10_000).then(() => pool.close());
  await redis.command('RPUSH', 'list', 'value');
  t.deepEqual(await answered, [['list', 'value']]);
  await ended;
});
