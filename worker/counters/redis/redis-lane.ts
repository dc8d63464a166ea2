// A lane to Redis: maintains one connection, reconnects when it ends, and carries one batch at a time over it, in rounds
// of commands and replies. batching.ts decides when batches are sent.
import type { Clock } from '../../../shared/clock.ts';
import { errorText } from '../../../shared/errors.ts';
import { backoffDelayMs } from '../../backoff.ts';
import type { Batch } from './batch.ts';
import { type CommandText, type Connection, isLost, type RawReply } from './connection.ts';

const retries = {
  initialMs: 50,
  /** Below a second, so that decisions are answered within a second after the server recovers. */
  maxMs: 500,
  multiplier: 2,
  random: undefined,
};
/** If a new connection ends with a replica's refusal sooner than this, the next one will probably lead there too. */
const readonlyAgainMs = 1_000;
/** Grace beyond the timeout before a connection without an answer is dropped. */
const resetGraceMs = 25;

export interface RedisLaneDeps {
  readonly clock: Clock;
  readonly open: (signal: AbortSignal) => Promise<Connection>;
  /** Time limit of each answer. */
  readonly timeoutMs: number;
  /** A connection of about this age is replaced once nothing is in flight; undefined for never. */
  readonly maxAgeMs: number | undefined;
  /** Whether to reconnect when a connection has ended. */
  readonly reconnects: boolean;
  /** Whether a connection ends when the server refuses to write because it is a replica. */
  readonly closeOnReadonlyError: boolean;
  readonly onOpen: () => void;
  /**
   * Called when the connection ended, by itself or by this lane; if another follows, its attempt has started or is
   * scheduled.
   */
  readonly onEnd: (reason: string, byUs: boolean) => void;
  /** In a cluster: sends exactly those commands again that another node has to execute. */
  readonly redirect: Redirect | undefined;
  /** Called when an attempt of the lane itself to connect failed; the lane continues to try. */
  readonly onFailure: (reason: string) => void;
}

/** Calls `done` with the replies, in which the other nodes' replies replace redirections. */
export type Redirect = (
  commands: readonly CommandText[],
  replies: RawReply[],
  done: (replies: RawReply[]) => void,
) => void;

/** Is called with the outcome of a batch. */
export interface BatchOwner {
  /** The server of the lane has answered a round; nodes to which it redirected commands may still have to. */
  answered(): void;
  /** Everything is answered, and the lane is free. */
  finished(batch: Batch): void;
}

export class RedisLane {
  readonly #deps: RedisLaneDeps;
  readonly #clock;
  #closed = false;
  /** Aborted to end attempts; later attempts get a new one. */
  #attempts = new AbortController();
  #connection: Connection | undefined;
  /** The batch that it carries. */
  #batch: Batch | undefined;
  /** When the last round of the batch was sent. */
  #sentMs = 0;
  /** Whether the server has answered that round; other nodes of a cluster may still have to. */
  #isAnswered = false;
  /** The number of unanswered sends of the connection. */
  #pending = 0;
  #isOld = false;
  #cancelAging: (() => void) | undefined;
  #opening: Promise<void> | undefined;
  #staysOpen = false;
  #openedMs = 0;
  /** Consecutive failed attempts, and connections that again led to a read-only replica. */
  #failures = 0;
  #cancelRetry: (() => void) | undefined;

  constructor(deps: RedisLaneDeps) {
    this.#deps = deps;
    this.#clock = deps.clock;
  }

