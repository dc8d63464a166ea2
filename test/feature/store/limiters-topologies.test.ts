// Tests sliding windows and token buckets whose counters are on several servers: the store for limits per second, and a
// master behind sentinels, before and after a failover. Clusters: limiters-redis.test.ts.
import test from 'ava';
import { limiterAlgorithms } from '../../../shared/rules/limit-shape.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { startWorker } from '../../support/worker-in-process.ts';

const rules = `domain: d
descriptors:
${limiterAlgorithms
  .flatMap((algorithm) =>
    ['second', 'day'].map(
      (unit) =>
        `  - {key: ${algorithm}_per_${unit}, rate_limit: {unit: ${unit}, requests_per_unit: 100, algorithm: ${algorithm}}}\n`,
    ),
  )
  .join('')}`;

test('limiters per second are counted in their own store, all others in the first', async (t) => {
  const [first, second] = await Promise.all([startRedisServer(t), startRedisServer(t)]);
  const env = {
    KVSTORE_URL: first.url,
    KVSTORE_PERSECOND: 'true',
    KVSTORE_PERSECOND_URL: second.url,
  };
  const worker = await startWorker(t, { env, rules });
  for (const algorithm of limiterAlgorithms) {
    for (const unit of ['second', 'day']) {
      const { status, text } = await worker.decide(`${algorithm}_per_${unit}=x`);
      t.is(status, 200, text);
    }
  }
  const keysOf = async (server: typeof first) =>
    [String(await server.command('KEYS', 'd_*'))].join().split(',').sort();
  t.deepEqual(
    await keysOf(first),
    limiterAlgorithms.map((each) => `d_${each}_per_day_x_${each}_day`).sort(),
  );
  // The per-second ones may have expired by now.
  const perSecond = await second.command('INFO', 'commandstats');
  t.regex(String(perSecond), /cmdstat_evalsha:calls=[2-9]/);
});
