// Detects when an unreachable server answers again: short connections, one after the other, ask for its
// version. Lanes send nothing meanwhile.
import type { Clock } from '../../../shared/clock.ts';
import type { Connection } from './connection.ts';

/** Between two attempts. */
const pauseMs = 250;

export interface NodeProbeDeps {
  readonly open: (onEnd: () => void) => Promise<Connection>;
  readonly clock: Clock;
  /** It has answered; the probe has ended. */
  readonly onAnswer: () => void;
}

export interface NodeProbe {
  /** Starts the probe, unless it is running. */
  start(): void;
  /** Ends it for good. Idempotent. */
  close(): void;
}

export function createNodeProbe({ open, clock, onAnswer }: NodeProbeDeps): NodeProbe {
  let isRunning = false;
  let closed = false;
  let connection: Connection | undefined;
  let cancelNext: (() => void) | undefined;

  function attempt(): void {
    open(() => {}).then(ask, again);
  }

  function ask(opened: Connection): void {
    if (closed) {
      opened.destroy();
      return;
    }
    connection = opened;
    opened.send('version\r\n', (answer) => {
      connection = undefined;
      if (answer instanceof Error) {
        again();
        return;
      }
      opened.destroy();
      isRunning = false;
      onAnswer();
    });
  }

  function again(): void {
    if (!closed) cancelNext = clock.after(pauseMs, attempt);
  }

  return {
    start() {
      if (isRunning || closed) return;
      isRunning = true;
      attempt();
    },
    close() {
      closed = true;
      cancelNext?.();
      connection?.destroy();
    },
  };
}
