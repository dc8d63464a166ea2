// Chooses which decisions are recorded, and writes their lines. A descriptor is in the sample or not, always
// and on each worker, so that a replay has all requests that went to its counter (control-plane/docs/commands.md).
// Lines are written some twenty at a time: one between a hundred decisions without a line takes ten times as long, as
// the processor's caches have the code of those. Hundreds at a time would keep their decisions so long that the
// garbage collector takes them for old, and lets megabytes of them gather.
import { createHmac } from 'node:crypto';
import type { Clock } from '../../shared/clock.ts';
import type {
  RecordedCode,
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
  codes,
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
  /** Decisions in a second; further ones are left out. */
  readonly maxPerSecond: number;
  /** `*` is all. */
  readonly hashedKeys: readonly string[];
  /** The secret of the hashes. */
  readonly secret: string;
}

/** Where lines go. None of it waits. */
export interface RecordSink {
  /** `line` ends with a newline; `timeMs` is that of its decision. */
  add(line: string, timeMs: number): void;
  /** Decisions are left out. */
  drop(gap: RecordGap): void;
  /** Runs `task` several times a second, before lines are taken from here. */
  beforeTaking(task: () => void): void;
}

export interface RecorderDeps {
  readonly options: RecorderOptions;
  readonly sink: RecordSink;
  readonly log: Pick<Log, 'warning'>;
  readonly clock: Clock;
}

/** Longer lines are left out. */
export const maxLineLength = 64 * 1024;
/** About as many characters as the lines have that are not written yet: some twenty lines. */
const maxUnwrittenLength = 4 * 1024;
/** About as many as a line has beside the texts of a descriptor. */
const descriptorLength = 200;
/** The least time between log lines about decisions that are left out. */
const lossIntervalMs = 60_000;
/** Hexadecimal digits: 128 bits. */
const hashLength = 32;

/** The content of a decision's line: the decision itself would keep its call. */
interface Unwritten extends Pick<Decision, 'request' | 'matches' | 'limited'> {
  readonly sample: Sample;
  readonly outcome: DecisionOutcome;
}

