// Bounds of the workers' reports, and of what is retained of them.

/** Maximum number of characters of a node id, an instance or an agreement. */
export const maxNameLength = 1_024;
/** Rate limit for a worker's messages: this many at once, and this many per second after that. Large messages cost
 * more. */
export const messageBurst = 60;
export const messagesPerSecond = 10;
/** Deadline for the first message of a link. */
export const helloMs = 30_000;
/** Maximum number of unread messages to a worker; a link with more is ended. */
export const maxUnsent = 32;
/** Estimated bytes of limited values that are retained: for all workers together, and for one worker. */
export const maxLimitedBytes = 128 * 1024 * 1024;
export const maxLimitedBytesOfWorker = 128 * 1024;
/** Figures older than this are not shown: the worker is connected but silent. */
export const staleMs = 20_000;
/** Maximum number of rules whose hits are counted per worker: for all workers together, and for one worker. */
export const maxCountedRules = 200_000;
export const maxCountedRulesOfWorker = 2_000;
/** Maximum number of names of rules and domains whose text all workers share. */
export const maxSharedNames = 20_000;
