// One client's HTTP/2 connection: is it alive, how is it used, and when is it closed. Its streams are calls. A class, as
// are its calls: ten thousand connections stay for days, and a method for all of them takes less than a function for each.
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
  /** Said by the client, or by us. */
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
    // An error closes the connection too; its calls see that they are closed.
    session.on('error', ignoreError);
    session.on('close', () => {
      this.#cancelTimer();
      deps.onClose(session);
    });
  }

  get lastAskedMs(): number | undefined {
    return this.#lastAskedMs;
  }

  /** Busy while a call is open that has asked something: a worker waits for what may never change. */
  get isBusy(): boolean {
    return this.#askingCalls > 0;
  }

  /** It has ended, or does not answer, and the client has not said goodbye (GOAWAY), nor was it ended here. */
  get isBroken(): boolean {
    return !this.#hasGoodbye && (this.#session.destroyed || this.#session.socket.destroyed);
  }

  callOpened(): void {
    this.#calls++;
  }

  /** `isFirst`: of this call. */
  callAsked(isFirst: boolean): void {
    this.#lastAskedMs = this.#deps.clock.monotonicMs();
    if (isFirst) this.#askingCalls++;
  }

  /** Once for each call. */
  callClosed(hasAsked: boolean): void {
    this.#calls--;
    if (hasAsked) this.#askingCalls--;
  }

  /** For a call whose client does not read: a socket that nobody reads never drains. */
  closeUnlessCalled(): void {
    if (this.#calls === 0) this.close();
  }

  /** Lets the calls end, takes no more. */
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
    // Nothing was asked for a whole period: the client can come back when it has something to ask.
    if (this.#calls === 0) this.goAway();
    const { clock, limits } = this.#deps;
    this.#cancelTimer = clock.after(limits.keepaliveTimeoutMs, () => session.destroy());
    // Its end may come at once, or be on its way here: what is destroyed throws when it is pinged.
    if (session.destroyed) return;
    // When it cannot be sent the connection is about to close, and the timer sees to it that it does.
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
