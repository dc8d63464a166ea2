// Says when the receiver of statistics is lost and when it is back, without repeating itself.
import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';

export interface ReceiverLog {
  /** `reason` is one clause without a final full stop. */
  lost(reason: string): void;
  back(): void;
}

/** A receiver that comes and goes is said to be lost at most this often. */
const intervalMs = 60_000;

/** `receiver` names it with its address. */
export function createReceiverLog(deps: {
  readonly log: Log;
  readonly clock: Clock;
  readonly receiver: string;
}): ReceiverLog {
  const { log, clock, receiver } = deps;
  let isLost = false;
  let isSaid = false;
  let lastSaidMs = Number.NEGATIVE_INFINITY;
  return {
    lost(reason) {
      if (isLost) return;
      isLost = true;
      if (clock.monotonicMs() - lastSaidMs < intervalMs) return;
      lastSaidMs = clock.monotonicMs();
      isSaid = true;
      log.warning(
        `Statistics do not reach ${receiver}: ${reason}; trying again, decisions are not affected (DISABLE_STATS=true sends none)`,
      );
    },
    back() {
      isLost = false;
      if (!isSaid) return;
      isSaid = false;
      log.notice(`Statistics reach ${receiver} again`);
    },
  };
}
