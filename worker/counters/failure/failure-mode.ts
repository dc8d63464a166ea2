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
