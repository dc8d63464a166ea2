// The kinds of counter stores: each is a row here, and the file that the row names declares its capabilities. Other
// files ask the kind in use, and never compare its name (test/setup/lint-rules.test.ts).
import { memcachedKind } from './memcached/memcached-kind.ts';
import { memoryKind } from './memory-kind.ts';
import { redisKind } from './redis/redis-kind.ts';
import type { StoreKind } from './store-kind.ts';

export const storeKinds = {
  redis: redisKind,
  memcached: memcachedKind,
  memory: memoryKind,
} satisfies Readonly<Record<string, StoreKind>>;

export type StoreKindName = keyof typeof storeKinds;

/** The kinds by the values of BACKEND_TYPE. */
export const storeKindNames: Readonly<Record<string, StoreKindName>> = Object.fromEntries(
  (Object.keys(storeKinds) as StoreKindName[]).flatMap((name) =>
    storeKinds[name].words.map((word) => [word, name]),
  ),
);
