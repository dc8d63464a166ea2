// Sliding windows and token buckets where counters are on several servers: the store for limits per second,
// and a master that sentinels name, before and after it changes. In a cluster: limiters-redis.test.ts.
import test from 'ava';
import { limiterAlgorithms } from '../../../shared/rules/limit-shape.ts';
import { eventually } from '../../support/eventually.ts';
import { startRedisSentinels } from '../../support/redis-sentinel.ts';
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
  // Those per second may be gone by now.
  const perSecond = await second.command('INFO', 'commandstats');
  t.regex(String(perSecond), /cmdstat_evalsha:calls=[2-9]/);
});

test('limiters behind sentinels go on on the new master', async (t) => {
  t.timeout(300_000);
  const group = await startRedisSentinels(t);
  const env = { KVSTORE_TYPE: 'sentinel', KVSTORE_URL: group.url };
  const worker = await startWorker(t, { env, rules });
  const decideAll = async () => {
    const answers = await Promise.all(
      limiterAlgorithms.map((algorithm) => worker.decide(`${algorithm}_per_day=x`)),
    );
    return answers.map(({ status }) => status);
  };
  t.deepEqual(await decideAll(), [200, 200]);
  const announcement = group.announcement();
  await group.servers[0].kill();
  await group.setDownAfter(500);
  await announcement;
  await eventually('decisions on the new master', async () =>
    (await decideAll()).every((status) => status === 200),
  );
});
