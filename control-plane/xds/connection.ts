// One client's HTTP/2 connection: is it alive, how is it used, and when is it closed. Its streams are
// calls.
import type { ServerHttp2Session } from 'node:http2';
import type { Clock } from '../../shared/clock.ts';
import type { ConnectionUse } from '../../shared/connection-limit.ts';
import type { AdsLimits } from './limits.ts';

export interface Connection {
  openCall(): ConnectionCall;
  /** Busy while a call is open that has asked something: a worker waits for what may never change. */
  readonly use: ConnectionUse;
  /** It has ended, or does not answer, and the client has not said goodbye (GOAWAY), nor was it ended here. */
  readonly isBroken: () => boolean;
  /** Lets the calls end, takes no more. */
  close(): void;
  destroy(): void;
}

/** A call that has begun. */
export interface ConnectionCall {
  /** Its request has come. */
  readonly asked: () => void;
  readonly closed: () => void;
  /** It ends with the connection, unless there is another call on it: a socket that nobody reads never
   * drains. */
  readonly abandon: () => void;
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
  let askingCalls = 0;
  let lastAskedMs: number | undefined;
  /** Said by the client, or by us. */
  let hasGoodbye = false;
  let cancelTimer = clock.after(limits.keepaliveMs, checkLife);

  function checkLife(): void {
    if (calls === 0) {
      // Nothing was asked for a whole period: the client can come back when it has something to ask.
      close();
    }
    cancelTimer = clock.after(limits.keepaliveTimeoutMs, () => session.destroy());
    // Its end may come at once, or be on its way here: what is destroyed throws when it is pinged.
    if (session.destroyed) return;
    // When it cannot be sent the connection is about to close, and the timer sees to it that it does.
    session.ping((error) => {
      if (error !== null || session.destroyed) return;
      cancelTimer();
      cancelTimer = clock.after(limits.keepaliveMs, checkLife);
    });
  }

  function close(): void {
    hasGoodbye = true;
    session.close();
  }

  function destroy(): void {
    hasGoodbye = true;
    session.destroy();
  }

  session.on('goaway', () => {
    hasGoodbye = true;
  });
  // What breaks a connection closes it too; its calls see that they are closed.
  session.on('error', () => {});
  session.on('close', () => {
    cancelTimer();
    onClose();
  });

  return {
    openCall() {
      calls++;
      let isOpen = true;
      let hasAsked = false;
      const closed = (): void => {
        if (!isOpen) return;
        isOpen = false;
        calls--;
        if (hasAsked) askingCalls--;
      };
      return {
        asked() {
          lastAskedMs = clock.monotonicMs();
          if (hasAsked || !isOpen) return;
          hasAsked = true;
          askingCalls++;
        },
        closed,
        abandon() {
          closed();
          if (calls === 0) destroy();
        },
      };
    },
    use: {
      get lastAskedMs() {
        return lastAskedMs;
      },
      get isBusy() {
        return askingCalls > 0;
      },
      close: destroy,
    },
    isBroken: () => !hasGoodbye && (session.destroyed || session.socket.destroyed),
    close,
    destroy,
  };
}
