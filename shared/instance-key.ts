// The key in a node's metadata by which a worker names which start of a process it is. worker/worker.ts makes
// the value; the control plane keeps apart by it what workers with one node id do.

/** The key of a value that is new at each start of a worker, and the same as `instance` in the hello of its link. */
export const instanceKey = 'ratelane.instance';
