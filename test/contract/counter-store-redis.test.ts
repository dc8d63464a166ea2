// The counter store contract for one Redis, over TCP and over a unix socket.
import test from 'ava';
import { startRedisServer } from '../support/redis-server.ts';
import { openRedisStore } from '../support/redis-store.ts';
import { testCounterStore } from './counter-store.ts';

for (const socketType of ['tcp', 'unix'] as const) {
  const server = startRedisServer({ unix: socketType === 'unix' });
  test.after.always(async () => (await server).stop());

  testCounterStore(test, {
    name: `redis over ${socketType}`,
    isComposite: false,
    async open() {
      const { url, command } = await server;
      const store = await openRedisStore(url, { socketType });
      return {
        store,
        readCounter: async (key) => ((await command('GET', key)) ?? undefined)?.toString(),
        close: () => store.close(0),
      };
    },
  });
}
