// A lane to Redis: keeps one connection open, reconnects when it ends, and sends commands over it.
// batching.ts decides when batches are sent.
import { backoffDelayMs } from '../../../shared/backoff.ts';
import type { Clock } from '../../../shared/clock.ts';
import { errorText } from '../../../shared/errors.ts';
import { isReadonly } from './batch.ts';
import type { Lane } from './batching.ts';
import { type CommandText, type Connection, isLost, type RawReply } from './connection.ts';

const retries = {
  initialMs: 50,
  /** Below a second, so that decisions are answered within one of the server's return. */
  maxMs: 500,
  multiplier: 2,
  random: undefined,
};
/** If a new connection ends with a replica's refusal sooner than this, the next one probably leads there
 * too. */
const readonlyAgainMs = 1_000;

export interface RedisLaneDeps {
  readonly clock: Clock;
  readonly open: (signal: AbortSignal) => Promise<Connection>;
  /** Time limit of answers to commands beside a batch. */
  readonly timeoutMs: number;
  /** At about this age a connection is replaced once nothing is in flight; undefined: never. */
  readonly maxAgeMs: number | undefined;
  /** Whether to reconnect when a connection has ended. */
  readonly reconnects: boolean;
  /** Whether a connection ends when the server refuses to write because it is a replica. */
  readonly closeOnReadonlyError: boolean;
  readonly onOpen: () => void;
  /**
   * The connection ended, by itself or by us; if another follows, its attempt has started or is scheduled.
   */
  readonly onEnd: (reason: string, byUs: boolean) => void;
  /** In a cluster: sends again exactly the commands that another node has to execute. */
  readonly redirect: Redirect | undefined;
  /** An attempt of the lane itself to connect failed; it keeps trying. */
  readonly onFailure: (reason: string) => void;
}

/** `done` gets the replies, with redirections replaced by the other nodes' replies. */
export type Redirect = (
  commands: readonly CommandText[],
  replies: RawReply[],
  done: (replies: RawReply[]) => void,
) => void;

export interface RedisLane extends Lane {
  /** One attempt to connect. Once one has succeeded the lane reconnects by itself. */
  tryToOpen(signal: AbortSignal): Promise<void>;
  /** Connects, unless it is connected, and stays connected until `halt` or `close`. */
  keepOpen(): void;
  /** Ends the connection and all attempts until `keepOpen`. */
  halt(reason: string): void;
  /** Sends commands beside the batch, as Connection.send. False when there is no connection. */
  sendCommands(commands: readonly CommandText[], done: (replies: RawReply[]) => void): boolean;
  /** Ends the connection and all attempts. Idempotent. */
  close(): void;
}

