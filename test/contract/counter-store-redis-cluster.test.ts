// The contracts of a counter store and of leases for a Redis cluster of three masters.
import test from 'ava';
import { ownedByFile, unowned } from '../support/owner.ts';
import { startRedisCluster } from '../support/redis-cluster.ts';
import { openRedisStore } from '../support/redis-store.ts';
import { testCounterStore } from './counter-store.ts';
import { testLeases } from './leases.ts';

const cluster = startRedisCluster(ownedByFile(test));

for (const clusterParallelism of [1, 0]) {
  const suite = {
    name: `redis cluster, parallelism ${clusterParallelism}`,
    async open() {
      const { url, read } = await cluster;
      const store = await openRedisStore(unowned, url, { type: 'cluster', clusterParallelism });
      return { store, readCounter: read, close: () => store.close(0) };
    },
  };
  testCounterStore(test, { ...suite, isComposite: true });
  if (clusterParallelism === 0) testLeases(test, suite);
}
