// Bounds of the workers' reports, and of the parts that are kept.

/** Characters of a node id, an instance or an agreement. */
export const maxNameLength = 1_024;
/** Messages of a worker: this many at once, and so many per second after that. Large ones cost more. */
export const messageBurst = 60;
export const messagesPerSecond = 10;
/** Time for the first message of a link. */
export const helloMs = 30_000;
/** Unread messages to a worker; a link with more is ended. */
export const maxUnsent = 32;
/** Bytes of limited values that are kept of all workers together, by estimate; of one worker at most so many. */
export const maxLimitedBytes = 128 * 1024 * 1024;
export const maxLimitedBytesOfWorker = 128 * 1024;
/** Figures older than this are not shown: the worker is connected but silent. */
export const staleMs = 20_000;
/** Rules whose hits are counted for each worker by itself, of all workers together; of one worker at most so
 * many. */
export const maxCountedRules = 200_000;
export const maxCountedRulesOfWorker = 2_000;
/** Names of rules and domains of which one text is kept for all workers. */
export const maxSharedNames = 20_000;
