// The counter store contract for memcached, on one node and on several. Hits are added in the background, so counters
// are read once no operation is pending; the answers of a single worker are still exact.
import test from 'ava';
import { chooseNode } from '../../worker/counters/memcached/memcached-nodes.ts';
import { startMemcachedServer } from '../support/memcached-server.ts';
import { openMemcachedStore } from '../support/memcached-store.ts';
import { ownedByFile, unowned } from '../support/owner.ts';
import { longKeys, testCounterStore } from './counter-store.ts';

const stopSetting = 'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT is ignored with a memory cache';

for (const count of [1, 3]) {
  const owner = ownedByFile(test);
  const starting = Promise.all(Array.from({ length: count }, () => startMemcachedServer(owner)));

  testCounterStore(test, {
    name: `memcached on ${count === 1 ? 'one node' : `${count} nodes`}`,
    isComposite: false,
    skip: {
      [longKeys]: 'memcached takes at most 250 bytes',
      'with a limit passed, only the hits that pass it count': stopSetting,
      'a refund is made although another limit is passed': stopSetting,
      'the same with limits that stop the others': stopSetting,
      'hits that refuse nothing stop no others, and quotas stop them together': stopSetting,
    },
    async open() {
      const servers = await starting;
      const store = await openMemcachedStore(unowned, { urls: servers.map(({ url }) => url) });
      return {
        store,
        async readCounter(key) {
          await store.settled();
          return servers[chooseNode(key, servers.length, 1).node]?.get(key);
        },
        close: () => store.close(0),
      };
    },
  });
}
