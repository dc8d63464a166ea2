// One batch: converts the hits of many requests to commands, and the replies to each hit's result. Uses exactly the
// reference's INCRBY and EXPIRE on its keys, so that both count together (behaviour: redis-commands). batching.ts
// decides when and where a batch is sent. This is one file because the meaning of a reply depends on the command, and
// the command on the hits that share it.

import type { Clock } from '../../../shared/clock.ts';
import { AppError } from '../../../shared/errors.ts';
import type { KnownExpiries } from '../known-expiries.ts';
import { LimiterCounter, type LimiterReading, openLimiterCounter } from '../limiter.ts';
import {
  type CountRequest,
  findSuppressed,
  type Hit,
  type LimiterHit,
  type LimiterWindow,
  needsReading,
  overflowed,
  takeHit,
} from '../store.ts';
import {
  type CommandText,
  isLost,
  type RawReply,
  toCommandText,
  toIncrementText,
} from './connection.ts';
import { limiterScripts, toArguments, toLimiterText } from './limiter-scripts.ts';
import type { DescribeRemedy } from './remedies.ts';
import type { ScriptSupport } from './script-support.ts';

/** Shared by the batches of one server. */
export interface BatchDeps {
  /** The store's name in errors. */
  readonly name: string;
  readonly knownExpiries: KnownExpiries;
  readonly scripts: ScriptSupport;
  readonly clock: Clock;
  /** A counter's lifetime is its window plus a random whole number of seconds below this. */
  readonly jitterMaxSeconds: number;
  readonly describeRemedy: DescribeRemedy;
}

/**
 * A refund (behaviour: refunds). KEYS[1]: the counter; ARGV[1]: the hits to return. Replies with the counter
 * afterwards, as text. Numbers are compared as decimal texts because Lua's numbers are not exact above 2^53, and
 * subtracted by DECRBY, which keeps the expiry and rejects other values. The full script is sent each time: the server
 * caches the compiled script, and no "unknown script" error follows a failover or SCRIPT FLUSH.
 */
const refundScript = [
  "local c = redis.call('GET', KEYS[1])",
  "if not c or c == '0' or string.sub(c, 1, 1) == '-' then return '0' end",
  'local n = ARGV[1]',
  'if #c < #n or (#c == #n and c < n) then n = c end',
  "redis.call('DECRBY', KEYS[1], n)",
  "return redis.call('GET', KEYS[1])",
].join('\n');

/** A change of one counter by one command, or by two where an EXPIRE follows. */
interface Operation {
  /**
   * - `read`: replies with the counter, 0 for a missing one; creates nothing.
   * - `add`: adds, creating the counter with its lifetime, also when the amount is 0.
   * - `refund`: subtracts, stopping at 0; a counter that is missing or not above 0 stays unchanged.
   * - `limit`: counts hits on a limiter's counter, and replies with the counter before them.
   */
  readonly kind: 'read' | 'add' | 'refund' | 'limit';
  readonly key: string;
  /** The longest window of its hits. */
  windowSeconds: number;
  /** An integer >= 0; above 2^53 it is rounded and `exactAmount` has the exact number. */
  amount: number;
  exactAmount: bigint | undefined;
  /** How many hits the amount sums up. */
  hitCount: number;
  /** Set for `limit` only. */
  readonly takes: LimiterTakes | undefined;
  /** The lifetime sent with the operation, in seconds; 0 for none. */
  lifetime: number;
  /** The counter after the operation (a limiter's counter before it), or why there is none. */
  reply: number | LimiterReading | Failure | undefined;
}

/** Hits on a limiter's counter, in their order. */
export interface LimiterTakes {
  readonly limiter: LimiterWindow;
  /** Pairs: a number of hits (negative for a refund), and how many times in a row it is requested. */
  readonly runs: number[];
}

/** The reason why an operation has no result. Other operations of the batch are not affected. */
interface Failure {
  readonly error: AppError;
  /** True when the amount would have exceeded the bound: the counter is unchanged. */
  readonly overflow: boolean;
}

/** Commands to send after a reply; none when everything is answered. */
export interface Further {
  /** Commands whose replies go to `take`. */
  readonly commands: readonly CommandText[];
  /** Commands sent beside the batch, which does not wait for them: their replies go to `confirm`. */
  readonly expiries: MissingExpiries | undefined;
}