  /** Makes one attempt to connect. After the first success the lane reconnects by itself. */
  tryToOpen(signal: AbortSignal): Promise<void> {
    if (this.#connection !== undefined) return Promise.resolve();
    // Concurrent calls wait for the same attempt: there is one connection.
    if (this.#opening === undefined) {
      const own = this.#openConnection(AbortSignal.any([signal, this.#attempts.signal])).finally(
        () => {
          if (this.#opening === own) this.#opening = undefined;
        },
      );
      this.#opening = own;
    }
    return this.#opening;
  }

  async #openConnection(signal: AbortSignal): Promise<void> {
    const opened = await this.#deps.open(signal);
    if (signal.aborted) {
      opened.destroy();
      throw new Error('the attempt to connect was cancelled');
    }
    this.#connection = opened;
    // Not later: a connection that has ended already is followed by another attempt.
    this.#opening = undefined;
    this.#pending = 0;
    this.#openedMs = this.#clock.monotonicMs();
    this.#watchAge();
    this.#deps.onOpen();
    void opened.ended.then((reason) => {
      // A connection that the lane has ended is no longer the current one.
      if (this.#connection !== opened) return;
      this.#connection = undefined;
      this.#cancelAging?.();
      this.#ended(reason, false);
    });
  }

  #watchAge(): void {
    this.#isOld = false;
    if (this.#deps.maxAgeMs === undefined) return;
    // With jitter, so that the connections of a pool are not replaced at the same time.
    this.#cancelAging = this.#clock.after(this.#deps.maxAgeMs * (0.9 + Math.random() / 10), () => {
      this.#isOld = true;
      this.#endWhenOld();
    });
  }

  #endWhenOld(): void {
    if (this.#isOld && this.#pending === 0) this.#endByUs('it was due to be replaced');
  }

  /** Writes a batch; the connection is not replaced before `done` is called. */
  #write(
    connection: Connection,
    commands: readonly CommandText[],
    redirect: Redirect | undefined,
    done: (replies: RawReply[]) => void,
    onAnswer = () => {},
  ): void {
    this.#pending++;
    connection.send(commands, (replies) => {
      if (!isLost(replies[0])) onAnswer();
      if (redirect === undefined) this.#finish(connection, replies, done);
      else redirect(commands, replies, (all) => this.#finish(connection, all, done));
    });
  }

  #finish(connection: Connection, replies: RawReply[], done: (replies: RawReply[]) => void): void {
    if (this.#connection === connection) this.#pending--;
    done(replies);
    if (this.#connection === connection) this.#endWhenOld();
  }

  /** Connects, unless it is connected, and stays connected until `halt` or `close`. */
  stayOpen(): void {
    if (this.#staysOpen) return;
    this.#staysOpen = true;
    if (this.#connection === undefined) this.#openAgain();
  }

  #openAgain(): void {
    if (this.#closed) return;
    this.#staysOpen = true;
    const { signal } = this.#attempts;
    this.tryToOpen(signal).catch((error: unknown) => {
      if (signal.aborted) return;
      this.#openLater();
      this.#deps.onFailure(errorText(error));
    });
  }

  #openLater(): void {
    this.#staysOpen = true;
    const delayMs = backoffDelayMs(retries, this.#failures);
    this.#failures++;
    // With jitter, so that workers do not all reconnect at the same time.
    this.#cancelRetry = this.#clock.after(delayMs * (0.5 + Math.random() / 2), () =>
      this.#openAgain(),
    );
  }

  #ended(reason: string, byUs: boolean): void {
    this.#failures = 0;
    if (this.#deps.reconnects) this.#openAgain();
    this.#deps.onEnd(reason, byUs);
  }

  #endByUs(reason: string): void {
    if (this.#destroyConnection()) this.#ended(reason, true);
  }

  /**
   * Ends a connection to a replica: the next one may lead to the new master. Until then attempts have pauses, as
   * without a server.
   */
  #endReadonly(): void {
    const reason = 'the server is a read-only replica';
    if (!this.#deps.reconnects || this.#clock.monotonicMs() - this.#openedMs >= readonlyAgainMs) {
      this.#endByUs(reason);
    } else if (this.#destroyConnection()) {
      this.#openLater();
      this.#deps.onEnd(reason, true);
    }
  }

  #destroyConnection(): boolean {
    const ending = this.#connection;
    if (ending === undefined) return false;
    this.#connection = undefined;
    this.#cancelAging?.();
    ending.destroy();
    return true;
  }

  /** Ends the connection and all attempts until `stayOpen`. */
  halt(reason: string): void {
    this.#staysOpen = false;
    this.#attempts.abort();
    this.#attempts = new AbortController();
    this.#opening = undefined;
    this.#cancelRetry?.();
    if (!this.#destroyConnection()) return;
    this.#failures = 0;
    this.#deps.onEnd(reason, true);
  }

  /** Ends the connection and all attempts. Idempotent. */
  close(): void {
    this.#closed = true;
    this.halt('closed');
    this.#attempts.abort();
  }

  /** Connected and without a batch. */
  get isFree(): boolean {
    return this.#batch === undefined && this.#connection !== undefined;
  }

  get batch(): Batch | undefined {
    return this.#batch;
  }

  get awaitsAnswer(): boolean {
    return this.#batch !== undefined && !this.#isAnswered;
  }

  /** Sends a batch, if `isFree`. Nothing is ever sent twice. */
  carry(batch: Batch, owner: BatchOwner): void {
    this.#batch = batch;
    this.#sendRound(batch, batch.start(), owner);
  }

  #sendRound(batch: Batch, commands: readonly CommandText[], owner: BatchOwner): void {
    this.#sentMs = this.#clock.monotonicMs();
    this.#isAnswered = false;
    const onAnswer = () => {
      this.#isAnswered = true;
      owner.answered();
    };
    this.#send(commands, (replies) => this.#receive(batch, replies, owner), onAnswer);
  }

  #receive(batch: Batch, replies: readonly RawReply[], owner: BatchOwner): void {
    const { commands, expires } = batch.receive(replies);
    if (expires.length > 0) {
      const texts = expires.map((increment) => increment.toExpireCommand());
      this.#send(texts, (answers) => {
        for (const [index, increment] of expires.entries()) {
          if (answers[index] === 1) increment.confirmExpire();
        }
      });
    }
    if (commands.length > 0) {
      this.#sendRound(batch, commands, owner);
    } else {
      this.#batch = undefined;
      owner.finished(batch);
    }
  }

  /**
   * Calls `done` once, later, with one reply for each command: an Error for each unanswered one when the connection is
   * lost. `onAnswer` is called before `done`, when the server itself has answered.
   */
  #send(
    commands: readonly CommandText[],
    done: (replies: RawReply[]) => void,
    onAnswer?: () => void,
  ): void {
    const connection = this.#connection;
    if (connection === undefined) {
      setImmediate(() => done(commands.map(() => new Error('no connection'))));
      return;
    }
    const { closeOnReadonlyError, redirect } = this.#deps;
    const endIfReadonly = (replies: RawReply[]) => {
      done(replies);
      if (this.#connection === connection && replies.some(isReadonlyError)) this.#endReadonly();
    };
    this.#write(
      connection,
      commands,
      redirect,
      closeOnReadonlyError ? endIfReadonly : done,
      onAnswer,
    );
  }

  /** Sends commands beside the batch, as Connection.send does. False without a connection. */
  sendCommands(commands: readonly CommandText[], done: (replies: RawReply[]) => void): boolean {
    const connection = this.#connection;
    if (connection === undefined) return false;
    const cancelTimeout = this.#clock.after(this.#deps.timeoutMs, () => connection.destroy());
    this.#write(connection, commands, undefined, (replies) => {
      cancelTimeout();
      done(replies);
    });
    return true;
  }

  get isOpen(): boolean {
    return this.#connection !== undefined;
  }

  /** Drops the connection if the server has not answered the batch in time, and reconnects. */
  resetIfSilent(nowMs: number): void {
    const { timeoutMs } = this.#deps;
    if (!this.awaitsAnswer || nowMs < this.#sentMs + timeoutMs + resetGraceMs) return;
    this.#endByUs(`no answer in ${timeoutMs} ms`);
  }
}

/** Detects the error also within that of a script. */
function isReadonlyError(reply: RawReply): boolean {
  return reply instanceof Error && /(^|[ -])READONLY /.test(reply.message);
}
