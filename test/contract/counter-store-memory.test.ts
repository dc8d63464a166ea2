// The counter store contract for the in-process store.
import test from 'ava';
import { systemClock } from '../../shared/clock.ts';
import { createMemoryStore } from '../../worker/counters/memory-store.ts';
import { createRecordedLog } from '../support/recorded-log.ts';
import { testCounterStore } from './counter-store.ts';

testCounterStore(test, {
  name: 'memory',
  isComposite: false,
  async open() {
    const store = createMemoryStore({ clock: systemClock, log: createRecordedLog() });
    return {
      store,
      readCounter: async (key) => store.read(key)?.toString(),
      close: () => store.close(0),
    };
  },
});
