// Collects the garbage of a start: sources that were compiled, rules that were parsed, decisions of the warm-up.
// V8 keeps it until the heap is full for the first time, which in a quiet worker is never.

/** Called once, before there are callers: it takes some hundredths of a second. Does nothing without `--expose-gc`. */
export function collectStartGarbage(): void {
  // Of all kinds only this one makes the young generation small again, too.
  globalThis.gc?.({ type: 'major', flavor: 'last-resort', execution: 'sync' });
}
