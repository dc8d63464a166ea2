// KVSTORE_FAILURE_MODE: what a decision is answered when its hits could not be counted in the store.

/**
 * - `error`: the decision fails, and the caller does what it is told to do then.
 * - `allow`: as though nothing had been counted before.
 * - `deny`: over the limit.
 * - `local`: what this process alone counts until the store is back.
 */
export type FailureMode = 'error' | AnsweringMode;

/** The modes in which a decision gets an answer without the store. */
export type AnsweringMode = 'allow' | 'deny' | 'local';

/** A store that was asked and has said nothing for so long is taken to be away. Long enough for a
 * packet that was lost and sent again, which takes 200 ms. */
const patienceMs = 500;

/** With `error` a decision waits for as long as KVSTORE_TIMEOUT says. */
export function toPatienceMs(mode: FailureMode, timeoutMs: number): number {
  return mode === 'error' ? timeoutMs : Math.min(patienceMs, timeoutMs);
}
