// Collects the garbage of a start: compiled sources, parsed rules, decisions of the warm-up. V8 keeps it until the heap
// is full for the first time, which never happens in a quiet worker.

/**
 * Called once, before there are callers, since it takes some hundredths of a second. Does nothing without
 * `--expose-gc`.
 */
export function collectStartGarbage(): void {
  // Only this kind of collection also shrinks the young generation.
  globalThis.gc?.({ type: 'major', flavor: 'last-resort', execution: 'sync' });
}
