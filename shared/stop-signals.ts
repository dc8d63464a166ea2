// The signals that ask a program to stop, and which of them is a second one.

export const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
export type StopSignal = (typeof stopSignals)[number];

/**
 * A terminal sends Ctrl-C to npm and to the script that npm runs, and npm passes its own on: the script
 * gets two for one. Nobody presses it again as fast as that.
 */
const copyWithinMs = 1_000;

let isListening = false;

/** Until `listenForStopSignals` is called nothing is open yet that would have to be closed, so a signal ends
 * the process, and with 0 as always. To be called before anything else is loaded: a process with the id 1,
 * as in a container, does not hear of a signal otherwise. */
export function endOnStopSignals(): void {
  // The listeners stay: without any, a signal that is on its way would be lost.
  for (const name of stopSignals) {
    process.on(name, () => {
      if (!isListening) process.exit(0);
    });
  }
}

/**
 * Calls `onFirst` for the first signal and `onAgain` for each later one, except for the copy of an
 * interrupt that npm passes on.
 */
export function listenForStopSignals(
  onFirst: (signal: StopSignal) => void,
  onAgain: (signal: StopSignal) => void,
): void {
  isListening = true;
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
