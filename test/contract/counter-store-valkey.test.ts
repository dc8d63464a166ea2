// The contracts of a counter store and of leases for one Valkey, and for a Valkey cluster of three masters.
import test from 'ava';
import { findTool, testWith } from '../support/installed-tool.ts';
import { ownedByFile, unowned } from '../support/owner.ts';
import { startRedisCluster } from '../support/redis-cluster.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { openRedisStore } from '../support/redis-store.ts';
import { testCounterStore } from './counter-store.ts';
import { testLeases } from './leases.ts';

const owner = ownedByFile(test);
const program = findTool('valkey-server');
const single = program === undefined ? undefined : startRedisServer(owner, { program });
const cluster = program === undefined ? undefined : startRedisCluster(owner, { program });

testWith(test, 'valkey-server')('the servers of these tests are Valkey', async (t) => {
  const servers = [await single, ...((await cluster)?.masters ?? [])];
  t.is(servers.length, 4);
  for (const server of servers)
    t.regex(String(await server?.command('INFO', 'server')), /^valkey_version:\d+\./m);
});

if (single !== undefined && cluster !== undefined) {
  const one = {
    name: 'valkey',
    async open() {
      const { url, command } = await single;
      const store = await openRedisStore(unowned, url);
      return {
        store,
        readCounter: async (key: string) => ((await command('GET', key)) ?? undefined)?.toString(),
        close: () => store.close(0),
      };
    },
  };
  testCounterStore(test, { ...one, isComposite: false });
  testLeases(test, one);

  const three = {
    name: 'valkey cluster',
    async open() {
      const { url, read } = await cluster;
      const store = await openRedisStore(unowned, url, { type: 'cluster', clusterParallelism: 0 });
      return { store, readCounter: read, close: () => store.close(0) };
    },
  };
  testCounterStore(test, { ...three, isComposite: true });
  testLeases(test, three);
}
