// Turns operations on counters into Redis commands and replies into results. Exactly the reference's
// INCRBY and EXPIRE on its keys, so that both count together (behaviour: redis-commands).
import type { Clock } from '../../../shared/clock.ts';
import { AppError } from '../../../shared/errors.ts';
import type { Failure, LimiterTakes, Operation, Reply } from './batch.ts';
import { type CommandText, toCommandText, toIncrementText } from './command-text.ts';
import type { KnownExpiries } from './known-expiries.ts';
import { limiterScripts } from './limiter-scripts.ts';
import { toArguments, toLimiterText } from './limiter-text.ts';
import { isLost, type RawReply } from './reply-reader.ts';
import type { ScriptSupport } from './script-support.ts';

/**
 * A refund (behaviour: refunds). KEYS[1]: the counter; ARGV[1]: hits to take back. Returns the counter
 * afterwards, as text. Numbers are compared as decimal texts because Lua's numbers are not exact above
 * 2^53, and subtracted by DECRBY, which keeps the expiry and rejects other values. Sent in full each time:
 * the server caches the compiled script, and there is no "unknown script" error after a failover or SCRIPT
 * FLUSH.
 */
const refundScript = [
  "local c = redis.call('GET', KEYS[1])",
  "if not c or c == '0' or string.sub(c, 1, 1) == '-' then return '0' end",
  'local n = ARGV[1]',
  'if #c < #n or (#c == #n and c < n) then n = c end',
  "redis.call('DECRBY', KEYS[1], n)",
  "return redis.call('GET', KEYS[1])",
].join('\n');

export interface OperationCodecDeps {
  /** The store's name in errors. */
  readonly name: string;
  readonly knownExpiries: KnownExpiries;
  readonly scripts: ScriptSupport;
  readonly clock: Clock;
  /** A counter's lifetime is its window plus a random whole number of seconds below this. */
  readonly jitterMaxSeconds: number;
}

export interface OperationCodec {
  encode(operations: readonly Operation[]): EncodedOperations;
  /** The results, in the order of the operations. */
  decode(encoded: EncodedOperations, raw: readonly RawReply[]): DecodedReplies;
  /** The scripts that the server did not know, now in full; it has executed none of them. */
  findUnknownScripts(
    encoded: EncodedOperations,
    raw: readonly RawReply[],
  ): UnknownScripts | undefined;
  /** Takes the replies to `MissingExpiries.commands`. */
  confirmExpiries(missing: MissingExpiries, raw: readonly RawReply[]): void;
}

export interface EncodedOperations {
  readonly operations: readonly Operation[];
  /** One per operation, or two with an expiry. */
  readonly commands: readonly CommandText[];
  /** Per operation, the lifetime that is sent; 0 for none. */
  readonly lifetimes: readonly number[];
  /** Whether some are for limiters. */
  readonly hasScripts: boolean;
}

export interface DecodedReplies {
  readonly replies: Reply[];
  /** To be sent next: expiries of counters that had expired and were recreated without a lifetime. */
  readonly missingExpiries: MissingExpiries | undefined;
}

export interface UnknownScripts {
  readonly commands: CommandText[];
  /** Index of their replies among those to all commands. */
  readonly places: number[];
}

/** One command for each counter. */
export interface MissingExpiries {
  readonly operations: Operation[];
  readonly commands: CommandText[];
}

