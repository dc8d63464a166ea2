import test from 'ava';
import { createHit, createRequest } from '../../../test/support/counting.ts';
import type { CounterStore } from '../store.ts';
import { createPerSecondStore } from './redis-kind.ts';

function setUp(healthy = { main: true, perSecond: true }) {
  const seen: string[] = [];
  const createStore = (name: 'main' | 'perSecond'): CounterStore => ({
    count({ hits, settle }) {
      seen.push(`${name}: ${hits.map(({ key }) => key).join(' ')}`);
      setImmediate(settle, undefined);
    },
    connect: async () => void seen.push(`${name} is connected`),
    state: () => ({ healthy: healthy[name], detail: `state of ${name}` }),
    close: async (graceMs) => void seen.push(`${name} is closed within ${graceMs}`),
  });
  const store = createPerSecondStore({
    main: createStore('main'),
    perSecond: createStore('perSecond'),
    continuesOnError: false,
  });
  const count = (...hits: { key: string; unit: 'second' | 'minute' }[]) =>
    new Promise<void>((resolve) => {
      const made = hits.map((hit) => createHit(hit));
      store.count(createRequest(made, { settle: () => resolve() }));
    });
  return { store, seen, count };
}

test('each hit is counted in the store of its unit, the main one first', async (t) => {
  const { seen, count } = setUp();
  await count({ key: 's', unit: 'second' });
  await count({ key: 'm', unit: 'minute' });
  await count(
    { key: 's1', unit: 'second' },
    { key: 'm1', unit: 'minute' },
    { key: 's2', unit: 'second' },
  );
  await count({ key: 's3', unit: 'second' }, { key: 's4', unit: 'second' });
  t.deepEqual(seen, [
    'perSecond: s',
    'main: m',
    'main: m1',
    'perSecond: s1 s2',
    'perSecond: s3 s4',
  ]);
});

test('both stores are connected and closed, and the kind is healthy when both are', async (t) => {
  const { store, seen } = setUp();
  await store.connect(AbortSignal.timeout(1_000));
  await store.close(7);
  t.deepEqual(seen, [
    'perSecond is connected',
    'main is connected',
    'main is closed within 7',
    'perSecond is closed within 7',
  ]);
  t.deepEqual(store.state(), {
    healthy: true,
    detail: 'main: state of main; per second: state of perSecond',
  });
  t.false(setUp({ main: false, perSecond: true }).store.state().healthy);
  t.false(setUp({ main: true, perSecond: false }).store.state().healthy);
});
