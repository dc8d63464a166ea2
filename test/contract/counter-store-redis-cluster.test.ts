// The contracts of a counter store and of leases for a Redis cluster of three masters.
import test from 'ava';
import { startRedisCluster } from '../support/redis-cluster.ts';
import { openRedisStore } from '../support/redis-store.ts';
import { testCounterStore } from './counter-store.ts';
import { testLeases } from './leases.ts';

const cluster = startRedisCluster();
test.after.always(async () => (await cluster).stop());

for (const clusterParallelism of [1, 0]) {
  const suite = {
    name: `redis cluster, parallelism ${clusterParallelism}`,
    async open() {
      const { url, read } = await cluster;
      const store = await openRedisStore(url, { type: 'cluster', clusterParallelism });
      return { store, readCounter: read, close: () => store.close(0) };
    },
  };
  testCounterStore(test, { ...suite, isComposite: true });
  if (clusterParallelism === 0) testLeases(test, suite);
}
