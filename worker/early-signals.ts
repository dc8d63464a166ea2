// Signals that come before the program listens for them: nothing is open yet that would have to be
// closed, so the process ends, and with 0 as always (decisions 7). Imported before everything else.
import { exitCodes } from '../shared/lifecycle.ts';
import { stopSignals } from '../shared/stop-signals.ts';

let isLeft = false;

// The listeners stay: without any, a signal that is on its way would be lost.
for (const name of stopSignals) {
  process.on(name, () => {
    if (!isLeft) process.exit(exitCodes.ok);
  });
}

/** From now on somebody else listens. */
export function leaveSignals(): void {
  isLeft = true;
}