/** EXPIRE commands of counters that may have no lifetime. */
export interface MissingExpiries {
  readonly operations: Operation[];
  readonly commands: CommandText[];
}

interface UnknownScripts {
  readonly raw: RawReply[];
  readonly positions: readonly number[];
}

const none: readonly CommandText[] = [];

/** Larger numbers of hits are never summed with others, so that an overflow affects no other request. */
const maxSummedHits = 2 ** 31;
/** Sums stay below this, so that they and results computed from them are exact. */
const sumBound = 2 ** 53;
/** Counters are below this. */
const counterBound = 2 ** 63;

/**
 * The requests of one batch, in order of arrival, and their operations. Hits on one key share one increment, but
 * refunds and large numbers of hits have their own operations, and no later hit joins an increment before these
 * (behaviour: as-if-one-by-one).
 */
export class Batch {
  /** Undefined when the request was settled before the batch was answered. */
  readonly requests: (CountRequest | undefined)[] = [];
  readonly #operations: Operation[] = [];
  /** For each request, the index of its first hit in `#operationOf` and `#sumSoFar`. */
  readonly #firstHit: number[] = [];
  /** For each hit: its operation. */
  readonly #operationOf: number[] = [];
  /** For each hit: the sum of its operation up to and including this hit. */
  readonly #sumSoFar: number[] = [];
  /** The operation that later hits may join, by `mapKey`. */
  readonly #open = new Map<string, number>();
  readonly #counters: Counters | undefined;
  readonly #deps: BatchDeps;
  /** How many operations are answered; the commands in flight belong to the following ones. */
  #answered = 0;
  /** Replies that wait for those of scripts unknown to the server, and the indices of these among them. */
  #unknownScripts: UnknownScripts | undefined;
  #hasScripts = false;
  /** The hits on limiters' counters, by the index of the operation. */
  #limited: Map<number, LimiterHits> | undefined;

  /**
   * `counters` has the counters read before, by which `add-unless-over` is decided, and is updated when requests are
   * added. When undefined, such requests are planned as `add`.
   */
  constructor(deps: BatchDeps, counters: Counters | undefined) {
    this.#deps = deps;
    this.#counters = counters;
  }

  /** The number of its operations. */
  get size(): number {
    return this.#operations.length;
  }

  add(request: CountRequest): void {
    this.requests.push(request);
    this.#firstHit.push(this.#operationOf.length);
    const { hits, mode } = request;
    const counters = this.#counters;
    const suppressed =
      counters !== undefined && needsReading(request)
        ? findSuppressed(hits, (hit) => isOver(hit, counters))
        : undefined;
    for (let index = 0; index < hits.length; index++) {
      const hit = hits[index] as Hit;
      if (hit.limiter !== undefined) {
        const isStill = (mode === 'look' && !hit.refund) || suppressed?.[index] === true;
        this.#addLimited(hit, hit.limiter, isStill ? 0 : hit.hits);
      } else if (hit.refund) this.#addAlone(hit, 'refund');
      else if (mode === 'look' || suppressed?.[index]) this.#addSummed(hit, 0);
      else if (hit.hits > maxSummedHits) this.#addAlone(hit, 'add');
      else this.#addSummed(hit, hit.hits);
    }
  }

