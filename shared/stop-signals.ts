// The signals that ask a program to stop, and which of them is a second one.

export const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
export type StopSignal = (typeof stopSignals)[number];

/**
 * A terminal sends Ctrl-C to npm and to the script that npm runs, and npm passes its own on: the script
 * gets two for one. Nobody presses it again as fast as that.
 */
const copyWithinMs = 1_000;

/**
 * Calls `onFirst` for the first signal and `onAgain` for each later one, except for the copy of an
 * interrupt that npm passes on.
 */
export function listenForStopSignals(
  onFirst: (signal: StopSignal) => void,
  onAgain: (signal: StopSignal) => void,
): void {
  let first: { readonly signal: StopSignal; readonly atMs: number } | undefined;
  let mayBeCopied = true;
  for (const signal of stopSignals) {
    process.on(signal, () => {
      const nowMs = performance.now();
      if (first === undefined) {
        first = { signal, atMs: nowMs };
        onFirst(signal);
        return;
      }
      const isCopy =
        signal === 'SIGINT' && first.signal === 'SIGINT' && nowMs - first.atMs < copyWithinMs;
      if (isCopy && mayBeCopied) mayBeCopied = false;
      else onAgain(signal);
    });
  }
}
