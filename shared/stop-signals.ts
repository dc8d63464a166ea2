// The signals that stop a program, and which of them count as a second one.

export const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
export type StopSignal = (typeof stopSignals)[number];

/**
 * A terminal sends Ctrl-C to npm and to the script that npm runs, and npm passes its own on: the script
 * gets two for one. A person is not that fast.
 */
const copyWithinMs = 1_000;

let isListening = false;

/** Exits with 0 on a signal until `listenForStopSignals` is called: nothing is open yet. Call it before
 * anything else is loaded: a process with id 1, as in a container, ignores signals without a listener. */
export function endOnStopSignals(): void {
  // The listeners stay: without any, a signal in flight would be lost.
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
