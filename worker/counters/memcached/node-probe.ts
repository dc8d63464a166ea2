// Finds out when a server that is away answers again: one short connection after the other asks for
// its version. What else is sent meanwhile, namely nothing, is left to the lanes.
import type { Clock } from '../../../shared/clock.ts';
import type { Connection } from './connection.ts';

/** Between two attempts. */
const pauseMs = 250;

export interface NodeProbeDeps {
  readonly open: (onEnd: () => void) => Promise<Connection>;
  readonly clock: Clock;
  /** It has answered; the probe is over. */
  readonly onAnswer: () => void;
}

export interface NodeProbe {
  /** Begins, unless it has begun. */
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
