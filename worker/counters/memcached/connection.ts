// One connection to one memcached server, in the text protocol, from its opening to its end. It never
// reconnects and never sends anything twice; memcached-lane.ts opens the next one.
//
// A thin client of our own: those on npm choose the server in other ways (the reference's is CRC-32 modulo), lack
// `gets`, speak the binary protocol, or resend commands after a failure.
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, type SecureContext } from 'node:tls';
import type { Clock } from '../../../shared/clock.ts';
import { errorText } from '../../../shared/errors.ts';
import type { HostPort } from '../../../shared/host-port.ts';
import type { Duration } from '../../metrics.ts';
import { ReplyReader } from './reply-reader.ts';

/** The values of a `gets` by key, the line of another answer, or the end of the connection. */
export type Answer = ReadonlyMap<string, string | undefined> | string | Error;

export interface Connection {
  /** Writes one command, which includes its line end. `onAnswer` is called once, never during `send`. */
  send(command: string, onAnswer: (answer: Answer) => void): void;
  /** Ends it at once, with all unanswered commands. */
  destroy(): void;
}

export interface ConnectionTls {
  readonly context: SecureContext;
  /** Whether a certificate for another host name is accepted. */
  readonly skipHostnameVerification: boolean;
}

export interface ConnectionDeps {
  readonly address: HostPort;
  readonly tls: ConnectionTls | undefined;
  /** Time limit of connecting, and of each answer; when it passes the connection ends. */
  readonly timeoutMs: number;
  readonly callDuration: Duration;
  readonly clock: Clock;
  /**
   * Called once when an open connection ends, before its unanswered commands fail. `wasSilent` is true when an answer
   * was late.
   */
  readonly onEnd: (reason: Error, wasSilent: boolean) => void;
}

const keepAliveMs = 10_000;
/** At most this many answered commands stay in the list, or as many as are unanswered; then it is compacted. */
const longestTail = 32;

/** Rejects with an Error whose message describes the failure. */
export function openConnection(deps: ConnectionDeps): Promise<Connection> {
  const { address, tls, timeoutMs, clock } = deps;
  return new Promise((resolve, reject) => {
    const options = {
      ...address,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: keepAliveMs,
    };
    const socket =
      tls === undefined
        ? connectTcp(options)
        : connectTls({
            ...options,
            secureContext: tls.context,
            ...(isIP(address.host) === 0 && { servername: address.host }),
            ...(tls.skipHostnameVerification && { checkServerIdentity: () => undefined }),
          });
    let isOver = false;
    const giveUp = () => {
      if (!isOver) fail(new Error(`could not connect within ${timeoutMs} ms`));
    };
    // After a pause of this process the answer may have arrived unread: this lets it be read first.
    const cancelTimeout = clock.after(timeoutMs, () => setImmediate(giveUp));
    const fail = (error: Error) => {
      isOver = true;
      cancelTimeout();
      socket.destroy();
      reject(new Error(toConnectionText(error)));
    };
    socket.once('error', fail);
    socket.once(tls === undefined ? 'connect' : 'secureConnect', () => {
      isOver = true;
      cancelTimeout();
      socket.off('error', fail);
      resolve(new MemcachedConnection(socket, deps));
    });
  });
}

interface Sent {
  readonly onAnswer: (answer: Answer) => void;
  readonly sentMs: number;
  /** Marks the last of the commands that were written together: its answer ends the call. */
  isLast: boolean;
}

class MemcachedConnection implements Connection {
  readonly #socket: Socket;
  readonly #timeoutMs;
  readonly #callDuration;
  readonly #clock;
  readonly #onEnd;
  #unanswered: Sent[] = [];
  /** Index of the first unanswered command, so that removing one does not move the others. */
  #head = 0;
  #values: Map<string, string | undefined> | undefined;
  #outgoing = '';
  #outgoingMs = 0;
  #ended = false;
  #cancelTimeout: (() => void) | undefined;

