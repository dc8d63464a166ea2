// Estimates how often other rules would have refused values for which only the number of refusals is known: synthetic
// sequences of requests that the rules in force refuse just as often are decided again under the other rules, by the
// worker's own code.
//
// How the requests were spread over time is unknown. Two sequences bound what is likely: an even stream through all
// windows, and one burst; where a window is longer than the observed time, the counter may have been used up before.
import { windowSecondsOf } from '../../../../shared/rules/limit-shape.ts';
import type { Entry, Match } from '../../../../shared/rules/rule.ts';
import { codes } from '../../../../worker/decision/message.ts';
import { parseWorkerSettings, type WorkerSettings } from '../../../../worker/settings.ts';
import { createRehearsal } from '../rehearsal.ts';
import type { RulesInTime } from '../rules-in-time.ts';

export interface SeenValue {
  readonly entries: readonly Entry[];
  /** The number of refusals in the last `seconds`. */
  readonly atLeast: number;
  readonly atMost: number;
  readonly seconds: number;
}

export interface Range {
  readonly atLeast: number;
  readonly atMost: number;
}

export interface EstimatedValue {
  readonly entries: readonly Entry[];
  /** The rule in force that refuses it. */
  readonly rule: string;
  /** Observed. */
  readonly before: Range;
  /** Estimated, for the same time. */
  readonly after: Range;
  /** Whether a window is longer than the observed time: how full it was before is unknown. */
  readonly isOfLongWindow: boolean;
}

export interface EstimateInput {
  readonly domain: string;
  readonly values: readonly SeenValue[];
  /** The rules in force, and the other rules; both valid at `nowMs`. */
  readonly before: RulesInTime;
  readonly after: RulesInTime;
  /** Wall time in milliseconds. */
  readonly nowMs: number;
}

/** Omits values that the rules in force do not refuse, such as those with truncated texts. Yields between runs, which
 * take some milliseconds each. */
export function* estimateEffect(input: EstimateInput): Generator<void, EstimatedValue[]> {
  const settings = defaultSettings();
  const estimated: EstimatedValue[] = [];
  for (const seen of input.values) {
    const value = yield* estimateValue(seen, { ...input, settings });
    if (value !== undefined) estimated.push(value);
  }
  return estimated;
}

interface Context extends Omit<EstimateInput, 'values'> {
  readonly settings: WorkerSettings;
}

function* estimateValue(
  seen: SeenValue,
  context: Context,
): Generator<void, EstimatedValue | undefined> {
  const { before, after, nowMs } = context;
  const matched = findMatch(seen.entries, before, context);
  if (matched?.longest === undefined) return undefined;
  const spanMs = Math.max(1, seen.seconds * 1000);
  const refused = Math.max(1, Math.round(seen.atMost));
  const next = findMatch(seen.entries, after, context)?.longest ?? matched.longest;
  const longest = {
    windowMs: Math.max(matched.longest.windowMs, next.windowMs),
    isFixed: matched.longest.isFixed && next.isFixed,
  };
  const results: number[] = [];
  for (const toCourse of coursesOf(longest, spanMs, nowMs)) {
    const hits = yield* findHits(seen.entries, toCourse, refused, context);
    if (hits === undefined) continue;
    results.push(countRefused(seen.entries, toCourse(hits), after, context));
    yield;
  }
  if (results.length === 0) return undefined;
  const doubt = seen.atMost - seen.atLeast;
  return {
    entries: seen.entries,
    rule: matched.rule,
    before: { atLeast: seen.atLeast, atMost: seen.atMost },
    after: {
      atLeast: Math.max(0, Math.min(...results) - doubt),
      atMost: Math.max(...results),
    },
    isOfLongWindow: longest.windowMs > spanMs,
  };
}

/** Requests in chronological order; those of one moment are one request with several hits. */
interface Course {
  readonly moments: readonly { readonly atMs: number; readonly hits: number }[];
  /** Refusals before this time are unknown. */
  readonly fromMs: number;
}

/** `hits`: the number of hits in the observed time. */
type ToCourse = (hits: number) => Course;

/** A fixed window admits as many of a moment's hits as fit; other algorithms admit all or none, so they need smaller
 * moments. */
const steps = { fixed: 200, other: 1_000 } as const;
/** More than any counter has room for. */
const plenty = 1e9;

