// How a worker tells a control plane what it counts by. What goes into the value is decided by
// worker/agreement.ts; here it is a text to compare.

/** The key of a node's metadata. Workers that count together have the same value, or count differently. */
export const agreementKey = 'ratelane.agreement';
