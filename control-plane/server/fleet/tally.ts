// Counts the decisions of an instance under one version of the rules, by the reports of one link. The worker counts from
// its start; only the difference of two reports is used. Pure but for its state.
import type {
  DomainFailureMessage,
  ReportMessage,
  TotalsMessage,
} from '../../../shared/wire/fleet-messages.ts';
import { maxNameLength } from './limits.ts';
import { toCount, toPassed, toTotals, toVersion } from './worker-figures.ts';

/** A failed request is no decision. */
export interface Traffic {
  readonly decisions: number;
  readonly overLimit: number;
  readonly errors: number;
  /** Descriptors that no rule is for; a request may have several. */
  readonly noMatch: number;
}

/** Hits of one rule. */
export type RuleHits = Pick<Traffic, 'overLimit'> & { readonly hits: number };

/** What no rule has decided, of one domain. */
export type DomainFailures = Pick<Traffic, 'errors' | 'noMatch'>;

export interface Tallied extends Traffic {
  /** By metric key. Which domain a key is of is known from the rules alone: there are dots in names of domains, too. */
  readonly rules: ReadonlyMap<string, RuleHits>;
  /** By domain; undefined where the worker does not report them. */
  readonly failures: ReadonlyMap<string, DomainFailures> | undefined;
}

/** Sums, and what they were 10 to 20 minutes before, or at their begin. */
export interface Span {
  readonly now: Tallied;
  readonly older: Tallied;
}

/**
 * The decisions of one instance under one version of the rules: sums of the differences between two reports that
 * both name the version.
 */
export interface Counted extends Span {
  readonly nodeId: string;
  /** New after each change of the version, and for each link: sums of different series have nothing in common. */
  readonly series: string;
  readonly version: string;
  /** The end of the series before, which has another version. */
  readonly before: (Span & { readonly version: string }) | undefined;
  /** The kind of a store that the worker could not reach; undefined where it could in all of the last minute. */
  readonly storeAway: string | undefined;
}

export interface TallyDeps {
  readonly nodeId: string;
  /** Returns a new text at each call. */
  readonly newSeries: () => string;
  /** Rules of this worker whose hits are kept: those of more count in the sums of all alone. */
  readonly mostRules: () => number;
  /** A text of this name that keeps no report in memory, and is the same one for all workers. */
  readonly toOwned: (name: string) => string;
}

const recentMs = 600_000;
/** An outage is over for so long before errors are no more taken for its own. */
const storeMs = 60_000;
/** Whose failures are kept. */
const maxDomains = 100;

export const noTraffic: Traffic = { decisions: 0, overLimit: 0, errors: 0, noMatch: 0 };
const nothing: Tallied = { ...noTraffic, rules: new Map(), failures: undefined };

interface Mark {
  readonly sums: Tallied;
  readonly atMs: number;
}

export class Tally {
  readonly #deps: TallyDeps;
  /** Of the report before. */
  #totals: TotalsMessage | undefined;
  #counted: Counted | undefined;
  /** The sums at two moments, from the newer of which at most ten minutes have passed. */
  #marks: readonly [Mark, Mark] | undefined;
  #outage: { readonly kind: string; readonly atMs: number } | undefined;

  constructor(deps: TallyDeps) {
    this.#deps = deps;
  }

  /** Undefined before the first report. */
  get counted(): Counted | undefined {
    return this.#counted;
  }

  /** Returns what was counted since the report before: nothing for the first one. `atMs` is on the monotonic clock. */
  take(report: ReportMessage, atMs: number): TotalsMessage {
    const totals = toTotals(report.totals);
    const passed = toPassed(totals, this.#totals ?? totals);
    const isFirst = this.#totals === undefined;
    this.#totals = totals;
    const version = toVersion(report);
    const storeAway = this.#noteStore(report, atMs);
    const [counted, marks] = [this.#counted, this.#marks];
    if (isFirst || counted?.version !== version || marks === undefined) {
      this.#begin(version, storeAway, atMs);
      return passed;
    }
    const now = addReport(counted.now, toTraffic(passed), report, this.#deps);
    const [older, newer] = marks;
    if (atMs - newer.atMs >= recentMs) this.#marks = [newer, { sums: now, atMs }];
    this.#counted = { ...counted, now, older: older.sums, storeAway };
    return passed;
  }

  #noteStore({ store }: ReportMessage, atMs: number): string | undefined {
    const isAway = toCount(store?.serversAway) + toCount(store?.unreachableSeconds) > 0;
    if (isAway) this.#outage = { kind: (store?.kind ?? '').slice(0, 20), atMs };
    const outage = this.#outage;
    return outage && atMs - outage.atMs < storeMs ? outage.kind : undefined;
  }

  /** A report during which the version changed counts for none. */
  #begin(version: string, storeAway: string | undefined, atMs: number): void {
    const { nodeId, newSeries } = this.#deps;
    const { version: old = '', now, older } = this.#counted ?? {};
    const before = now && older && { version: old, now, older };
    this.#counted = {
      ...{ nodeId, series: newSeries(), version, now: nothing, older: nothing },
      ...{ before, storeAway },
    };
    const begin = { sums: nothing, atMs };
    this.#marks = [begin, begin];
  }
}

function toTraffic({ decisions, overLimit, errors, noMatch }: TotalsMessage): Traffic {
  return { decisions: Math.max(0, decisions - errors), overLimit, errors, noMatch };
}

function addReport(
  before: Tallied,
  passed: Traffic,
  report: ReportMessage,
  { mostRules, toOwned }: Pick<TallyDeps, 'mostRules' | 'toOwned'>,
): Tallied {
  const rules = new Map(before.rules);
  const most = mostRules();
  for (const { rule, hits, overLimit } of report.rules) {
    const known = rules.get(rule);
    const isLeftOut = rules.size >= most || rule.length > maxNameLength;
    if (known === undefined && isLeftOut) continue;
    rules.set(known ? rule : toOwned(rule), {
      hits: (known?.hits ?? 0) + toCount(hits),
      overLimit: (known?.overLimit ?? 0) + toCount(overLimit),
    });
  }
  const failures = addFailures(before.failures, report.failures?.domains, toOwned);
  return { ...addTraffic(before, passed), rules, failures };
}

function addFailures(
  before: Tallied['failures'],
  domains: readonly DomainFailureMessage[] | undefined,
  toOwned: TallyDeps['toOwned'],
): Tallied['failures'] {
  if (domains === undefined) return before;
  const failures = new Map(before);
  for (const { domain, errors, noMatch } of domains) {
    const known = failures.get(domain);
    const isLeftOut = failures.size >= maxDomains || domain.length > maxNameLength;
    if (known === undefined && isLeftOut) continue;
    failures.set(known ? domain : toOwned(domain), {
      errors: (known?.errors ?? 0) + toCount(errors),
      noMatch: (known?.noMatch ?? 0) + toCount(noMatch),
    });
  }
  return failures;
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
