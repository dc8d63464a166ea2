// How many nodes of a cluster are asked at once for one decision, as counted on the way to them.
import test, { type ExecutionContext } from 'ava';
import { countOn, createHit } from '../../support/counting.ts';
import { eventually } from '../../support/eventually.ts';
import { type RedisCluster, startRedisCluster } from '../../support/redis-cluster.ts';
import { openRedisStore } from '../../support/redis-store.ts';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts';

/** Long enough that what is sent at once is seen at once. */
const replyDelayMs = 10;
const decisions = 5;

interface SlowCluster {
  readonly url: string;
  /** One that each master counts. */
  readonly keys: readonly string[];
  /** Batches of hits on their way or being answered, at most, since `forget`. */
  readonly mostInFlight: number;
  forget(): void;
}

/** A cluster whose nodes name proxies in front of them as their addresses. */
async function startSlowCluster(t: ExecutionContext): Promise<SlowCluster> {
  const cluster = await startRedisCluster(t);
  const inFlight = new Set<number>();
  let mostInFlight = 0;
  const proxies: TcpProxy[] = [];
  for (const [node, { port }] of cluster.masters.entries()) {
    const proxy = await startTcpProxy(t, port, {
      onRequest(chunk) {
        if (!/incrby/i.test(chunk.toString('latin1'))) return;
        inFlight.add(node);
        mostInFlight = Math.max(mostInFlight, inFlight.size);
      },
      onReply: () => inFlight.delete(node),
    });
    proxy.inject({ kind: 'latency', ms: replyDelayMs });
    proxies.push(proxy);
  }
  const keys = await findKeys(cluster);
  await announce(cluster, proxies);
  return {
    url: proxies.map(({ port }) => `127.0.0.1:${port}`).join(','),
    keys,
    get mostInFlight() {
      return mostInFlight;
    },
    forget() {
      mostInFlight = 0;
    },
  };
}

async function findKeys(cluster: RedisCluster): Promise<string[]> {
  const keys = new Map<unknown, string>();
  for (let index = 0; keys.size < cluster.masters.length; index++) {
    const key = `node_${index}_`;
    keys.set(await cluster.ownerOf(await cluster.slotOf(key)), key);
  }
  return [...keys.values()];
}

async function announce({ masters }: RedisCluster, proxies: readonly TcpProxy[]): Promise<void> {
  for (const [node, master] of masters.entries()) {
    await master.command('CONFIG', 'SET', 'cluster-announce-port', proxies[node]?.port ?? 0);
  }
  for (const master of masters) {
    await eventually('the proxies are known', async () => {
      const ranges = await master.command('CLUSTER', 'SLOTS');
      return proxies.every(({ port }) => String(ranges).includes(`,${port},`));
    });
  }
}

/** What is set, POOL_SIZE, and how many of three nodes are then asked at once. */
const cases = [
  { parallelism: 1, size: 4, atOnce: 1 },
  { parallelism: 2, size: 4, atOnce: 2 },
  { parallelism: 3, size: 4, atOnce: 3 },
  { parallelism: 9, size: 2, atOnce: 2 },
  { parallelism: 3, size: 1, atOnce: 1 },
  { parallelism: 0, size: 4, atOnce: 3 },
  { parallelism: 0, size: 2, atOnce: 2 },
];

test.serial('a decision over three nodes asks as many at once as the setting says', async (t) => {
  const cluster = await startSlowCluster(t);
  for (const { parallelism, size, atOnce } of cases) {
    const what = `parallelism ${parallelism} with ${size} connections`;
    const store = await openRedisStore(t, cluster.url, {
      type: 'cluster',
      size,
      clusterParallelism: parallelism,
    });
    await eventually('every connection', () => store.connections.active === 3 * size);
    cluster.forget();
    for (let decision = 0; decision < decisions; decision++) {
      const result = countOn(
        store,
        cluster.keys.map((key) => createHit({ key })),
      );
      t.is((await result).error, undefined, what);
    }
    t.is(cluster.mostInFlight, atOnce, what);
    const isTold = store.log.lines.some((line) =>
      line.includes(`parallelism of ${parallelism} is above the pool's size and taken as ${size}`),
    );
    t.is(isTold, parallelism > size, what);
    await store.close(0);
  }
});
