// The kinds of counter stores, and the abilities of each. Other files ask for an ability; only the code that
// makes or names a store, or reads its own settings, asks for the kind.

export type StoreKind = 'redis' | 'memcached' | 'memory';

export interface StoreAbilities {
  /** It counts limits of every algorithm, not only fixed windows. A server needs scripts for it (behaviour:
   * limiter-scripts). */
  readonly limiters: boolean;
  /** Hits are in their counters when it answers. Without that a lease would be inexact, and counting cannot
   * stop over the limit (behaviour: over-limit-stops-counting). */
  readonly countsBeforeAnswer: boolean;
  /** Workers, and processes of one worker, count together. */
  readonly isShared: boolean;
  /** It is a server, or several, which may be away. */
  readonly needsServer: boolean;
}

export const storeAbilities: Readonly<Record<StoreKind, StoreAbilities>> = {
  redis: { limiters: true, countsBeforeAnswer: true, isShared: true, needsServer: true },
  memcached: { limiters: false, countsBeforeAnswer: false, isShared: true, needsServer: true },
  memory: { limiters: true, countsBeforeAnswer: true, isShared: false, needsServer: false },
};
