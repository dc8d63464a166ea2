// KVSTORE_FAILURE_MODE: the answer to a decision whose hits could not be counted in the store.

/**
 * - `error`: the decision fails, and the caller acts as configured.
 * - `allow`: as though nothing had been counted before.
 * - `deny`: over the limit.
 * - `local`: what this process alone counts until the store is back.
 */
export type FailureMode = 'error' | AnsweringMode;

/** The modes in which a decision gets an answer without the store. */
export type AnsweringMode = 'allow' | 'deny' | 'local';

/** A store without an answer for this long counts as unreachable. Long enough for a retransmitted packet,
 * which takes 200 ms. */
export const patienceMs = 500;

/** With `error` a decision waits up to KVSTORE_TIMEOUT. */
export function toPatienceMs(mode: FailureMode, timeoutMs: number): number {
  return mode === 'error' ? timeoutMs : Math.min(patienceMs, timeoutMs);
}