  #addSummed(hit: Hit, amount: number): void {
    let index = this.#open.get(hit.mapKey);
    let operation = index === undefined ? undefined : this.#operations[index];
    if (index === undefined || operation === undefined || operation.amount + amount >= sumBound) {
      index = this.#operations.length;
      operation = toOperation('add', hit.key, hit.windowSeconds);
      this.#operations.push(operation);
      this.#open.set(hit.mapKey, index);
    }
    operation.amount += amount;
    if (hit.windowSeconds > operation.windowSeconds) operation.windowSeconds = hit.windowSeconds;
    operation.hitCount++;
    this.#operationOf.push(index);
    this.#sumSoFar.push(operation.amount);
    this.#track(hit.mapKey, amount);
  }

  #addLimited(hit: Hit, limiter: LimiterHit, hits: number): void {
    let index = this.#open.get(hit.mapKey);
    let limited = index === undefined ? undefined : this.#limited?.get(index);
    if (index === undefined || limited === undefined) {
      index = this.#operations.length;
      const runs: number[] = [];
      limited = { window: limiter.window, runs, hits: [], isDecided: false };
      this.#operations.push(toLimitOperation(hit.key, limiter.window, runs));
      this.#open.set(hit.mapKey, index);
      this.#limited ??= new Map();
      this.#limited.set(index, limited);
    }
    const { runs } = limited;
    const signed = hit.refund ? -hits : hits;
    const last = runs.length - 2;
    if (last >= 0 && runs[last] === signed) (runs[last + 1] as number)++;
    else runs.push(signed, 1);
    limited.hits.push({ hit, limiter, hits, request: this.requests.length - 1 });
    this.#operationOf.push(index);
    this.#sumSoFar.push(0);
    const counter = this.#counters?.get(hit.mapKey);
    if (counter instanceof LimiterCounter) {
      if (hit.refund) counter.giveBack(hits);
      else counter.take(hits);
    }
  }

  #addAlone(hit: Hit, kind: 'add' | 'refund'): void {
    const operation = toOperation(kind, hit.key, hit.windowSeconds);
    operation.amount = hit.hits;
    operation.exactAmount = hit.exactHits;
    operation.hitCount = 1;
    this.#operationOf.push(this.#operations.length);
    this.#sumSoFar.push(hit.hits);
    this.#operations.push(operation);
    this.#open.delete(hit.mapKey);
    this.#track(hit.mapKey, kind === 'add' ? hit.hits : -hit.hits);
  }

  #track(mapKey: string, change: number): void {
    const value = this.#counters?.get(mapKey);
    // A sum beyond the bound leaves the counter unchanged.
    if (typeof value !== 'number' || (value > 0 && value + change >= counterBound)) return;
    this.#counters?.set(mapKey, Math.max(0, value + change));
  }

  /** Reads the counters of these hits, each once, for `counters` and `findFailure`. */
  read(hits: readonly Hit[]): void {
    for (const { key, mapKey, limiter } of hits) {
      if (this.#open.has(mapKey)) continue;
      this.#open.set(mapKey, this.#operations.length);
      const read = limiter
        ? toLimitOperation(key, limiter.window, [])
        : toOperation('read', key, 0);
      this.#operations.push(read);
    }
  }

  /** The counters that were read. */
  counters(): Counters {
    const counters: Counters = new Map();
    for (const [mapKey, index] of this.#open) {
      const { reply, takes } = this.#operations[index] as Operation;
      if (typeof reply === 'number') counters.set(mapKey, reply);
      else if (reply !== undefined && !isFailure(reply) && takes !== undefined) {
        counters.set(mapKey, openLimiterCounter(takes.limiter, reply));
      }
    }
    return counters;
  }

  /** The reason if a counter of these hits could not be read. */
  findFailure(hits: readonly Hit[]): AppError | undefined {
    for (const { mapKey } of hits) {
      const reply = this.#operations[this.#open.get(mapKey) ?? -1]?.reply;
      if (reply !== undefined && isFailure(reply)) return reply.error;
    }
    return undefined;
  }

  /** The commands of the unanswered operations, to be sent in one piece. */
  toCommands(): CommandText[] {
    const now = this.#deps.clock.monotonicMs();
    const commands: CommandText[] = [];
    for (let index = this.#answered; index < this.#operations.length; index++) {
      const operation = this.#operations[index] as Operation;
      commands.push(this.#toCommand(operation));
      if (operation.kind !== 'add') continue;
      const { key, windowSeconds } = operation;
      if (!this.#deps.knownExpiries.has(key, windowSeconds, now)) {
        operation.lifetime = this.#drawLifetime(operation);
        commands.push(toExpireText(operation, operation.lifetime));
      }
    }
    return commands;
  }

  #toCommand(operation: Operation): CommandText {
    const { kind, key, amount, exactAmount } = operation;
    switch (kind) {
      case 'read':
        return toCommandText('GET', key);
      case 'add':
        return toIncrementText(key, String(exactAmount ?? amount));
      case 'refund':
        return toCommandText('EVAL', refundScript, 1, key, String(exactAmount ?? amount));
      case 'limit':
        this.#hasScripts = true;
        return this.#toLimitText(operation, 'EVALSHA');
    }
  }

  /** The command in the form that the scripts read (limiter-scripts.ts). */
  #toLimitText({ key, takes }: Operation, verb: 'EVAL' | 'EVALSHA'): CommandText {
    const { limiter, runs } = takes as LimiterTakes;
    const jitter = this.#drawJitter();
    if (verb === 'EVALSHA') return toLimiterText(limiter, key, jitter, runs);
    const { text } = limiterScripts[limiter.algorithm];
    return toCommandText('EVAL', text, 1, key, ...toArguments(limiter), jitter, ...runs);
  }

  #drawLifetime({ windowSeconds }: Operation): number {
    return windowSeconds + this.#drawJitter();
  }

  #drawJitter(): number {
    return Math.floor(Math.random() * this.#deps.jitterMaxSeconds);
  }

  /** Processes the replies to the commands that were sent last. */
  take(raw: RawReply[]): Further {
    let replies = raw;
    if (this.#unknownScripts !== undefined) replies = this.#joinScripts(this.#unknownScripts, raw);
    else if (this.#hasScripts) {
      const scripts = this.#findUnknownScripts(raw);
      if (scripts.length > 0) return { commands: scripts, expiries: undefined };
    }
    const { knownExpiries } = this.#deps;
    const from = this.#answered;
    const to = this.#operations.length;
    let overflows = false;
    let expiries: MissingExpiries | undefined;
    let next = 0;
    for (let index = from; index < to; index++) {
      const operation = this.#operations[index] as Operation;
      let reply = this.#toReply(operation, replies[next++]);
      if (operation.lifetime > 0) {
        const expiry = replies[next++];
        if (expiry instanceof Error) reply = this.#toFailure(operation, expiry);
        else if (expiry === 1) {
          if (operation.amount > 0) this.#remember(operation);
        } else if (expiry === 0 && typeof reply === 'number') {
          // A proxy let the EXPIRE overtake the increment: the counter was created later, and would live for ever.
          expiries = this.#expireAgain(operation, expiries);
        }
      } else if (operation.kind === 'add' && typeof reply !== 'number') {
        // The server may have created the counter nevertheless, which the next reply would not show.
        knownExpiries.forget(operation.key);
      } else if (operation.kind === 'add' && reply === operation.amount) {
        knownExpiries.forget(operation.key);
        expiries = this.#expireAgain(operation, expiries);
      }
      operation.reply = reply;
      if (typeof reply !== 'number' && isOverflow(reply)) overflows = true;
    }
    this.#answered = to;
    if (overflows) this.#splitOverflows(from);
    return { commands: this.#operations.length > to ? this.toCommands() : none, expiries };
  }

  #expireAgain(operation: Operation, expiries: MissingExpiries | undefined): MissingExpiries {
    const { operations, commands } = expiries ?? { operations: [], commands: [] };
    operations.push(operation);
    commands.push(toExpireText(operation, this.#drawLifetime(operation)));
    return { operations, commands };
  }

  /**
   * The commands with scripts unknown to the server, now with the full script; the server has executed none of them.
   */
  #findUnknownScripts(raw: RawReply[]): readonly CommandText[] {
    const commands: CommandText[] = [];
    const positions: number[] = [];
    let position = 0;
    for (let index = this.#answered; index < this.#operations.length; index++) {
      const operation = this.#operations[index] as Operation;
      if (operation.kind === 'limit' && isUnknownScript(raw[position])) {
        commands.push(this.#toLimitText(operation, 'EVAL'));
        positions.push(position);
      }
      position += operation.lifetime > 0 ? 2 : 1;
    }
    if (positions.length > 0) this.#unknownScripts = { raw, positions };
    return commands;
  }

  /** Puts the replies of the full scripts in their positions among all replies. */
  #joinScripts({ raw, positions }: UnknownScripts, answers: readonly RawReply[]): RawReply[] {
    for (const [index, position] of positions.entries()) raw[position] = answers[index] as RawReply;
    this.#unknownScripts = undefined;
    return raw;
  }

  confirm({ operations }: MissingExpiries, raw: readonly RawReply[]): void {
    for (const [index, operation] of operations.entries()) {
      if (raw[index] === 1) this.#remember(operation);
    }
  }

  /** Records the lifetime until the end of the window, after which the counter is no longer used. */
  #remember({ key, windowSeconds }: Operation): void {
    const { knownExpiries, clock } = this.#deps;
    knownExpiries.remember(key, windowSeconds, clock.monotonicMs());
  }

  #toReply(operation: Operation, raw: RawReply | undefined): NonNullable<Operation['reply']> {
    if (typeof raw === 'number' && raw >= 0) return raw;
    if (raw instanceof Error) return this.#toFailure(operation, raw);
    if (operation.kind === 'limit') return this.#toReading(operation, raw);
    const value = raw === null ? 0 : parseCounter(raw);
    if (value !== undefined && value >= 0) return value;
    const what = value === undefined ? 'is not a number' : `is negative: ${value}`;
    return this.#toWrong(operation, what);
  }

  #toReading(operation: Operation, raw: RawReply | undefined): LimiterReading | Failure {
    const reading = Array.isArray(raw) ? raw.map(Number) : [];
    if (reading.length >= 2 && reading.every(Number.isFinite)) {
      this.#deps.scripts.worked();
      return reading;
    }
    return this.#toWrong(operation, "has a reply that is not a limiter's state");
  }

  /** The only function that converts a server's error to ours. */
  #toFailure(operation: Operation, error: Error): Failure {
    const { name, scripts, describeRemedy } = this.#deps;
    // The position in the script is useless to operators.
    const reason = error.message.replace(/ script: [0-9a-f]{40}, on @user_script:\d+\.$/, '');
    const lost = isLost(error);
    const algorithm = operation.takes?.limiter.algorithm;
    const refused =
      algorithm === undefined || lost
        ? undefined
        : scripts.refused(algorithm, showKey(operation), reason);
    const ofCounter = ofOneCounter.test(reason) ? ` (counter ${showKey(operation)})` : '';
    const remedy = describeRemedy(reason);
    const shown =
      remedy === undefined
        ? reason + ofCounter
        : `${reason.replace(/\.$/, '')}${ofCounter}; ${remedy}`;
    const text = lost ? 'the connection was lost before the answer came' : shown;
    return {
      error: refused ?? new AppError('store', `${name}: ${text}`),
      overflow: reason.includes('would overflow'),
    };
  }

  #toWrong(operation: Operation, what: string): Failure {
    const text = `${this.#deps.name}: counter ${showKey(operation)} ${what}`;
    return { error: new AppError('store', text), overflow: false };
  }

  /**
   * Increments whose sum would have overflowed the counter were not made. Adds their hits as separate increments, so
   * that those within the bound are counted as if the requests had come one by one.
   */
  #splitOverflows(from: number): void {
    const sumBefore = new Map<number, number>();
    for (let index = from; index < this.#operations.length; index++) {
      const { reply, hitCount } = this.#operations[index] as Operation;
      if (isOverflow(reply) && hitCount !== 1) sumBefore.set(index, 0);
    }
    if (sumBefore.size === 0) return;
    for (const [index, request] of this.requests.entries()) {
      const end = this.#firstHit[index + 1] ?? this.#operationOf.length;
      for (let hitPosition = this.#firstHit[index] ?? end; hitPosition < end; hitPosition++) {
        const summed = this.#operations[this.#operationOf[hitPosition] ?? -1];
        const before = sumBefore.get(this.#operationOf[hitPosition] ?? -1);
        if (before === undefined || summed === undefined) continue;
        const sum = this.#sumSoFar[hitPosition] ?? 0;
        sumBefore.set(this.#operationOf[hitPosition] ?? -1, sum);
        if (request === undefined) continue;
        const operation = toOperation('add', summed.key, summed.windowSeconds);
        operation.amount = sum - before;
        operation.hitCount = 1;
        this.#operationOf[hitPosition] = this.#operations.length;
        this.#sumSoFar[hitPosition] = operation.amount;
        this.#operations.push(operation);
      }
    }
  }

  /** The unsettled requests; answers for them are ignored from now on. */
  takeOpen(): CountRequest[] {
    const open = this.requests.filter((request) => request !== undefined);
    this.requests.fill(undefined);
    return open;
  }

  /**
   * Sets `after` of each counted hit of the request at `index`, once everything is answered. Returns the first failure,
   * if any: it fails exactly the requests with a hit in the failed operation.
   */
  complete(index: number): AppError | undefined {
    let hitPosition = this.#firstHit[index] ?? 0;
    const hits = this.requests[index]?.hits ?? [];
    let failure: AppError | undefined;
    for (let hitIndex = 0; hitIndex < hits.length; hitIndex++) {
      const hit = hits[hitIndex] as Hit;
      const operationIndex = this.#operationOf[hitPosition] ?? -1;
      const operation = this.#operations[operationIndex];
      const reply = operation?.reply;
      if (operation === undefined || reply === undefined) {
        return new AppError('internal', 'the store answered fewer operations than it was sent');
      }
      if (typeof reply !== 'number') {
        if (isFailure(reply)) {
          if (reply.overflow) hit.after = overflowed;
          else failure ??= reply.error;
        } else this.#decide(operationIndex, reply);
      } else {
        hit.after =
          operation.kind === 'refund'
            ? reply
            : reply - (operation.amount - (this.#sumSoFar[hitPosition] ?? 0));
      }
      hitPosition++;
    }
    return failure;
  }

  /** Computes the store's decision about each hit of one operation. */
  #decide(operationIndex: number, reading: LimiterReading): void {
    const limited = this.#limited?.get(operationIndex);
    if (limited === undefined || limited.isDecided) return;
    limited.isDecided = true;
    const counter = openLimiterCounter(limited.window, reading);
    for (const { hit, limiter, hits, request } of limited.hits) {
      // A request that was settled without an answer is no longer changed.
      if (this.requests[request] !== undefined) takeHit(counter, hit, limiter, hits);
      else if (hit.refund) counter.giveBack(hits);
      else counter.take(hits);
    }
  }
}

/** The counters read, by `mapKey`: a number, or a limiter's counter. */
export type Counters = Map<string, number | LimiterCounter>;

interface LimiterHits {
  readonly window: LimiterWindow;
  readonly runs: number[];
  /** Includes the number of hits of each, and the index of its request. */
  readonly hits: {
    readonly hit: Hit;
    readonly limiter: LimiterHit;
    readonly hits: number;
    readonly request: number;
  }[];
  isDecided: boolean;
}

function isOver({ mapKey, hits, limit }: Hit, counters: Counters): boolean {
  const counter = counters.get(mapKey) ?? 0;
  return typeof counter === 'number' ? counter + hits > limit : hits > counter.room;
}

function isFailure(reply: NonNullable<Operation['reply']>): reply is Failure {
  return typeof reply !== 'number' && 'error' in reply;
}

function isOverflow(reply: Operation['reply']): boolean {
  return reply !== undefined && isFailure(reply) && reply.overflow;
}

function toOperation(kind: Operation['kind'], key: string, windowSeconds: number): Operation {
  return {
    kind,
    key,
    windowSeconds,
    amount: 0,
    exactAmount: undefined,
    hitCount: 0,
    takes: undefined,
    lifetime: 0,
    reply: undefined,
  };
}

/** An operation with empty `runs` only reads. */
function toLimitOperation(key: string, limiter: LimiterWindow, runs: number[]): Operation {
  return { ...toOperation('limit', key, limiter.windowSeconds), takes: { limiter, runs } };
}

function isUnknownScript(reply: RawReply | undefined): boolean {
  return reply instanceof Error && reply.message.startsWith('NOSCRIPT');
}

/** Undefined for values that another program has set. */
function parseCounter(raw: RawReply | undefined): number | undefined {
  if (typeof raw === 'number') return raw;
  return typeof raw === 'string' && /^-?\d{1,19}$/.test(raw) ? Number(raw) : undefined;
}

/** Detects the error also within that of a script. */
export function isReadonly(message: string): boolean {
  return /(^|[ -])READONLY /.test(message);
}

function toExpireText({ key }: Operation, lifetime: number): CommandText {
  return toCommandText('EXPIRE', key, lifetime);
}

/** Errors caused by one counter or its name; all others affect all counters. */
const ofOneCounter = /^(WRONGTYPE|NOPERM|ERR value is not|ERR increment or decrement)/;
/** How many characters of a key an error shows: requests can make keys very long. */
const shownKeyLength = 200;

function showKey({ key }: Operation): string {
  return JSON.stringify(key.length > shownKeyLength ? `${key.slice(0, shownKeyLength)}...` : key);
}
