// The key in a node's metadata by which a worker identifies one start of its process. worker/worker.ts makes the value;
// the control plane uses it to distinguish workers with the same node id.

/** The value under this key is new at each start of a worker, and the same as `instance` in the hello of its link. */
export const instanceKey = 'ratelane.instance';