  constructor(socket: Socket, deps: ConnectionDeps) {
    this.#socket = socket;
    this.#timeoutMs = deps.timeoutMs;
    this.#callDuration = deps.callDuration;
    this.#clock = deps.clock;
    this.#onEnd = deps.onEnd;
    const reader = new ReplyReader({
      onLine: (line) => this.#answer(line === 'END' ? (this.#values ?? new Map()) : line),
      onValue: (key, text) => {
        this.#values ??= new Map();
        this.#values.set(key, text);
      },
    });
    socket.on('data', (chunk) => {
      const problem = reader.feed(chunk);
      if (problem !== undefined) this.#end(new Error(`it sent ${problem}`));
    });
    socket.on('error', (error) => this.#end(error));
    socket.on('close', () => this.#end(new Error('it closed the connection')));
  }

  /** Writes one command, which includes its line end. `onAnswer` is called once, never during `send`. */
  send(command: string, onAnswer: Sent['onAnswer']): void {
    if (this.#ended) {
      setImmediate(() => onAnswer(new Error('the connection is closed')));
      return;
    }
    this.#cancelTimeout ??= this.#clock.after(this.#timeoutMs, () => this.#checkSilence());
    // Commands of one tick are written together.
    if (this.#outgoing === '') {
      this.#outgoingMs = this.#clock.monotonicMs();
      queueMicrotask(() => this.#write());
    }
    this.#outgoing += command;
    this.#unanswered.push({ onAnswer, sentMs: this.#outgoingMs, isLast: false });
  }

  #write(): void {
    if (!this.#ended) this.#socket.write(this.#outgoing);
    this.#outgoing = '';
    const last = this.#unanswered.at(-1);
    if (last !== undefined) last.isLast = true;
  }

  /**
   * Observes calls without an answer too, until they are abandoned: else a server would seem fast because it does not
   * answer.
   */
  #observe({ isLast, sentMs }: Sent): void {
    if (isLast) this.#callDuration.observe((this.#clock.monotonicMs() - sentMs) / 1000);
  }

  #answer(given: Answer): void {
    this.#values = undefined;
    const first = this.#unanswered[this.#head];
    if (this.#ended) return;
    if (first === undefined) {
      this.#end(new Error(`it sent an unexpected reply: "${String(given).slice(0, 80)}"`));
      return;
    }
    this.#head++;
    // Releases answered commands even while others are always pending.
    if (
      this.#head === this.#unanswered.length ||
      (this.#head >= longestTail && 2 * this.#head >= this.#unanswered.length)
    ) {
      this.#unanswered = this.#unanswered.slice(this.#head);
      this.#head = 0;
    }
    this.#observe(first);
    first.onAnswer(given);
  }

  #checkSilence(): void {
    this.#cancelTimeout = undefined;
    const oldest = this.#unanswered[this.#head];
    if (oldest === undefined) return;
    const leftMs = oldest.sentMs + this.#timeoutMs - this.#clock.monotonicMs();
    if (leftMs > 0) {
      this.#cancelTimeout = this.#clock.after(leftMs, () => this.#checkSilence());
      return;
    }
    // After a pause of this process the answer may have arrived unread: this lets it be read first.
    const immediate = setImmediate(() => {
      if (this.#unanswered[this.#head] === oldest)
        this.#end(new Error(`no answer in ${this.#timeoutMs} ms`), true);
      else this.#checkSilence();
    });
    this.#cancelTimeout = () => clearImmediate(immediate);
  }

  #end(reason: Error, wasSilent = false): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#cancelTimeout?.();
    this.#socket.destroy();
    const lost = this.#unanswered.slice(this.#head);
    this.#unanswered = [];
    this.#onEnd(reason, wasSilent);
    for (const sent of lost) {
      this.#observe(sent);
      sent.onAnswer(reason);
    }
  }

  /** Ends it at once, with all unanswered commands. */
  destroy(): void {
    this.#end(new Error('closed'));
  }
}

/** For a host name with several addresses Node's error has no text, but contains the errors of each. */
function toConnectionText(error: Error): string {
  return error instanceof AggregateError && error.message === ''
    ? error.errors.map(errorText).join(', ')
    : errorText(error);
}