export function createOperationCodec(deps: OperationCodecDeps): OperationCodec {
  const { name, knownExpiries, scripts, jitterMaxSeconds, clock } = deps;
  return { encode, decode, findUnknownScripts, confirmExpiries };

  function toCommand(operation: Operation): CommandText {
    const { kind, key, amount, exactAmount } = operation;
    switch (kind) {
      case 'read':
        return toCommandText('GET', key);
      case 'add':
        return toIncrementText(key, String(exactAmount ?? amount));
      case 'refund':
        return toCommandText('EVAL', refundScript, 1, key, String(exactAmount ?? amount));
      case 'limit':
        return toLimitText(operation, 'EVALSHA');
    }
  }

  /** In the form that the scripts read (limiter-scripts.ts). */
  function toLimitText({ key, takes }: Operation, verb: 'EVAL' | 'EVALSHA'): CommandText {
    const { limiter, runs } = takes as LimiterTakes;
    const jitter = Math.floor(Math.random() * jitterMaxSeconds);
    if (verb === 'EVALSHA') return toLimiterText(limiter, key, jitter, runs);
    const { text } = limiterScripts[limiter.algorithm];
    return toCommandText('EVAL', text, 1, key, ...toArguments(limiter), jitter, ...runs);
  }

  function encode(operations: readonly Operation[]): EncodedOperations {
    const now = clock.monotonicMs();
    const commands: CommandText[] = [];
    const lifetimes: number[] = [];
    let hasScripts = false;
    for (const operation of operations) {
      commands.push(toCommand(operation));
      if (operation.kind === 'limit') hasScripts = true;
      let lifetime = 0;
      if (operation.kind === 'add' && !knownExpiries.has(operation.key, now)) {
        lifetime = drawLifetime(operation);
        commands.push(toExpireText(operation, lifetime));
      }
      lifetimes.push(lifetime);
    }
    return { operations, commands, lifetimes, hasScripts };
  }

  function drawLifetime({ windowSeconds }: Operation): number {
    return windowSeconds + Math.floor(Math.random() * jitterMaxSeconds);
  }

  function decode(encoded: EncodedOperations, raw: readonly RawReply[]): DecodedReplies {
    const { operations, lifetimes } = encoded;
    const replies: Reply[] = [];
    let missing: MissingExpiries | undefined;
    let next = 0;
    for (let index = 0; index < operations.length; index++) {
      const operation = operations[index] as Operation;
      let reply = toReply(operation, raw[next++]);
      const lifetime = lifetimes[index] ?? 0;
      if (lifetime > 0) {
        const expiry = raw[next++];
        if (expiry instanceof Error) reply = toFailure(operation, expiry);
        else if (expiry === 1 && operation.amount > 0) {
          remember(operation);
        }
      } else if (operation.kind === 'add' && typeof reply !== 'number') {
        // It may have created the counter all the same, which the next reply would not show.
        knownExpiries.forget(operation.key);
      } else if (operation.kind === 'add' && reply === operation.amount) {
        knownExpiries.forget(operation.key);
        missing ??= { operations: [], commands: [] };
        missing.operations.push(operation);
        missing.commands.push(toExpireText(operation, drawLifetime(operation)));
      }
      replies.push(reply);
    }
    return { replies, missingExpiries: missing };
  }

  function findUnknownScripts(
    { operations, lifetimes }: EncodedOperations,
    raw: readonly RawReply[],
  ): UnknownScripts | undefined {
    let unknown: UnknownScripts | undefined;
    let place = 0;
    for (let index = 0; index < operations.length; index++) {
      const operation = operations[index] as Operation;
      const reply = raw[place];
      if (operation.kind === 'limit' && isUnknownScript(reply)) {
        unknown ??= { commands: [], places: [] };
        unknown.commands.push(toLimitText(operation, 'EVAL'));
        unknown.places.push(place);
      }
      place += (lifetimes[index] ?? 0) > 0 ? 2 : 1;
    }
    return unknown;
  }

  function confirmExpiries({ operations }: MissingExpiries, raw: readonly RawReply[]): void {
    for (const [index, operation] of operations.entries()) {
      if (raw[index] === 1) remember(operation);
    }
  }

  /** Until the end of its window, after which nobody uses it. */
  function remember({ key, windowSeconds }: Operation): void {
    knownExpiries.remember(key, clock.monotonicMs() + windowSeconds * 1000);
  }

  function toReply(operation: Operation, raw: RawReply | undefined): Reply {
    if (typeof raw === 'number' && raw >= 0) return raw;
    if (raw instanceof Error) return toFailure(operation, raw);
    if (operation.kind === 'limit') return toReading(operation, raw);
    const value = raw === null ? 0 : parseCounter(raw);
    if (value !== undefined && value >= 0) return value;
    const what = value === undefined ? 'is not a number' : `is negative: ${value}`;
    return toWrong(operation, what);
  }

  function toReading(operation: Operation, raw: RawReply | undefined): Reply {
    const reading = Array.isArray(raw) ? raw.map(Number) : [];
    if (reading.length >= 2 && reading.every((number) => number >= 0)) {
      scripts.worked();
      return reading;
    }
    return toWrong(operation, 'was answered with something else than a limiter');
  }

  /** The only place where a server's error becomes ours. */
  function toFailure(operation: Operation, error: Error): Failure {
    // The position in the script means nothing to the reader.
    const said = error.message.replace(/ script: [0-9a-f]{40}, on @user_script:\d+\.$/, '');
    const lost = isLost(error);
    const algorithm = operation.takes?.limiter.algorithm;
    const refused =
      algorithm === undefined || lost
        ? undefined
        : scripts.refused(algorithm, showKey(operation), said);
    const ofCounter = ofOneCounter.test(said) ? ` (counter ${showKey(operation)})` : '';
    const text = lost ? 'the connection was lost before the answer came' : `${said}${ofCounter}`;
    return {
      error: refused ?? new AppError('store', `${name}: ${text}`),
      overflow: said.includes('would overflow'),
      lost,
    };
  }

  function toWrong(operation: Operation, what: string): Failure {
    const error = new AppError('store', `${name}: counter ${showKey(operation)} ${what}`);
    return { error, overflow: false, lost: false };
  }
}

function isUnknownScript(reply: RawReply | undefined): boolean {
  return reply instanceof Error && reply.message.startsWith('NOSCRIPT');
}

/** Undefined for other values, set by another program. */
function parseCounter(raw: RawReply | undefined): number | undefined {
  if (typeof raw === 'number') return raw;
  return typeof raw === 'string' && /^-?\d{1,19}$/.test(raw) ? Number(raw) : undefined;
}

function toExpireText({ key }: Operation, lifetime: number): CommandText {
  return toCommandText('EXPIRE', key, lifetime);
}

/** Errors caused by one counter or its name; others affect all counters. */
const ofOneCounter = /^(WRONGTYPE|NOPERM|ERR value is not|ERR increment or decrement)/;
/** Characters of a key that an error shows: requests can make keys very long. */
const shownKeyLength = 200;

function showKey({ key }: Operation): string {
  return JSON.stringify(key.length > shownKeyLength ? `${key.slice(0, shownKeyLength)}...` : key);
}
