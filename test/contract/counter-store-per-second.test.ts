// The counter store contract for two Redis servers, one of them for per-second limits.
import test from 'ava';
import { createPerSecondStore } from '../../worker/counters/redis/redis-kind.ts';
import { countOn, createHit } from '../support/counting.ts';
import { ownedByFile, unowned } from '../support/owner.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { openRedisStore } from '../support/redis-store.ts';
import { testCounterStore } from './counter-store.ts';

const owner = ownedByFile(test);
const servers = Promise.all([startRedisServer(owner), startRedisServer(owner)]);

async function open() {
  const [mainServer, perSecondServer] = await servers;
  const main = await openRedisStore(unowned, mainServer.url);
  const perSecond = await openRedisStore(unowned, perSecondServer.url);
  const store = createPerSecondStore({ main, perSecond, continuesOnError: false });
  return {
    store,
    async readCounter(key: string) {
      const values = [
        await mainServer.command('GET', key),
        await perSecondServer.command('GET', key),
      ];
      return values.find((value) => value !== null)?.toString();
    },
    close: () => store.close(0),
  };
}

testCounterStore(test, { name: 'per-second', isComposite: true, open });

test('hits of per-second limits are only in the per-second store', async (t) => {
  const [main, perSecond] = await servers;
  const { store, close } = await open();
  t.teardown(close);
  const result = countOn(store, [
    createHit({ key: 'split_s', unit: 'second', hits: 2 }),
    createHit({ key: 'split_h', unit: 'hour', hits: 3 }),
  ]);
  t.deepEqual((await result).after, [2, 3]);
  t.is(await main.command('GET', 'split_s'), null);
  t.is(await main.command('GET', 'split_h'), '3');
  t.is(await perSecond.command('GET', 'split_s'), '2');
  t.is(await perSecond.command('GET', 'split_h'), null);
});

test('when the main store fails, the per-second store is not called', async (t) => {
  const [main, perSecond] = await servers;
  const { store, close } = await open();
  t.teardown(close);
  await main.command('LPUSH', 'wrong_h', 'x');
  const result = countOn(store, [
    createHit({ key: 'wrong_s', unit: 'second' }),
    createHit({ key: 'wrong_h', unit: 'hour' }),
  ]);
  t.regex((await result).error?.message ?? '', /WRONGTYPE/);
  t.is(await perSecond.command('EXISTS', 'wrong_s'), 0);
});
