// One client's HTTP/2 connection: is it alive, and when is it closed. Its streams are calls.
import type { ServerHttp2Session } from 'node:http2';
import type { Clock } from '../../shared/clock.ts';
import type { AdsLimits } from './limits.ts';

export interface Connection {
  /** A call begins; the returned function says that it has ended. `abandon` also closes the
   * connection when there is no other call on it: a socket that nobody reads never drains. */
  openCall(): { readonly closed: () => void; readonly abandon: () => void };
  /** Lets the calls end, takes no more. */
  close(): void;
  destroy(): void;
}

export interface ConnectionDeps {
  readonly clock: Clock;
  readonly limits: AdsLimits;
  readonly onClose: () => void;
}

export function createConnection(
  session: ServerHttp2Session,
  { clock, limits, onClose }: ConnectionDeps,
): Connection {
  let calls = 0;
  let cancelTimer = clock.after(limits.keepaliveMs, checkLife);

  function checkLife(): void {
    if (calls === 0) {
      // Nothing was asked for a whole period: the client can come back when it has something to ask.
      session.close();
    }
    cancelTimer = clock.after(limits.keepaliveTimeoutMs, () => session.destroy());
    // When it cannot be sent the connection is about to close, and the timer sees to it that it does.
    session.ping((error) => {
      if (error !== null || session.destroyed) return;
      cancelTimer();
      cancelTimer = clock.after(limits.keepaliveMs, checkLife);
    });
  }

  // What breaks a connection closes it too; its calls see that they are closed.
  session.on('error', () => {});
  session.once('close', () => {
    cancelTimer();
    onClose();
  });

  return {
    openCall() {
      calls++;
      let isOpen = true;
      const closed = (): void => {
        if (isOpen) calls--;
        isOpen = false;
      };
      return {
        closed,
        abandon() {
          closed();
          if (calls === 0) session.destroy();
        },
      };
    },
    close: () => session.close(),
    destroy: () => session.destroy(),
  };
}
