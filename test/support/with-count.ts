import type { CounterStore } from '../../worker/counters/store.ts';

/** The store, with another implementation of counting. */
export function withCount(store: CounterStore, count: CounterStore['count']): CounterStore {
  return {
    count,
    connect: (signal) => store.connect(signal),
    state: () => store.state(),
    close: (graceMs) => store.close(graceMs),
  };
}
