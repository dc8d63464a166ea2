// Counts the decisions of an instance under one version of the rules, by the reports of one link. The worker counts from
// its start; only the difference of two reports is used. Pure but for its state.
import { owned } from '../../../shared/owned-text.ts';
import type { ReportMessage, TotalsMessage } from '../../../shared/wire/fleet-messages.ts';
import { toCount } from './worker-figures.ts';

/** A failed request is no decision. */
export interface Traffic {
  readonly decisions: number;
  readonly overLimit: number;
  readonly errors: number;
  /** Descriptors that no rule is for; a request may have several. */
  readonly noMatch: number;
}

export interface DomainTraffic {
  readonly hits: number;
  readonly overLimit: number;
  /** This and `noMatch` are left out where the worker does not report them. */
  readonly errors?: number;
  readonly noMatch?: number;
}

export interface Figures extends Traffic {
  /** By `toDomainHead`. */
  readonly domains: ReadonlyMap<string, DomainTraffic>;
}

/**
 * The decisions of one instance under one version of the rules: sums of the differences between two reports that
 * both name the version.
 */
export interface Counted extends Figures {
  readonly nodeId: string;
  /** New after each change of the version, and for each link: sums of different series have nothing in common. */
  readonly series: string;
  readonly version: string;
  /** The last 10 to 20 minutes of these, or fewer where there are no more. */
  readonly recent: Figures;
  /** `recent` of the series before, which has another version. */
  readonly before: { readonly version: string; readonly figures: Figures } | undefined;
  /** The kind of a store that the worker could not reach; undefined where it could in all of the last minute. */
  readonly storeAway: string | undefined;
}

export interface Tally {
  /** `version` is that of the report as it is kept; `atMs` on the monotonic clock. */
  take(report: ReportMessage, totals: TotalsMessage, version: string, atMs: number): void;
  /** Undefined before the first report. */
  readonly counted: Counted | undefined;
}

export interface TallyDeps {
  readonly nodeId: string;
  /** Returns a new text at each call. */
  readonly newSeries: () => string;
}

const recentMs = 600_000;
/** An outage is over for so long before errors are no more taken for its own. */
const storeMs = 60_000;
/** Of one worker; hits of more are in no domain. */
const maxDomains = 100;

export const noTraffic: Traffic = { decisions: 0, overLimit: 0, errors: 0, noMatch: 0 };
export const noFigures: Figures = { ...noTraffic, domains: new Map() };
export const noHits: DomainTraffic = { hits: 0, overLimit: 0, errors: 0, noMatch: 0 };

interface Mark {
  readonly figures: Figures;
  readonly atMs: number;
}

export function createTally({ nodeId, newSeries }: TallyDeps): Tally {
  let last: TotalsMessage | undefined;
  let counted: Counted | undefined;
  /** The sums at two moments, from the newer of which at most ten minutes have passed. */
  let marks: readonly [Mark, Mark] | undefined;
  let outage: { readonly kind: string; readonly atMs: number } | undefined;

  return {
    take(report, totals, version, atMs) {
      const { store } = report;
      const isAway = toCount(store?.serversAway) + toCount(store?.unreachableSeconds) > 0;
      if (isAway) outage = { kind: (store?.kind ?? '').slice(0, 20), atMs };
      const storeAway = outage && atMs - outage.atMs < storeMs ? outage.kind : undefined;
      if (last === undefined || counted?.version !== version || marks === undefined) {
        // A report during which the version changed counts for none.
        const before = counted && { version: counted.version, figures: counted.recent };
        const names = { nodeId, series: newSeries(), version };
        counted = { ...names, ...noFigures, recent: noFigures, before, storeAway };
        marks = [
          { figures: noFigures, atMs },
          { figures: noFigures, atMs },
        ];
      } else {
        const figures = addReport(counted, toDifference(totals, last), report);
        const [older, newer] = marks;
        if (atMs - newer.atMs >= recentMs) marks = [newer, { figures, atMs }];
        counted = { ...counted, ...figures, recent: subtract(figures, older.figures), storeAway };
      }
      last = totals;
    },
    get counted() {
      return counted;
    },
  };
}

/** By which the rules of a domain are found: statistics have dots between their parts, and a domain may have some. */
export function toDomainHead(name: string): string {
  const dot = name.indexOf('.');
  return dot === -1 ? name : name.slice(0, dot);
}

function toDifference(totals: TotalsMessage, before: TotalsMessage): Traffic {
  const passed = (field: 'decisions' | 'overLimit' | 'errors' | 'noMatch') =>
    Math.max(0, totals[field] - before[field]);
  const [all, errors] = [passed('decisions'), passed('errors')];
  const decisions = Math.max(0, all - errors);
  return { decisions, overLimit: passed('overLimit'), errors, noMatch: passed('noMatch') };
}

function addReport(before: Figures, passed: Traffic, { rules, failures }: ReportMessage): Figures {
  const domains = new Map(before.domains);
  const none = failures == null ? { hits: 0, overLimit: 0 } : noHits;
  function add(name: string, counts: Partial<DomainTraffic>): void {
    const head = toDomainHead(name);
    const known = domains.get(head);
    if (known === undefined && domains.size >= maxDomains) return;
    domains.set(known ? head : owned(head), addOfDomain(known ?? none, counts));
  }
  for (const { rule, hits, overLimit: over } of rules) {
    add(rule, { hits: toCount(hits), overLimit: toCount(over) });
  }
  for (const { domain, ...counts } of failures?.domains ?? []) {
    add(domain, { errors: toCount(counts.errors), noMatch: toCount(counts.noMatch) });
  }
  return { ...addTraffic(before, passed), domains };
}

/** What `all` has more than `part`, which is an earlier sum of the same series. */
export function subtract(all: Figures, part: Figures): Figures {
  const domains = [...all.domains].map(([name, ofDomain]) => {
    const before = part.domains.get(name) ?? noHits;
    return [name, addOfDomain(ofDomain, before, -1)] as const;
  });
  return { ...addTraffic(all, part, -1), domains: new Map(domains) };
}

/** `more` is added so many times: -1 takes it away. */
export function addTraffic(all: Traffic, more: Traffic, times = 1): Traffic {
  return {
    decisions: all.decisions + times * more.decisions,
    overLimit: all.overLimit + times * more.overLimit,
    errors: all.errors + times * more.errors,
    noMatch: all.noMatch + times * more.noMatch,
  };
}

function addOfDomain(
  { hits, overLimit, errors, noMatch }: DomainTraffic,
  more: Partial<DomainTraffic>,
  times = 1,
): DomainTraffic {
  const counts = {
    hits: hits + times * (more.hits ?? 0),
    overLimit: overLimit + times * (more.overLimit ?? 0),
  };
  if (errors === undefined || noMatch === undefined) return counts;
  return {
    ...counts,
    errors: errors + times * (more.errors ?? 0),
    noMatch: noMatch + times * (more.noMatch ?? 0),
  };
}
