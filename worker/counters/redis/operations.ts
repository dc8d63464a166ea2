// The commands that count hits on one counter, and what their replies mean; batch.ts sends several together. Uses
// exactly the reference's INCRBY and EXPIRE on its keys, so that both count together (behaviour: redis-commands).
import type { Clock } from '../../../shared/clock.ts';
import { AppError } from '../../../shared/errors.ts';
import type { KnownExpiries } from '../known-expiries.ts';
import { type LimiterCounter, openLimiterCounter } from '../limiter.ts';
import {
  type CountRequest,
  type Hit,
  type LimiterHit,
  type LimiterWindow,
  overflowed,
  settleLimiterHit,
} from '../store.ts';
import {
  type CommandText,
  isLost,
  type RawReply,
  ReplyError,
  toCommandText,
  toIncrementText,
} from './connection.ts';
import { limiterScripts, toArguments, toLimiterText } from './limiter-scripts.ts';
import type { DescribeRemedy } from './remedies.ts';
import type { ScriptSupport } from './script-support.ts';

/** Shared by the operations of one server. */
export interface OperationDeps {
  /** The store's name in errors. */
  readonly name: string;
  readonly knownExpiries: KnownExpiries;
  readonly scripts: ScriptSupport;
  readonly clock: Clock;
  /** A counter's lifetime is its window plus a random whole number of seconds below this. */
  readonly jitterMaxSeconds: number;
  readonly describeRemedy: DescribeRemedy;
}

/** A request from its arrival until it is settled. */
export interface OpenRequest {
  readonly request: CountRequest;
  readonly arrivedMs: number;
  /** The error of the first operation that failed with one of its hits. */
  failure: AppError | undefined;
  /** If true, its hits no longer change: the decision is made. */
  isSettled: boolean;
}

/** A hit in the operation that counts it. */
interface CountedHit {
  readonly hit: Hit;
  /** The number to count: that of the hit, or 0 for a peek. */
  readonly hits: number;
  readonly open: OpenRequest;
  /** The next hit of the operation. Usually an operation has one hit, for which an array would cost more. */
  next: CountedHit | undefined;
}

const none: never[] = [];
/** Sums stay below this, so that they and results computed from them are exact. */
const sumBound = 2 ** 53;
/** How many characters of a key an error shows: requests can make keys very long. */
const shownKeyLength = 200;
/** Errors caused by one counter or its name; all others affect all counters. */
const ofOneCounter = /^(WRONGTYPE|NOPERM|ERR value is not|ERR increment or decrement)/;

/** A change of one counter, or only a reading, by one command. */
export abstract class Operation {
  /** Whether an EXPIRE follows its command. */
  hasExpire = false;
  protected readonly deps: OperationDeps;
  protected readonly key: string;
  /** The first hit, which leads to the others in their order. */
  protected first: CountedHit | undefined;
  #last: CountedHit | undefined;

  constructor(deps: OperationDeps, key: string) {
    this.deps = deps;
    this.key = key;
  }

  add(hit: Hit, hits: number, open: OpenRequest): void {
    const counted = { hit, hits, open, next: undefined };
    if (this.#last === undefined) this.first = counted;
    else this.#last.next = counted;
    this.#last = counted;
  }

  abstract toCommand(nowMs: number): CommandText;

  /**
   * Sets `after` of each hit, or the failure of each request. Returns the operations to send in its place, if the
   * server has not executed it.
   */
  abstract receive(
    reply: RawReply | undefined,
    expireReply: RawReply | undefined,
  ): readonly Operation[];

  protected fail(error: Error): void {
    const failure = this.toFailure(error);
    for (let each = this.first; each !== undefined; each = each.next) each.open.failure ??= failure;
  }

  /** Converts a server's error to ours, and leaves ours as it is. */
  protected toFailure(error: Error): AppError {
    if (error instanceof AppError) return error;
    if (isLost(error)) return this.toError('the connection was lost before the answer came');
    const reason = toReason(error);
    const ofCounter = ofOneCounter.test(reason) ? ` (counter ${this.shownKey})` : '';
    const remedy = this.deps.describeRemedy(reason);
    return this.toError(
      remedy === undefined
        ? reason + ofCounter
        : `${reason.replace(/\.$/, '')}${ofCounter}; ${remedy}`,
    );
  }

  protected toError(text: string): AppError {
    return new AppError('store', `${this.deps.name}: ${text}`);
  }

  protected get shownKey(): string {
    const { key } = this;
    return JSON.stringify(key.length > shownKeyLength ? `${key.slice(0, shownKeyLength)}...` : key);
  }

  protected drawJitter(): number {
    return Math.floor(Math.random() * this.deps.jitterMaxSeconds);
  }

  /** A missing counter is 0. Another program may have set any other value. */
  protected toCounter(reply: RawReply | undefined): number | Error {
    if (typeof reply === 'number' && reply >= 0) return reply;
    if (reply instanceof Error) return reply;
    const isNumber = typeof reply === 'string' && /^-?\d{1,19}$/.test(reply);
    const value = isNumber || reply === null ? Number(reply) : reply;
    if (typeof value !== 'number') return this.toError(`counter ${this.shownKey} is not a number`);
    return value >= 0 ? value : this.toError(`counter ${this.shownKey} is negative: ${value}`);
  }
}

/** Reads a counter, and creates nothing. */
export class Read extends Operation {
  /** Undefined before the reply. */
  counter: number | AppError | undefined;