function coursesOf(
  { windowMs, isFixed }: LongestLimit,
  spanMs: number,
  nowMs: number,
): readonly ToCourse[] {
  const count = isFixed ? steps.fixed : steps.other;
  const fromMs = nowMs - spanMs;
  const windowStartMs = Math.floor(fromMs / windowMs) * windowMs;
  const even: ToCourse = (hits) => ({
    fromMs,
    moments: [
      ...spread((hits * (fromMs - windowStartMs)) / spanMs, windowStartMs, fromMs, count),
      ...spread(hits, fromMs, nowMs, count),
    ],
  });
  const rush: ToCourse = (hits) => ({ fromMs, moments: [{ atMs: nowMs - 1, hits }] });
  const usedUp: ToCourse = (hits) => ({
    fromMs,
    moments: [
      { atMs: Math.min(windowStartMs, fromMs - 1), hits: plenty },
      ...spread(hits, fromMs, nowMs, count),
    ],
  });
  return windowMs > spanMs ? [even, rush, usedUp] : [even, rush];
}

function spread(hits: number, fromMs: number, toMs: number, count: number): Course['moments'] {
  return Array.from({ length: count }, (_, index) => ({
    atMs: fromMs + ((toMs - fromMs) * index) / count,
    hits: Math.floor((hits * (index + 1)) / count) - Math.floor((hits * index) / count),
  })).filter((moment) => moment.hits > 0);
}

const mostTries = 6;

/** The number of hits that the rules in force would refuse `refused` times; undefined where the course cannot lead to
 * that. */
function* findHits(
  entries: readonly Entry[],
  toCourse: ToCourse,
  refused: number,
  context: Context,
): Generator<void, number | undefined> {
  const refusedOf = (hits: number) =>
    countRefused(entries, toCourse(hits), context.before, context);
  // The number of hits that pass when more arrive than can pass.
  let hits = refused + (plenty - refusedOf(plenty));
  yield;
  for (let tries = 0; tries < mostTries; tries++) {
    const missing = refused - refusedOf(hits);
    yield;
    const isLast = tries === mostTries - 1;
    if (missing === 0 || (isLast && Math.abs(missing) <= refused / 50)) return hits;
    hits += missing;
  }
  return undefined;
}

/** Hits refused in the observed time. */
function countRefused(
  entries: readonly Entry[],
  { moments, fromMs }: Course,
  rules: RulesInTime,
  { domain, settings }: Context,
): number {
  const startMs = moments[0]?.atMs ?? fromMs;
  const rehearsal = createRehearsal({ rules, settings, startMs });
  const readOver = () => {
    const all = [...rehearsal.statistics()].filter(
      ([name]) => name.startsWith('ratelimit.service.rate_limit.') && name.endsWith('.over_limit'),
    );
    return Math.max(0, ...all.map(([, count]) => count));
  };
  let overBefore: number | undefined;
  let hitsSince = 0;
  let wasRefused = false;
  for (const { atMs, hits } of moments) {
    if (atMs >= fromMs) {
      overBefore ??= readOver();
      hitsSince += hits;
    }
    const { outcome } = rehearsal.decide(toRequest(domain, entries, hits), Math.floor(atMs));
    // In shadow mode, hits over the limit are counted but not refused.
    if (atMs >= fromMs && outcome.ok) {
      wasRefused ||= outcome.response.overallCode === codes.overLimit;
    }
  }
  return wasRefused ? Math.min(hitsSince, readOver() - (overBefore ?? 0)) : 0;
}

interface LongestLimit {
  readonly windowMs: number;
  readonly isFixed: boolean;
}

/** Undefined if no rule matches; `longest` is the longest window of its limits, undefined for an unlimited rule. */
function findMatch(
  entries: readonly Entry[],
  rules: RulesInTime,
  { domain, settings, nowMs }: Context,
): { readonly rule: string; readonly longest: LongestLimit | undefined } | undefined {
  const rehearsal = createRehearsal({ rules, settings, startMs: nowMs });
  const [match] = rehearsal.decide(toRequest(domain, entries, 1), nowMs).matches;
  if (match === undefined) return undefined;
  const rule = rehearsal.find(domain, entries, match)?.name ?? match.metricKey;
  return { rule, longest: toLongest(match) };
}

function toLongest({ limit, parts }: Match): LongestLimit | undefined {
  const limits = (parts?.map((part) => part.limit) ?? [limit]).filter(
    ({ unlimited }) => !unlimited,
  );
  if (limits.length === 0) return undefined;
  return {
    windowMs: Math.max(...limits.map((each) => windowSecondsOf(each) * 1000)),
    isFixed: limits.every(({ limiter }) => limiter === undefined),
  };
}

function toRequest(domain: string, entries: readonly Entry[], hitsAddend: number) {
  const descriptor = { entries, limit: undefined, hitsAddend: undefined, isNegativeHits: false };
  return { domain, hitsAddend, descriptors: [descriptor] };
}

function defaultSettings(): WorkerSettings {
  const read = parseWorkerSettings({ BACKEND_TYPE: 'memory' });
  if (!read.ok) throw new Error(read.problems.join('; '));
  return read.settings;
}
