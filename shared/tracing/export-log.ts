// Says when spans are lost and when they arrive again, without repeating itself.
import type { Clock } from '../clock.ts';
import type { Log } from '../log.ts';

export interface ExportLog {
  /** A batch was not taken; `reason` is one clause without a final full stop. */
  failed(reason: string): void;
  /** A batch was taken. */
  arrived(): void;
  /** A span did not fit into the queue. */
  dropped(): void;
}

/** A receiver that comes and goes, or is slow, is complained about at most this often. */
const intervalMs = 60_000;

export function createExportLog({
  log,
  clock,
}: {
  readonly log: Log;
  readonly clock: Clock;
}): ExportLog {
  let failures = 0;
  let isSaid = false;
  let lastFailureMs = Number.NEGATIVE_INFINITY;
  let lastDropMs = Number.NEGATIVE_INFINITY;
  return {
    failed(reason) {
      failures++;
      if (isSaid || clock.monotonicMs() - lastFailureMs < intervalMs) return;
      lastFailureMs = clock.monotonicMs();
      isSaid = true;
      log.warning(`Traces do not reach their receiver: ${reason}; decisions are not affected`);
    },
    arrived() {
      if (isSaid) log.notice(`Traces reach their receiver again; ${failures} batches were lost`);
      isSaid = false;
      failures = 0;
    },
    dropped() {
      if (clock.monotonicMs() - lastDropMs < intervalMs) return;
      lastDropMs = clock.monotonicMs();
      log.warning(
        'Traces are left out: their receiver does not take them as fast as they are made; OTEL_BSP_* and TRACING_SAMPLING_RATE set how many are',
      );
    },
  };
}
