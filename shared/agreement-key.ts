// The key in a node's metadata by which a worker reports how it counts. worker/agreement.ts makes the
// value; the control plane only compares it.

/** Workers that share a store have the same value here; different values mean that they count differently. */
export const agreementKey = 'ratelane.agreement';
