// The figures of one worker's traffic, as rates between its last two reports. Pure. Reports are untrusted: the
// figures are always finite and not negative.
import { decisionDurationBounds } from '../../../shared/decision-durations.ts';
import type {
  QuotaMessage,
  ReportMessage,
  TotalsMessage,
} from '../../../shared/wire/fleet-messages.ts';

export interface WorkerFigures {
  /** Wall time of the last report. */
  readonly atMs: number;
  /** Version of the rules in force, as the worker reports it. */
  readonly version: string;
  readonly decisionsPerSecond: number;
  readonly overLimitPerSecond: number;
  readonly errorsPerSecond: number;
  readonly nearLimitPerSecond: number;
  readonly noMatchPerSecond: number;
  readonly withoutStorePerSecond: number;
  /** Decisions per duration bucket between the last two reports: one for each bound, and one more. */
  readonly durations: readonly number[];
  /** Calls of the store per duration bucket between the last two reports. */
  readonly storeDurations: readonly number[];
  /** Of the quota service; undefined where no Envoy asks it. */
  readonly quota?: QuotaFigures | undefined;
  readonly store: {
    readonly kind: string;
    readonly serversAway: number;
    readonly clockOffsetMs: number;
    /** Wall time since which requests are answered without it, or without one of its servers; undefined while it is
     * reached. */
    readonly unreachableSinceMs?: number | undefined;
    /** Whether it has answered calls in that time, so that only some requests are answered without it. */
    readonly isPartly?: boolean;
  };
}

export interface QuotaFigures {
  readonly streams: number;
  readonly buckets: number;
  readonly assignmentsPerSecond: number;
}

const noTotals: TotalsMessage = {
  decisions: 0,
  overLimit: 0,
  errors: 0,
  nearLimitHits: 0,
  noMatch: 0,
  durations: [],
  withoutStore: 0,
  storeDurations: [],
};
const durationCount = decisionDurationBounds.length + 1;
/** Reports are seconds apart; over a shorter time rates mean nothing. */
const leastSeconds = 0.5;
const maxTextLength = 128;

export function toTotals(given: TotalsMessage | null | undefined): TotalsMessage {
  if (given == null) return noTotals;
  return {
    decisions: toCount(given.decisions),
    overLimit: toCount(given.overLimit),
    errors: toCount(given.errors),
    nearLimitHits: toCount(given.nearLimitHits),
    noMatch: toCount(given.noMatch),
    durations: given.durations.slice(0, durationCount).map(toCount),
    withoutStore: toCount(given.withoutStore),
    storeDurations: given.storeDurations.slice(0, durationCount).map(toCount),
  };
}

/** `before` and `storeBefore` are of the previous report; undefined for the first one, which has no rates. */
export function toFigures(
  report: ReportMessage,
  totals: TotalsMessage,
  before: TotalsMessage | undefined,
  atMs: number,
  storeBefore?: WorkerFigures['store'],
): WorkerFigures {
  const seconds = Math.max(leastSeconds, toCount(report.seconds));
  const rate = (field: Exclude<keyof TotalsMessage, 'durations' | 'storeDurations'>) =>
    before === undefined ? 0 : Math.max(0, totals[field] - before[field]) / seconds;
  const passed = (field: 'durations' | 'storeDurations') =>
    totals[field].map((count, index) =>
      before === undefined ? 0 : Math.max(0, count - (before[field][index] ?? 0)),
    );
  const storeDurations = passed('storeDurations');
  const withoutStorePerSecond = rate('withoutStore');
  return {
    atMs,
    version: report.version.slice(0, maxTextLength),
    decisionsPerSecond: rate('decisions'),
    overLimitPerSecond: rate('overLimit'),
    errorsPerSecond: rate('errors'),
    nearLimitPerSecond: rate('nearLimitHits'),
    noMatchPerSecond: rate('noMatch'),
    withoutStorePerSecond,
    durations: passed('durations'),
    storeDurations,
    quota: report.quota ? toQuotaFigures(report.quota, seconds) : undefined,
    store: toStoreFigures(report, {
      before: storeBefore,
      hasAnswered: storeDurations.some((count) => count > 0),
      atMs,
      seconds,
    }),
  };
}

function toQuotaFigures(quota: QuotaMessage, seconds: number): QuotaFigures {
  const [streams, buckets] = [toCount(quota.streams), toCount(quota.buckets)];
  return { streams, buckets, assignmentsPerSecond: toCount(quota.assignments) / seconds };
}

interface StoreContext {
  readonly before: WorkerFigures['store'] | undefined;
  /** Whether it answered any call since the last report. */
  readonly hasAnswered: boolean;
  readonly atMs: number;
  readonly seconds: number;
}

function toStoreFigures(
  { store }: ReportMessage,
  { before, hasAnswered, atMs, seconds }: StoreContext,
): WorkerFigures['store'] {
  const serversAway = toCount(store?.serversAway);
  const forSeconds = toCount(store?.unreachableSeconds);
  // An older worker tells only that a server is away, and not since when.
  const isAway = forSeconds > 0 || serversAway > 0;
  const sinceMs = before?.unreachableSinceMs ?? atMs - forSeconds * 1000;
  return {
    kind: (store?.kind ?? '').slice(0, maxTextLength),
    serversAway,
    clockOffsetMs: Number.isFinite(store?.clockOffsetMs) ? (store?.clockOffsetMs ?? 0) : 0,
    unreachableSinceMs: isAway ? sinceMs : undefined,
    // In the first interval calls were answered before it began.
    isPartly: isAway && hasAnswered && forSeconds > seconds,
  };
}

/** Counts of the time between two reports. */
export function toPassed(totals: TotalsMessage, before: TotalsMessage) {
  return {
    decisions: Math.max(0, totals.decisions - before.decisions),
    overLimit: Math.max(0, totals.overLimit - before.overLimit),
    errors: Math.max(0, totals.errors - before.errors),
  };
}

/** Sanitises an untrusted number. Sums of many of them are finite. */
export function toCount(value: number | undefined): number {
  if (value === undefined || !Number.isFinite(value) || value < 0) return 0;
  return Math.min(value, Number.MAX_SAFE_INTEGER);
}
