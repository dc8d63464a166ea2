// The contracts of a counter store and of leases for one Redis, over TCP and over a unix socket.
import test from 'ava';
import { ownedByFile, unowned } from '../support/owner.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { openRedisStore } from '../support/redis-store.ts';
import { testCounterStore } from './counter-store.ts';
import { testLeases } from './leases.ts';

for (const socketType of ['tcp', 'unix'] as const) {
  const server = startRedisServer(ownedByFile(test), { unix: socketType === 'unix' });

  const suite = {
    name: `redis over ${socketType}`,
    async open() {
      const { url, command } = await server;
      const store = await openRedisStore(unowned, url, { socketType });
      return {
        store,
        readCounter: async (key: string) => ((await command('GET', key)) ?? undefined)?.toString(),
        close: () => store.close(0),
      };
    },
  };
  testCounterStore(test, { ...suite, isComposite: false });
  if (socketType === 'tcp') testLeases(test, suite);
}