export function createRecorder({ options, sink, log, clock }: RecorderDeps): DecisionRecorder {
  const { rate, maxPerSecond, secret } = options;
  const threshold = rate * 2 ** 32;
  const hashedKeys = new Set(options.hashedKeys);
  const hashesAll = hashedKeys.has('*');
  const isHashed = ({ key }: Entry) => hashesAll || hashedKeys.has(key);
  const losses = createRepeatedLog({
    clock,
    intervalMs: lossIntervalMs,
    write: log.warning,
  });
  const tooMany = `A decision is not recorded: there are more than RECORD_DECISIONS_MAX_PER_SECOND=${maxPerSecond} a second`;
  const tooLong = `A decision is not recorded: its line has more than ${maxLineLength} characters`;
  let second = 0;
  let inSecond = 0;
  let unwritten: Unwritten[] = [];
  let unwrittenLength = 0;
  /** Decisions beyond the bound since lines were written last. */
  let beyond = 0;
  let beyondFromMs = 0;
  let beyondToMs = 0;
  sink.beforeTaking(write);

  function isWithinBound(nowMs: number): boolean {
    const now = Math.floor(nowMs / 1000);
    if (now !== second) {
      second = now;
      inSecond = 0;
    }
    return ++inSecond <= maxPerSecond;
  }

  function toDescriptor({
    entries,
    limit,
    hitsAddend,
    isNegativeHits,
  }: RequestDescriptor): RecordedDescriptor {
    return {
      entries: entries.map((entry) => ({
        key: entry.key,
        value: isHashed(entry) ? hashValue(entry.value, secret) : entry.value,
      })),
      ...(limit && { limit: { requests_per_unit: limit.requestsPerUnit, unit: limit.unit } }),
      ...(hitsAddend !== undefined && {
        hits_addend: typeof hitsAddend === 'bigint' ? `${hitsAddend}` : hitsAddend,
      }),
      ...(isNegativeHits && { is_negative_hits: true }),
    };
  }

  function toStatus(
    { request, matches, limited, sample: { isSampled } }: Unwritten,
    { code, currentLimit, limitRemaining, secondsUntilReset }: DescriptorStatus,
    index: number,
  ): RecordedStatus {
    const match = matches[index];
    const fallback = limited.find((hit) => hit.descriptorIndex === index && hit.fallback)?.fallback;
    const rule = match && toRuleName(match, request.descriptors[index]?.entries ?? []);
    const isWhole = rate === 1 || (isSampled[index] === true && !isShared(match));
    return {
      code: toCodeName(code),
      ...(rule !== undefined && { rule }),
      ...(match?.limit.unlimited === true && { unlimited: true }),
      ...(currentLimit && {
        limit: currentLimit.requestsPerUnit,
        unit: currentLimit.unit,
        remaining: limitRemaining,
        ...(secondsUntilReset !== undefined && { reset: secondsUntilReset }),
      }),
      ...(fallback && { fallback }),
      ...(!isWhole && { sampled: false }),
    };
  }

  /** A name that is made for each request may have the values in it. */
  function toRuleName(
    { metricKey, metricKeyIsStatic }: Match,
    entries: readonly Entry[],
  ): string | undefined {
    return metricKeyIsStatic || !entries.some(isHashed) ? metricKey : undefined;
  }

  function toRecord(decision: Unwritten): RecordedDecision {
    const { request, sample, outcome } = decision;
    const { domain, descriptors, hitsAddend } = request;
    return {
      time: sample.timeMs,
      domain,
      descriptors: descriptors.map(toDescriptor),
      ...(hitsAddend > 0 && { hits_addend: hitsAddend }),
      ...(outcome.ok
        ? {
            code: toCodeName(outcome.response.overallCode),
            statuses: outcome.response.statuses.map((status, index) =>
              toStatus(decision, status, index),
            ),
          }
        : { code: 'ERROR' }),
    };
  }

  function write(): void {
    const decisions = unwritten;
    unwritten = [];
    unwrittenLength = 0;
    for (const decision of decisions) {
      const { timeMs } = decision.sample;
      const line = JSON.stringify(toRecord(decision));
      if (line.length <= maxLineLength) sink.add(`${line}\n`, timeMs);
      else leaveOut({ dropped: 1, from: timeMs, time: timeMs }, tooLong);
    }
    if (beyond > 0) leaveOut({ dropped: beyond, from: beyondFromMs, time: beyondToMs }, tooMany);
    beyond = 0;
  }

  function leaveOut(gap: RecordGap, reason: string): void {
    sink.drop(gap);
    losses.report(reason, reason);
  }

  return {
    choose(request, nowMs) {
      let isSampled: boolean[] | undefined;
      const { descriptors } = request;
      for (let index = 0; index < descriptors.length; index++) {
        if (toDraw(descriptors[index] as RequestDescriptor) >= threshold) continue;
        isSampled ??= new Array<boolean>(descriptors.length).fill(false);
        isSampled[index] = true;
      }
      if (isSampled === undefined) return undefined;
      if (isWithinBound(nowMs)) return { timeMs: nowMs, isSampled };
      if (beyond++ === 0) beyondFromMs = nowMs;
      beyondToMs = nowMs;
      return undefined;
    },
    record({ request, matches, limited }, sample, outcome) {
      unwritten.push({ request, matches, limited, sample, outcome });
      unwrittenLength += lengthOf(request);
      if (unwrittenLength >= maxUnwrittenLength) write();
    },
  };
}

/** About as many characters as the line of the request has. */
function lengthOf({ descriptors }: RateLimitRequest): number {
  let length = 0;
  for (const { entries } of descriptors) {
    length += descriptorLength;
    for (const { key, value } of entries) length += key.length + value.length;
  }
  return length;
}

function toCodeName(code: DescriptorStatus['code']): RecordedCode {
  return code === codes.ok ? 'OK' : 'OVER_LIMIT';
}

/** The counter has the hits of other values, too. */
function isShared(match: Match | undefined): boolean {
  return match?.sharedValues !== undefined;
}

function hashValue(value: string, secret: string): string {
  return createHmac('sha256', secret).update(value).digest('hex').slice(0, hashLength);
}

/** A number from 0 to 2^32 - 1. A threshold needs bits that are even: mixed once more, as MurmurHash3 ends. */
function toDraw({ entries, hash = hashEntries(entries) }: RequestDescriptor): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
