// KVSTORE_FAILURE_MODE: the answer to a decision whose hits could not be counted in the store.

/**
 * - `error`: the decision fails, and the caller applies its own failure mode.
 * - `allow`: as if nothing had been counted before.
 * - `deny`: the answer is over the limit.
 * - `local`: this process counts by itself until the store recovers.
 */
export type FailureMode = 'error' | AnsweringMode;

/** The modes in which a decision gets an answer without the store. */
export type AnsweringMode = 'allow' | 'deny' | 'local';

/**
 * A store without an answer for this long counts as unreachable. Longer than the retransmission of a packet, which
 * takes 200 ms.
 */
export const patienceMs = 500;

/** With `error`, a decision waits up to KVSTORE_TIMEOUT. */
export function toPatienceMs(mode: FailureMode, timeoutMs: number): number {
  return mode === 'error' ? timeoutMs : Math.min(patienceMs, timeoutMs);
}