  toCommand(): CommandText {
    return toCommandText('GET', this.key);
  }

  receive(reply: RawReply | undefined): readonly Operation[] {
    const counter = this.toCounter(reply);
    this.counter = counter instanceof Error ? this.toFailure(counter) : counter;
    return none;
  }
}

/** Adds, and creates the counter with its lifetime, also when the sum is 0. */
export class Increment extends Operation {
  /** Above 2^53 it is rounded, and of one hit. */
  #sum = 0;
  /** The longest window of its hits. */
  #windowSeconds = 0;
  /** Whether the counter may live for ever, unless an EXPIRE is sent once more. */
  lacksExpire = false;

  /** Whether a later hit may be counted with those that it has. */
  accepts(isLimited: boolean, hits: number): boolean {
    return !isLimited && this.#sum + hits < sumBound;
  }

  override add(hit: Hit, hits: number, open: OpenRequest): void {
    super.add(hit, hits, open);
    this.#sum += hits;
    if (hit.windowSeconds > this.#windowSeconds) this.#windowSeconds = hit.windowSeconds;
  }

  toCommand(nowMs: number): CommandText {
    this.hasExpire = !this.deps.knownExpiries.has(this.key, this.#windowSeconds, nowMs);
    const exact = this.#sum < sumBound ? undefined : this.first?.hit.exactHits;
    return toIncrementText(this.key, exact ?? this.#sum);
  }

  toExpireCommand(): CommandText {
    return toCommandText('EXPIRE', this.key, this.#windowSeconds + this.drawJitter());
  }

  receive(reply: RawReply | undefined, expireReply: RawReply | undefined): readonly Operation[] {
    const counter = expireReply instanceof Error ? expireReply : this.toCounter(reply);
    this.#noteLifetime(counter, expireReply);
    if (typeof counter === 'number') this.#setResults(counter);
    else if (!counter.message.includes('would overflow')) this.fail(counter);
    else if (this.first?.next !== undefined) return this.#split();
    else this.#setResults(overflowed);
    return none;
  }

  #noteLifetime(counter: number | Error, expireReply: RawReply | undefined): void {
    const isCounted = typeof counter === 'number';
    if (this.hasExpire) {
      if (expireReply === 1 && this.#sum > 0) this.confirmExpire();
      // A proxy let the EXPIRE overtake the increment: the counter was created later.
      this.lacksExpire = expireReply === 0 && isCounted;
    } else if (!isCounted || counter === this.#sum) {
      // The counter after these hits is their sum: it was missing before, or 0. An increment without an answer may have
      // created it, which the next reply would not show.
      this.deps.knownExpiries.forget(this.key);
      this.lacksExpire = isCounted;
    }
  }

  /** Records the lifetime until the end of the window, after which the counter is no longer used. */
  confirmExpire(): void {
    const { knownExpiries, clock } = this.deps;
    knownExpiries.remember(this.key, this.#windowSeconds, clock.monotonicMs());
  }

  #setResults(counter: number): void {
    let rest = this.#sum;
    for (let each = this.first; each !== undefined; each = each.next) {
      rest -= each.hits;
      if (!each.open.isSettled) each.hit.after = counter - rest;
    }
  }

  /**
   * The sum would have overflowed the counter, and was not added. Each hit by itself, so that those within the bound
   * are counted as if the requests had come one by one.
   */
  #split(): readonly Operation[] {
    const parts: Increment[] = [];
    for (let each = this.first; each !== undefined; each = each.next) {
      if (each.open.isSettled) continue;
      const alone = new Increment(this.deps, this.key);
      alone.#windowSeconds = this.#windowSeconds;
      alone.add(each.hit, each.hits, each.open);
      parts.push(alone);
    }
    return parts;
  }
}

/**
 * Returns the hits (behaviour: refunds). KEYS[1]: the counter; ARGV[1]: the hits. Replies with the counter afterwards,
 * as text. Numbers are compared as decimal texts because Lua's numbers are not exact above 2^53, and subtracted by
 * DECRBY, which keeps the expiry and rejects other values. The full script is sent each time: the server caches the
 * compiled script, and no "unknown script" error follows a failover or SCRIPT FLUSH.
 */
const refundScript = [
  "local c = redis.call('GET', KEYS[1])",
  "if not c or c == '0' or string.sub(c, 1, 1) == '-' then return '0' end",
  'local n = ARGV[1]',
  'if #c < #n or (#c == #n and c < n) then n = c end',
  "redis.call('DECRBY', KEYS[1], n)",
  "return redis.call('GET', KEYS[1])",
].join('\n');

/** Subtracts one hit, stopping at 0; a counter that is missing or not above 0 stays unchanged. */
export class Refund extends Operation {
  toCommand(): CommandText {
    const hit = this.first?.hit;
    return toCommandText('EVAL', refundScript, 1, this.key, String(hit?.exactHits ?? hit?.hits));
  }

  receive(reply: RawReply | undefined): readonly Operation[] {
    const counter = this.toCounter(reply);
    if (typeof counter !== 'number') this.fail(counter);
    else if (this.first?.open.isSettled === false) this.first.hit.after = counter;
    return none;
  }
}

/** Counts hits and refunds on a limiter's counter by its script; without any, only reads it. */
export class LimiterCall extends Operation {
  readonly #window: LimiterWindow;
  /** Pairs: a number of hits (negative for a refund), and how many times in a row it is requested. */
  readonly #runs: number[] = [];
  #sendsScript = false;
  /** As the server had it before, then with the hits. Undefined before the reply. */
  counter: LimiterCounter | AppError | undefined;

  constructor(deps: OperationDeps, key: string, window: LimiterWindow) {
    super(deps, key);
    this.#window = window;
  }

  /** Whether a later hit may be counted with those that it has. */
  accepts(isLimited: boolean): boolean {
    return isLimited;
  }

  override add(hit: Hit, hits: number, open: OpenRequest): void {
    super.add(hit, hits, open);
    const runs = this.#runs;
    const signed = hit.refund ? -hits : hits;
    const last = runs.length - 2;
    if (last >= 0 && runs[last] === signed) (runs[last + 1] as number)++;
    else runs.push(signed, 1);
  }

  toCommand(): CommandText {
    const jitter = this.drawJitter();
    if (!this.#sendsScript) return toLimiterText(this.#window, this.key, jitter, this.#runs);
    const { text } = limiterScripts[this.#window.algorithm];
    const numbers = [...toArguments(this.#window), jitter, ...this.#runs];
    return toCommandText('EVAL', text, 1, this.key, ...numbers);
  }

  receive(reply: RawReply | undefined): readonly Operation[] {
    if (reply instanceof Error && reply.message.startsWith('NOSCRIPT') && !this.#sendsScript) {
      this.#sendsScript = true;
      return [this];
    }
    const counter = this.#toCounter(reply);
    this.counter = counter;
    if (counter instanceof Error) {
      this.fail(counter);
      return none;
    }
    for (let each = this.first; each !== undefined; each = each.next) this.#decide(counter, each);
    return none;
  }

  #toCounter(reply: RawReply | undefined): LimiterCounter | AppError {
    if (reply instanceof Error) return this.toFailure(reply);
    const reading = Array.isArray(reply) ? reply.map(Number) : [];
    if (reading.length < 2 || !reading.every(Number.isFinite)) {
      return this.toError(`counter ${this.shownKey} has a reply that is not a limiter's state`);
    }
    this.deps.scripts.worked();
    return openLimiterCounter(this.#window, reading);
  }

  /** Computes the store's decision about a hit, in its turn. */
  #decide(counter: LimiterCounter, { hit, hits, open }: CountedHit): void {
    if (!open.isSettled) settleLimiterHit(counter, hit, hit.limiter as LimiterHit, hits);
    else if (hit.refund) counter.giveBack(hits);
    else counter.count(hits);
  }

  protected override toFailure(error: Error): AppError {
    const { algorithm } = this.#window;
    const refused =
      error instanceof ReplyError
        ? this.deps.scripts.refused(algorithm, this.shownKey, toReason(error))
        : undefined;
    return refused ?? super.toFailure(error);
  }
}

/** Without the position in a script, which is useless to operators. */
function toReason({ message }: Error): string {
  return message.replace(/ script: [0-9a-f]{40}, on @user_script:\d+\.$/, '');
}