export function createRedisLane(deps: RedisLaneDeps): RedisLane {
  const { clock } = deps;
  let closed = false;
  /** Aborted to end attempts; later ones get a new one. */
  let attempts = new AbortController();
  let connection: Connection | undefined;
  /** Unanswered sends of the connection. */
  let pending = 0;
  let isOld = false;
  let cancelAging: (() => void) | undefined;
  let opening: Promise<void> | undefined;
  let isKept = false;
  let openedMs = 0;
  /** Consecutive failed attempts, and connections that led to a read-only replica again. */
  let failures = 0;
  let cancelRetry: (() => void) | undefined;

  return {
    get ready() {
      return connection !== undefined;
    },
    send,
    reset: (reason) => endByUs(reason),
    tryToOpen,
    keepOpen,
    halt,
    sendCommands,
    close,
  };

  function tryToOpen(signal: AbortSignal): Promise<void> {
    if (connection !== undefined) return Promise.resolve();
    // Concurrent calls wait for the same attempt: there is one connection.
    if (opening === undefined) {
      const own = openConnection(AbortSignal.any([signal, attempts.signal])).finally(() => {
        if (opening === own) opening = undefined;
      });
      opening = own;
    }
    return opening;
  }

  async function openConnection(signal: AbortSignal): Promise<void> {
    const opened = await deps.open(signal);
    if (signal.aborted) {
      opened.destroy();
      throw new Error('the attempt to connect was given up');
    }
    connection = opened;
    pending = 0;
    openedMs = clock.monotonicMs();
    watchAge();
    deps.onOpen();
    void opened.ended.then((reason) => {
      // A connection that we ended is no longer the current one.
      if (connection !== opened) return;
      connection = undefined;
      cancelAging?.();
      ended(reason, false);
    });
  }

  function watchAge(): void {
    isOld = false;
    if (deps.maxAgeMs === undefined) return;
    // With jitter, so that the connections of a pool are not replaced at once.
    cancelAging = clock.after(deps.maxAgeMs * (0.9 + Math.random() / 10), () => {
      isOld = true;
      endWhenOld();
    });
  }

  function endWhenOld(): void {
    if (isOld && pending === 0) endByUs('it was due to be replaced');
  }

  /** The connection is not replaced before `done` has been called. */
  function write(
    carrier: Connection,
    commands: readonly CommandText[],
    redirect: Redirect | undefined,
    done: (replies: RawReply[]) => void,
    onAnswer = () => {},
  ): void {
    pending++;
    carrier.send(commands, (replies) => {
      if (!isLost(replies[0])) onAnswer();
      if (redirect === undefined) finish(carrier, replies, done);
      else redirect(commands, replies, (all) => finish(carrier, all, done));
    });
  }

  function finish(
    carrier: Connection,
    replies: RawReply[],
    done: (replies: RawReply[]) => void,
  ): void {
    if (connection === carrier) pending--;
    done(replies);
    if (connection === carrier) endWhenOld();
  }

  function keepOpen(): void {
    if (isKept) return;
    isKept = true;
    if (connection === undefined) openAgain();
  }

  function openAgain(): void {
    if (closed) return;
    isKept = true;
    const { signal } = attempts;
    tryToOpen(signal).catch((error: unknown) => {
      if (signal.aborted) return;
      openLater();
      deps.onFailure(errorText(error));
    });
  }

  function openLater(): void {
    isKept = true;
    const delayMs = backoffDelayMs(retries, failures);
    failures++;
    // With jitter, so that many workers do not reconnect in step.
    cancelRetry = clock.after(delayMs * (0.5 + Math.random() / 2), openAgain);
  }

  function ended(reason: string, byUs: boolean): void {
    failures = 0;
    if (deps.reconnects) openAgain();
    deps.onEnd(reason, byUs);
  }

  function endByUs(reason: string): void {
    if (destroyConnection()) ended(reason, true);
  }

  /** The next connection may lead to the new master. Until then attempts have pauses, as without a server. */
  function endReadonly(): void {
    const reason = 'the server is a read-only replica';
    if (!deps.reconnects || clock.monotonicMs() - openedMs >= readonlyAgainMs) {
      endByUs(reason);
    } else if (destroyConnection()) {
      openLater();
      deps.onEnd(reason, true);
    }
  }

  function destroyConnection(): boolean {
    const ending = connection;
    if (ending === undefined) return false;
    connection = undefined;
    cancelAging?.();
    ending.destroy();
    return true;
  }

  function halt(reason: string): void {
    isKept = false;
    attempts.abort();
    attempts = new AbortController();
    opening = undefined;
    cancelRetry?.();
    if (!destroyConnection()) return;
    failures = 0;
    deps.onEnd(reason, true);
  }

  function close(): void {
    closed = true;
    halt('closed');
    attempts.abort();
  }

  function send(
    commands: readonly CommandText[],
    done: (replies: RawReply[]) => void,
    onAnswer?: () => void,
  ): void {
    const carrier = connection;
    if (carrier === undefined) {
      setImmediate(() => done(commands.map(() => new Error('no connection'))));
      return;
    }
    const endIfReadonly = (replies: RawReply[]) => {
      done(replies);
      if (connection === carrier && replies.some(isReadonlyError)) endReadonly();
    };
    const { closeOnReadonlyError, redirect } = deps;
    write(carrier, commands, redirect, closeOnReadonlyError ? endIfReadonly : done, onAnswer);
  }

  function sendCommands(
    commands: readonly CommandText[],
    done: (replies: RawReply[]) => void,
  ): boolean {
    const carrier = connection;
    if (carrier === undefined) return false;
    const cancelTimeout = clock.after(deps.timeoutMs, () => carrier.destroy());
    write(carrier, commands, undefined, (replies) => {
      cancelTimeout();
      done(replies);
    });
    return true;
  }
}

function isReadonlyError(reply: RawReply): boolean {
  return reply instanceof Error && isReadonly(reply.message);
}
