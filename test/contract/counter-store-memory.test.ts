// The contracts of a counter store and of leases for the in-process store.
import test from 'ava';
import { systemClock } from '../../shared/clock.ts';
import { MemoryStore } from '../../worker/counters/memory-store.ts';
import { createRecordedLog } from '../support/recorded-log.ts';
import { testCounterStore } from './counter-store.ts';
import { testLeases } from './leases.ts';

const memory = {
  name: 'memory',
  async open() {
    const store = new MemoryStore({ clock: systemClock, log: createRecordedLog() });
    return {
      store,
      readCounter: async (key: string) => store.read(key)?.toString(),
      close: () => store.close(),
    };
  },
};

testCounterStore(test, { ...memory, isComposite: false });
testLeases(test, memory);
