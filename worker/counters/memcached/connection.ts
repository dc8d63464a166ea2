// One connection to one memcached server, in the text protocol, from its opening to its end. It never
// reconnects and never sends anything twice; memcached-lane.ts opens the next one.
//
// A thin client of our own: those on npm choose the server in other ways (the reference's is CRC-32
// modulo), lack `gets`, speak the binary protocol, or send commands again after a failure.
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, type SecureContext } from 'node:tls';
import type { Clock } from '../../../shared/clock.ts';
import { errorText } from '../../../shared/errors.ts';
import type { HostPort } from '../../../shared/host-port.ts';
import type { Duration } from '../../metrics.ts';
import { ReplyReader } from './reply-reader.ts';

/** The values of a `gets` by key, or the answer's line, or the end of the connection. */
export type Answer = ReadonlyMap<string, string | undefined> | string | Error;

export interface Connection {
  /** Writes one command, its line end included. `onAnswer` is called once, never from inside. */
  send(command: string, onAnswer: (answer: Answer) => void): void;
  /** Ends it at once, with everything in flight. */
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
  /** Time limit of the opening, and of each answer; then the connection ends. */
  readonly timeoutMs: number;
  readonly callDuration: Duration;
  readonly clock: Clock;
  /** Called once when an open connection ends, before its unanswered commands fail. `wasSilent`: an answer
   * did not come in time. */
  readonly onEnd: (reason: Error, wasSilent: boolean) => void;
}

const keepAliveMs = 10_000;
/** At most this many answered commands are kept, or as many as are unanswered; then the list is compacted. */
const longestTail = 32;

/** Rejects with an Error whose message says what failed. */
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
      if (!isOver) fail(new Error(`no answer to the attempt to connect in ${timeoutMs} ms`));
    };
    // After a pause of this process the answer may be there and unread: it gets a chance to be seen.
    const cancelTimeout = clock.after(timeoutMs, () => setImmediate(giveUp));
    const fail = (error?: Error) => {
      isOver = true;
      cancelTimeout();
      socket.destroy();
      reject(new Error(toConnectionText(error)));
    };
    const onClose = () => fail();
    socket.once('error', fail);
    socket.once('close', onClose);
    socket.once(tls === undefined ? 'connect' : 'secureConnect', () => {
      isOver = true;
      cancelTimeout();
      socket.off('error', fail);
      socket.off('close', onClose);
      resolve(createConnection(socket, deps));
    });
  });
}

interface Sent {
  readonly onAnswer: (answer: Answer) => void;
  readonly sentMs: number;
  /** The last of those that were written together, whose answer ends the call. */
  isLast: boolean;
}

function createConnection(socket: Socket, deps: ConnectionDeps): Connection {
  const { timeoutMs, callDuration, clock, onEnd } = deps;
  let unanswered: Sent[] = [];
  /** Index of the first unanswered command, so that removing one does not move the others. */
  let head = 0;
  let values: Map<string, string | undefined> | undefined;
  let outgoing = '';
  let outgoingMs = 0;
  let ended = false;
  let cancelTimeout: (() => void) | undefined;
  const reader = new ReplyReader({
    onLine: (line) => answer(line === 'END' ? (values ?? new Map()) : line),
    onValue(key, text) {
      values ??= new Map();
      values.set(key, text);
    },
  });
  socket.on('data', (chunk) => {
    const problem = reader.feed(chunk);
    if (problem !== undefined) end(new Error(`it sent ${problem}`));
  });
  socket.on('error', (error) => end(error));
  socket.on('close', () => end(new Error('it closed the connection')));
  return { send, destroy: () => end(new Error('closed')) };

  function send(command: string, onAnswer: Sent['onAnswer']): void {
    if (ended) {
      setImmediate(() => onAnswer(new Error('the connection is closed')));
      return;
    }
    cancelTimeout ??= clock.after(timeoutMs, checkSilence);
    // Commands of one tick are written together.
    if (outgoing === '') {
      outgoingMs = clock.monotonicMs();
      queueMicrotask(write);
    }
    outgoing += command;
    unanswered.push({ onAnswer, sentMs: outgoingMs, isLast: false });
  }

  function write(): void {
    if (!ended) socket.write(outgoing);
    outgoing = '';
    const last = unanswered.at(-1);
    if (last !== undefined) last.isLast = true;
  }

  /** Calls without an answer count as well, until they were given up: else a server would seem to be fast
   * because it does not answer. */
  function observe({ isLast, sentMs }: Sent): void {
    if (isLast) callDuration.observe((clock.monotonicMs() - sentMs) / 1000);
  }

  function answer(given: Answer): void {
    values = undefined;
    const first = unanswered[head];
    if (ended) return;
    if (first === undefined) {
      end(new Error(`it sent an unexpected reply: "${String(given).slice(0, 80)}"`));
      return;
    }
    head++;
    // Answered ones are released even while others are always pending.
    if (head === unanswered.length || (head >= longestTail && 2 * head >= unanswered.length)) {
      unanswered = unanswered.slice(head);
      head = 0;
    }
    observe(first);
    first.onAnswer(given);
  }

  function checkSilence(): void {
    cancelTimeout = undefined;
    const oldest = unanswered[head];
    if (oldest === undefined) return;
    const leftMs = oldest.sentMs + timeoutMs - clock.monotonicMs();
    if (leftMs > 0) {
      cancelTimeout = clock.after(leftMs, checkSilence);
      return;
    }
    // After a pause of this process the answer may be there and unread: it gets a chance to be seen.
    const immediate = setImmediate(() => {
      cancelTimeout = undefined;
      if (unanswered[head] === oldest) end(new Error(`no answer in ${timeoutMs} ms`), true);
      else checkSilence();
    });
    cancelTimeout = () => clearImmediate(immediate);
  }

  function end(reason: Error, wasSilent = false): void {
    if (ended) return;
    ended = true;
    cancelTimeout?.();
    socket.destroy();
    const lost = unanswered.slice(head);
    unanswered = [];
    onEnd(reason, wasSilent);
    for (const sent of lost) {
      observe(sent);
      sent.onAnswer(reason);
    }
  }
}

/** A host name with several addresses fails with an error without text that contains the others. */
function toConnectionText(error: Error | undefined): string {
  if (error instanceof AggregateError && error.message === '') {
    return error.errors.map(errorText).join(', ');
  }
  return error === undefined ? 'it closed the connection' : errorText(error);
}
