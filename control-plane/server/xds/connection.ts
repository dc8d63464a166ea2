// One client's HTTP/2 connection: whether it is alive, how it is used, and when it is closed. Its streams are calls.
// Connections and calls are classes: ten thousand connections stay open for days, and shared methods take less memory
// than a function for each.
import type { ServerHttp2Session } from 'node:http2';
import type { Clock } from '../../../shared/clock.ts';
import type { ConnectionUse } from '../../../shared/connection-limit.ts';
import type { AdsLimits } from './limits.ts';

export interface ConnectionDeps {
  readonly clock: Clock;
  readonly limits: AdsLimits;
  readonly onClose: (session: ServerHttp2Session) => void;
}

export class Connection implements ConnectionUse {
  /** `<host>:<port>` of the peer. */
  readonly peerAddress: string;
  readonly #session: ServerHttp2Session;
  readonly #deps: ConnectionDeps;
  #calls = 0;
  #askingCalls = 0;
  #lastAskedMs: number | undefined;
  /** Sent by the client, or by us. */
  #hasGoodbye = false;
  #cancelTimer: () => void;

  constructor(session: ServerHttp2Session, deps: ConnectionDeps) {
    this.#session = session;
    this.#deps = deps;
    this.peerAddress = toPeerAddress(session.socket);
    this.#cancelTimer = this.#checkLifeLater();
    session.on('goaway', () => {
      this.#hasGoodbye = true;
    });
    // An error closes the connection too; its calls notice that they are closed.
    session.on('error', ignoreError);
    session.on('close', () => {
      this.#cancelTimer();
      deps.onClose(session);
    });
  }

  get lastAskedMs(): number | undefined {
    return this.#lastAskedMs;
  }

  /** Busy while a call is open that has sent a request: a worker waits for changes that may never come. */
  get isBusy(): boolean {
    return this.#askingCalls > 0;
  }

  /** The connection has ended or does not answer, without a goodbye (GOAWAY) from the client, and was not ended here. */
  get isBroken(): boolean {
    return !this.#hasGoodbye && (this.#session.destroyed || this.#session.socket.destroyed);
  }

  callOpened(): void {
    this.#calls++;
  }

  /** `isFirst`: whether it is the first request of this call. */
  callAsked(isFirst: boolean): void {
    this.#lastAskedMs = this.#deps.clock.monotonicMs();
    if (isFirst) this.#askingCalls++;
  }

  /** Called once for each call. */
  callClosed(hasAsked: boolean): void {
    this.#calls--;
    if (hasAsked) this.#askingCalls--;
  }

  /** Closes for a call whose client does not read: a socket without a reader never drains. */
  closeUnlessCalled(): void {
    if (this.#calls === 0) this.close();
  }

  /** Lets the open calls end, and accepts no new ones. */
  goAway(): void {
    this.#hasGoodbye = true;
    this.#session.close();
  }

  /** Closes at once. */
  close(): void {
    this.#hasGoodbye = true;
    this.#session.destroy();
  }

  #checkLifeLater(): () => void {
    return this.#deps.clock.after(this.#deps.limits.keepaliveMs, () => this.#checkLife());
  }

  #checkLife(): void {
    const session = this.#session;
    // No request for a whole period: the client can reconnect when it needs to.
    if (this.#calls === 0) this.goAway();
    const { clock, limits } = this.#deps;
    this.#cancelTimer = clock.after(limits.keepaliveTimeoutMs, () => session.destroy());
    // The end of the session may be immediate or still pending: pinging a destroyed session throws.
    if (session.destroyed) return;
    // If the ping cannot be sent, the connection is about to close, and the timer makes sure that it does.
    session.ping((error) => {
      if (error !== null || session.destroyed) return;
      this.#cancelTimer();
      this.#cancelTimer = this.#checkLifeLater();
    });
  }
}

function toPeerAddress({ remoteAddress = 'unknown', remotePort }: PeerSocket): string {
  const host = remoteAddress.includes(':') ? `[${remoteAddress}]` : remoteAddress;
  return remotePort === undefined ? host : `${host}:${remotePort}`;
}

type PeerSocket = Pick<ServerHttp2Session['socket'], 'remoteAddress' | 'remotePort'>;

function ignoreError(): void {}
