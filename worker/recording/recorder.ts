// Chooses which decisions are recorded, and makes their lines. A descriptor is always or never in the sample, and alike
// on each worker, so that a replay has all requests on its counter (control-plane/docs/commands.md). Lines are made
// some twenty at a time: making one after each hundredth decision would take ten times as long, since the processor's
// caches contain the code of decisions. With hundreds at a time, the garbage collector would promote the waiting
// decisions to the old generation, and megabytes of them would accumulate.
import { createHmac } from 'node:crypto';
import type { Clock } from '../../shared/clock.ts';
import type {
  RecordedDecision,
  RecordedDescriptor,
  RecordedStatus,
  RecordGap,
} from '../../shared/decision-record.ts';
import type { Log } from '../../shared/log.ts';
import { createRepeatedLog } from '../../shared/repeated-log.ts';
import type { Entry, Match } from '../../shared/rules/rule.ts';
import { hashEntries } from '../decision/hit.ts';
import {
  codeNames,
  type DescriptorStatus,
  type RateLimitRequest,
  type RequestDescriptor,
} from '../decision/message.ts';
import type {
  Decision,
  DecisionOutcome,
  DecisionRecorder,
  Sample,
} from '../decision/should-rate-limit.ts';

export interface RecorderOptions {
  /** Above 0, at most 1. */
  readonly rate: number;
  /** Limit of decisions per second; further ones are left out. */
  readonly maxPerSecond: number;
  /** `*` stands for all keys. */
  readonly hashedKeys: readonly string[];
  /** The secret of the hashes. */
  readonly secret: string;
}

/** Receives the lines. Its methods never wait. */
export interface RecordSink {
  /** `line` ends with a newline; `timeMs` is the time of its decision. */
  add(line: string, timeMs: number): void;
  /** Called for decisions that are left out. */
  drop(gap: RecordGap): void;
  /** Runs `task` several times a second, before lines are taken from the sink. */
  beforeDraining(task: () => void): void;
}

export interface RecorderDeps {
  readonly options: RecorderOptions;
  readonly sink: RecordSink;
  readonly log: Pick<Log, 'warning'>;
  readonly clock: Clock;
}

/** Longer lines are left out. */
export const maxLineLength = 64 * 1024;
/** Limit of the characters in lines that are not made yet, approximately: some twenty lines. */
const maxUnwrittenLength = 4 * 1024;
/** The approximate number of characters of a line beside the texts of a descriptor. */
const descriptorLength = 200;
/** The least time between log lines about decisions that were left out. */
const lossIntervalMs = 60_000;
/** Hexadecimal digits: 128 bits. */
const hashLength = 32;

/** The content of a decision's line: retaining the decision itself would retain its call. */
interface Unwritten extends Pick<Decision, 'request' | 'matches' | 'limited'> {
  readonly sample: Sample;
  readonly outcome: DecisionOutcome;
}

export class Recorder implements DecisionRecorder {
  readonly #sink;
  readonly #rate;
  readonly #maxPerSecond;
  readonly #secret;
  readonly #threshold;
  readonly #hashedKeys;
  readonly #hashesAll;
  readonly #losses;
  readonly #tooMany;
  readonly #tooLong =
    `A decision is not recorded: its line has more than ${maxLineLength} characters`;
  #second = 0;
  #inSecond = 0;
  #unwritten: Unwritten[] = [];
  #unwrittenLength = 0;
  /** Decisions beyond the bound since lines were last made. */
  #beyond = 0;
  #beyondFromMs = 0;
  #beyondToMs = 0;

