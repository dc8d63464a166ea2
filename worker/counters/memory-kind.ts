// The kind of store that counts in this process: its capabilities, and how it is made.
import type { StoreKind } from './store-kind.ts';

export const memoryKind: StoreKind = {
  words: ['memory'],
  limiters: true,
  countsBeforeAnswer: true,
  isShared: false,
  acceptsShortKeysOnly: false,
  needsServer: false,
  check: () => [],
  warn: () => [],
  tlsFiles: () => [],
  storesLongKeys: () => true,
  agreementParts: () => [],
  describeCall: () => undefined,
  async create(_, { clock, log }) {
    const { MemoryStore } = await import('./memory-store.ts');
    return new MemoryStore({ clock, log });
  },
};
