// The counter store contract for a Redis cluster of three masters.
import test from 'ava';
import { startRedisCluster } from '../support/redis-cluster.ts';
import { openRedisStore } from '../support/redis-store.ts';
import { testCounterStore } from './counter-store.ts';

const cluster = startRedisCluster();
test.after.always(async () => (await cluster).stop());

for (const clusterParallelism of [1, 0]) {
  testCounterStore(test, {
    name: `redis cluster, parallelism ${clusterParallelism}`,
    isComposite: true,
    async open() {
      const { url, read } = await cluster;
      const store = await openRedisStore(url, { type: 'cluster', clusterParallelism });
      return { store, readCounter: read, close: () => store.close(0) };
    },
  });
}
