// Counts the decisions of an instance under one version of the rules, by the reports of one link, and whether
// these can be true. The worker counts from its start; only the difference of two reports is used. Pure but for
// its state.
import type { ReportMessage, TotalsMessage } from '../../shared/wire/fleet-messages.ts';
import { maxDecisionsPerSecond } from './limits.ts';

/**
 * The decisions of one instance under one version of the rules: sums of the differences between two reports that
 * both name the version.
 */
export interface Counted {
  readonly nodeId: string;
  /** New after each change of the version, and for each link: sums of different series have nothing in common. */
  readonly series: string;
  readonly version: string;
  /** Without the requests that failed. */
  readonly decisions: number;
  readonly overLimit: number;
  readonly errors: number;
  /** Descriptors that no rule is for. */
  readonly noMatch: number;
}

export interface Tally {
  /** `version` is that of the report as it is kept; `atMs` on the monotonic clock. */
  take(report: ReportMessage, totals: TotalsMessage, version: string, atMs: number): void;
  /** Undefined before the first report. */
  readonly counted: Counted | undefined;
  /** Why the reports cannot be true, for people; it stays. */
  readonly problem: string | undefined;
}

export interface TallyDeps {
  readonly nodeId: string;
  /** Returns a new text at each call. */
  readonly newSeries: () => string;
}

/** Reports that waited on their way come in one go. */
const leastMs = 1_000;

const totalNames = {
  decisions: 'decisions',
  overLimit: 'over limit',
  errors: 'errors',
  nearLimitHits: 'near limit',
  noMatch: 'without a rule',
  withoutStore: 'without the store',
} as const;

export function createTally({ nodeId, newSeries }: TallyDeps): Tally {
  let last: { readonly totals: TotalsMessage; readonly atMs: number } | undefined;
  let counted: Counted | undefined;
  let problem: string | undefined;

  return {
    take(report, totals, version, atMs) {
      problem ??= findUnfit(report) ?? (last && findContradiction(last, { totals, atMs }));
      if (last === undefined || counted?.version !== version) {
        // A report during which the version changed counts for none.
        const series = newSeries();
        const none = { decisions: 0, overLimit: 0, errors: 0, noMatch: 0 };
        counted = { nodeId, series, version, ...none };
      } else {
        const passed = toDifference(totals, last.totals);
        counted = {
          ...counted,
          decisions: counted.decisions + passed.decisions - passed.errors,
          overLimit: counted.overLimit + passed.overLimit,
          errors: counted.errors + passed.errors,
          noMatch: counted.noMatch + passed.noMatch,
        };
      }
      last = { totals, atMs };
    },
    get counted() {
      return counted;
    },
    get problem() {
      return problem;
    },
  };
}

function toDifference(totals: TotalsMessage, before: TotalsMessage) {
  return {
    decisions: totals.decisions - before.decisions,
    overLimit: totals.overLimit - before.overLimit,
    errors: totals.errors - before.errors,
    noMatch: totals.noMatch - before.noMatch,
  };
}

/** Numbers that no report has. */
function findUnfit({ seconds, totals, store }: ReportMessage): string | undefined {
  const counts: (readonly [string, number])[] = [['seconds', seconds]];
  for (const [field, name] of Object.entries(totalNames)) {
    counts.push([name, totals?.[field as keyof typeof totalNames] ?? 0]);
  }
  for (const field of ['durations', 'storeDurations'] as const) {
    for (const count of totals?.[field] ?? []) counts.push([field, count]);
  }
  const unfit = counts.find(([, count]) => !Number.isFinite(count) || count < 0);
  if (unfit !== undefined) return `it reports ${unfit[1]} as its ${unfit[0]}`;
  const offsetMs = store?.clockOffsetMs ?? 0;
  return Number.isFinite(offsetMs) ? undefined : `it reports ${offsetMs} as its clock's offset`;
}

function findContradiction(
  before: { readonly totals: TotalsMessage; readonly atMs: number },
  { totals, atMs }: { readonly totals: TotalsMessage; readonly atMs: number },
): string | undefined {
  for (const [field, name] of Object.entries(totalNames)) {
    const total = field as keyof Omit<TotalsMessage, 'durations' | 'storeDurations'>;
    const [then, now] = [before.totals[total], totals[total]];
    if (now < then) return `its total '${name}' fell from ${then} to ${now}`;
  }
  const { decisions, overLimit, errors } = toDifference(totals, before.totals);
  if (overLimit + errors > decisions) {
    return `it reports ${overLimit} over limit and ${errors} errors in ${decisions} decisions`;
  }
  const seconds = Math.max(leastMs, atMs - before.atMs) / 1000;
  if (decisions > maxDecisionsPerSecond * seconds) {
    return `it reports ${decisions} decisions in ${seconds.toFixed(1)} s`;
  }
  return undefined;
}
