// Tests several workers, and a client that counts as the reference does, on one Redis: together they admit what the
// limit allows, and the counter is the plain sum.
import test from 'ava';
import type { CounterStore } from '../../../worker/counters/store.ts';
import { countOn, createHit } from '../../support/counting.ts';
import { ownedByFile, unowned } from '../../support/owner.ts';
import { type RedisServer, startRedisServer } from '../../support/redis-server.ts';
import { openRedisStore } from '../../support/redis-store.ts';

const day = { windowSeconds: 86_400, unit: 'day', limit: 100 } as const;
const requests = 300;

const server = startRedisServer(ownedByFile(test));

/** Counts or refunds the hits, and returns the resulting counter. */
type Count = (key: string, hits: number, refund?: boolean) => Promise<number>;

async function openFleet(): Promise<{ fleet: Count[]; close: () => Promise<void> }> {
  const redis = await server;
  const workers = [
    await openRedisStore(unowned, redis.url),
    await openRedisStore(unowned, redis.url),
  ];
  const fleet = [...workers.map(toCount), toReferenceCount(redis)];
  const close = async () => {
    for (const worker of workers) await worker.close(0);
  };
  return { fleet, close };
}

function toCount(store: CounterStore): Count {
  return async (key, hits, refund = false) => {
    const { error, after } = await countOn(store, [createHit({ ...day, key, hits, refund })]);
    if (error !== undefined) throw error;
    return after[0] ?? Number.NaN;
  };
}

/** The reference's own two commands; it has no refunds. */
function toReferenceCount(redis: RedisServer): Count {
  return async (key, hits) => {
    const after = await redis.command('INCRBY', key, hits);
    await redis.command('EXPIRE', key, day.windowSeconds);
    return Number(after);
  };
}

/** Requests arrive a few at a time, so that batches form and overlap. */
async function countAll(
  fleet: readonly Count[],
  next: (index: number, count: Count) => Promise<void>,
): Promise<void> {
  const running: Promise<void>[] = [];
  for (let index = 0; index < requests; index++) {
    const count = fleet[index % fleet.length];
    if (count !== undefined) running.push(next(index, count));
    if (index % 20 === 19) await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(running);
}

test('with 1 to 3 hits each and some refunds, the counter is the sum and no more is admitted', async (t) => {
  const { fleet, close } = await openFleet();
  t.teardown(close);
  const key = 'fleet_mixed_';
  // Enough to refund, so that no refund reaches zero and the sum is unique.
  let counted = await (fleet[0] as Count)(key, 40);
  let admitted = counted;
  let refunded = 0;
  await countAll(fleet, async (index, count) => {
    const hits = 1 + (index % 3);
    // One in 15 of them, and never by the reference's client.
    const refund = index % 15 === 1;
    const after = await count(key, hits, refund);
    if (refund) refunded += hits;
    else if (after <= day.limit) admitted += hits;
    counted += refund ? -hits : hits;
  });
  t.is(await (await server).command('GET', key), String(counted));
  t.true(refunded > 0);
  t.true(admitted <= day.limit + refunded, `${admitted} admitted, ${refunded} refunded`);
  const lifetime = Number(await (await server).command('TTL', key));
  t.true(lifetime > day.windowSeconds - 60 && lifetime <= day.windowSeconds + 300);
});