  constructor(deps: RecorderDeps) {
    this.#sink = deps.sink;
    this.#rate = deps.options.rate;
    this.#maxPerSecond = deps.options.maxPerSecond;
    this.#secret = deps.options.secret;
    this.#threshold = deps.options.rate * 2 ** 32;
    this.#hashedKeys = new Set(deps.options.hashedKeys);
    this.#hashesAll = this.#hashedKeys.has('*');
    this.#losses = createRepeatedLog({
      clock: deps.clock,
      intervalMs: lossIntervalMs,
      write: deps.log.warning,
    });
    this.#tooMany = `A decision is not recorded: there are more than RECORD_DECISIONS_MAX_PER_SECOND=${deps.options.maxPerSecond} a second`;
    deps.sink.beforeDraining(() => this.#write());
  }

  #isHashed({ key }: Entry) {
    return this.#hashesAll || this.#hashedKeys.has(key);
  }

  #isWithinBound(nowMs: number): boolean {
    const now = Math.floor(nowMs / 1000);
    if (now !== this.#second) {
      this.#second = now;
      this.#inSecond = 0;
    }
    return ++this.#inSecond <= this.#maxPerSecond;
  }

  #toDescriptor({
    entries,
    limit,
    hitsAddend,
    isNegativeHits,
  }: RequestDescriptor): RecordedDescriptor {
    return {
      entries: entries.map((entry) => ({
        key: entry.key,
        value: this.#isHashed(entry) ? hashValue(entry.value, this.#secret) : entry.value,
      })),
      ...(limit && { limit: { requests_per_unit: limit.requestsPerUnit, unit: limit.unit } }),
      ...(hitsAddend !== undefined && {
        hits_addend: typeof hitsAddend === 'bigint' ? `${hitsAddend}` : hitsAddend,
      }),
      ...(isNegativeHits && { is_negative_hits: true }),
    };
  }

  #toStatus(
    { request, matches, limited, sample: { isSampled } }: Unwritten,
    { code, currentLimit, limitRemaining, secondsUntilReset }: DescriptorStatus,
    index: number,
  ): RecordedStatus {
    const match = matches[index];
    const fallback = limited.find((hit) => hit.descriptorIndex === index && hit.fallback)?.fallback;
    const rule = match && this.#toRuleName(match, request.descriptors[index]?.entries ?? []);
    const isInFull = this.#rate === 1 || (isSampled[index] === true && !isShared(match));
    return {
      code: codeNames[code],
      ...(rule !== undefined && { rule }),
      ...(match?.limit.unlimited === true && { unlimited: true }),
      ...(currentLimit && {
        limit: currentLimit.requestsPerUnit,
        unit: currentLimit.unit,
        remaining: limitRemaining,
        ...(secondsUntilReset !== undefined && { reset: secondsUntilReset }),
      }),
      ...(fallback && { fallback }),
      ...(!isInFull && { sampled: false }),
    };
  }

  /** The name of a rule that is made for each request may contain the values. */
  #toRuleName(
    { metricKey, metricKeyIsStatic }: Match,
    entries: readonly Entry[],
  ): string | undefined {
    return metricKeyIsStatic || !entries.some((argument0) => this.#isHashed(argument0))
      ? metricKey
      : undefined;
  }

  #toRecord(decision: Unwritten): RecordedDecision {
    const { request, sample, outcome } = decision;
    const { domain, descriptors, hitsAddend } = request;
    return {
      time: sample.timeMs,
      domain,
      descriptors: descriptors.map((argument0) => this.#toDescriptor(argument0)),
      ...(hitsAddend > 0 && { hits_addend: hitsAddend }),
      ...(outcome.ok
        ? {
            code: codeNames[outcome.response.overallCode],
            statuses: outcome.response.statuses.map((status, index) =>
              this.#toStatus(decision, status, index),
            ),
          }
        : { code: 'ERROR' }),
    };
  }

  #write(): void {
    const decisions = this.#unwritten;
    this.#unwritten = [];
    this.#unwrittenLength = 0;
    for (const decision of decisions) {
      const { timeMs } = decision.sample;
      const line = JSON.stringify(this.#toRecord(decision));
      if (line.length <= maxLineLength) this.#sink.add(`${line}\n`, timeMs);
      else this.#leaveOut({ dropped: 1, from: timeMs, time: timeMs }, this.#tooLong);
    }
    if (this.#beyond > 0)
      this.#leaveOut(
        { dropped: this.#beyond, from: this.#beyondFromMs, time: this.#beyondToMs },
        this.#tooMany,
      );
    this.#beyond = 0;
  }

  #leaveOut(gap: RecordGap, reason: string): void {
    this.#sink.drop(gap);
    this.#losses.report(reason, reason);
  }

  choose(request: RateLimitRequest, nowMs: number): Sample | undefined {
    let isSampled: boolean[] | undefined;
    const { descriptors } = request;
    for (let index = 0; index < descriptors.length; index++) {
      if (toDraw(descriptors[index] as RequestDescriptor) >= this.#threshold) continue;
      isSampled ??= new Array<boolean>(descriptors.length).fill(false);
      isSampled[index] = true;
    }
    if (isSampled === undefined) return undefined;
    if (this.#isWithinBound(nowMs)) return { timeMs: nowMs, isSampled };
    if (this.#beyond++ === 0) this.#beyondFromMs = nowMs;
    this.#beyondToMs = nowMs;
    return undefined;
  }

  record(
    { request, matches, limited }: Pick<Decision, 'request' | 'matches' | 'limited'>,
    sample: Sample,
    outcome: DecisionOutcome,
  ): void {
    this.#unwritten.push({ request, matches, limited, sample, outcome });
    this.#unwrittenLength += lengthOf(request);
    if (this.#unwrittenLength >= maxUnwrittenLength) this.#write();
  }
}

/** The approximate number of characters of the request's line. */
function lengthOf({ descriptors }: RateLimitRequest): number {
  let length = 0;
  for (const { entries } of descriptors) {
    length += descriptorLength;
    for (const { key, value } of entries) length += key.length + value.length;
  }
  return length;
}

/** Whether the counter also has the hits of other values. */
function isShared(match: Match | undefined): boolean {
  return match?.sharedValues !== undefined;
}

function hashValue(value: string, secret: string): string {
  return createHmac('sha256', secret).update(value).digest('hex').slice(0, hashLength);
}

/**
 * A number from 0 to 2^32 - 1. A threshold needs uniformly distributed bits, so the hash is mixed once more, by the
 * last step of MurmurHash3.
 */
function toDraw({ entries, hash = hashEntries(entries) }: RequestDescriptor): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
