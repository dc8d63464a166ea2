// The figures of one worker's traffic, as rates between its last two reports. Pure. Reports are untrusted: the figures
// are always finite and not negative.
import { decisionDurationBounds } from '../../../shared/decision-durations.ts';
import type {
  QuotaMessage,
  ReportMessage,
  TotalsMessage,
} from '../../../shared/wire/fleet-messages.ts';
import { toTime } from '../api-shape.ts';

export interface WorkerFigures {
  /** Wall time of the last report. */
  readonly atMs: number;
  /** Version of the rules in force, as the worker reports it. */
  readonly version: string;
  readonly decisionsPerSecond: number;
  readonly overLimitPerSecond: number;
  readonly errorsPerSecond: number;
  readonly withoutStorePerSecond: number;
  /** Decisions per duration bucket between the last two reports: one bucket per bound, and one for longer durations. */
  readonly durations: readonly number[];
  /** Store calls per duration bucket between the last two reports. */
  readonly storeDurations: readonly number[];
  /** Figures of the quota service; undefined if no Envoy uses it. */
  readonly quota?: QuotaFigures | undefined;
  readonly store: {
    readonly kind: string;
    readonly serversAway: number;
    readonly clockOffsetMs: number;
    /** Since when requests are answered without the store, or without one of its servers; absent while it can be
     * reached. */
    readonly unreachableSince?: string;
    /** Whether the store has answered calls in that time, so that only some requests are answered without it. */
    readonly isPartly?: boolean;
  };
}

export interface QuotaFigures {
  readonly streams: number;
  readonly buckets: number;
  readonly assignmentsPerSecond: number;
}

const durationCount = decisionDurationBounds.length + 1;
/** Reports are seconds apart; rates over a shorter time are meaningless. */
const leastSeconds = 0.5;
const maxTextLength = 128;

type CountField = Exclude<keyof TotalsMessage, ListField>;
type ListField = 'durations' | 'storeDurations';

function makeTotals(
  count: (field: CountField) => number,
  list: (field: ListField) => readonly number[],
): TotalsMessage {
  return {
    decisions: count('decisions'),
    overLimit: count('overLimit'),
    errors: count('errors'),
    nearLimitHits: count('nearLimitHits'),
    noMatch: count('noMatch'),
    durations: list('durations'),
    withoutStore: count('withoutStore'),
    storeDurations: list('storeDurations'),
  };
}

const noTotals = makeTotals(
  () => 0,
  () => [],
);

export function toTotals(given: TotalsMessage | null | undefined): TotalsMessage {
  if (given == null) return noTotals;
  return makeTotals(
    (field) => toCount(given[field]),
    (field) => given[field].slice(0, durationCount).map(toCount),
  );
}

/** Counts between two reports. */
export function toPassed(totals: TotalsMessage, before: TotalsMessage): TotalsMessage {
  return makeTotals(
    (field) => Math.max(0, totals[field] - before[field]),
    (field) =>
      totals[field].map((count, index) => Math.max(0, count - (before[field][index] ?? 0))),
  );
}

/** The form in which the report is retained. */
export function toVersion({ version }: Pick<ReportMessage, 'version'>): string {
  return version.slice(0, maxTextLength);
}

/** `passed`: the counts since the previous report, whose store figures are `storeBefore`; all 0 for the first
 * report. */
export function toFigures(
  report: ReportMessage,
  passed: TotalsMessage,
  atMs: number,
  storeBefore?: WorkerFigures['store'],
): WorkerFigures {
  const seconds = Math.max(leastSeconds, toCount(report.seconds));
  const rate = (field: CountField) => passed[field] / seconds;
  const { durations, storeDurations } = passed;
  return {
    atMs,
    version: toVersion(report),
    decisionsPerSecond: rate('decisions'),
    overLimitPerSecond: rate('overLimit'),
    errorsPerSecond: rate('errors'),
    withoutStorePerSecond: rate('withoutStore'),
    durations,
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
  /** Whether the store has answered any call since the previous report. */
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
  // An older worker reports only that a server is away, not since when.
  const isAway = forSeconds > 0 || serversAway > 0;
  const unreachableSince = before?.unreachableSince ?? toTime(atMs - forSeconds * 1000);
  return {
    kind: (store?.kind ?? '').slice(0, maxTextLength),
    serversAway,
    clockOffsetMs: Number.isFinite(store?.clockOffsetMs) ? (store?.clockOffsetMs ?? 0) : 0,
    ...(isAway && { unreachableSince }),
    // In the first interval, calls were answered before the outage began.
    isPartly: isAway && hasAnswered && forSeconds > seconds,
  };
}

/** Sanitizes an untrusted number, so that even sums of many of them are finite. */
export function toCount(value: number | undefined): number {
  if (value === undefined || !Number.isFinite(value) || value < 0) return 0;
  return Math.min(value, Number.MAX_SAFE_INTEGER);
}
