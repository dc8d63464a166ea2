// Tests a worker whose clock differs from that of its Redis: metric, warning and state report it.
import test from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { startRedisCluster } from '../../support/redis-cluster.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { openRedisStore } from '../../support/redis-store.ts';

async function check(
  t: { teardown(task: () => unknown): void; regex(text: string, pattern: RegExp): void },
  url: string,
  type: 'single' | 'cluster',
) {
  let apartMs = 0;
  const store = await openRedisStore(t, url, {
    type,
    clock: { ...systemClock, wallMs: () => Date.now() + 3_600_000 },
    clockOffset: {
      set: (value) => {
        apartMs = value;
      },
      get value() {
        return apartMs;
      },
    },
  });
  await eventually('an hour', () => Math.abs(apartMs - 3_600_000) < 5_000);
  t.regex(store.state().detail, /; this clock is 3[56]\d{5} ms ahead of the store's/);
  t.regex(store.log.lines.join(), /warning key-value store .*: this clock is .* ms ahead of/);
}

// Proof of migrating.md: This clock is compared with the store's
test.serial('one server', async (t) => {
  const redis = await startRedisServer(t);
  await check(t, redis.url, 'single');
});

test.serial('a cluster', async (t) => {
  const cluster = await startRedisCluster(t);
  await check(t, cluster.url, 'cluster');
});
