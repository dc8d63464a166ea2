// Counts the decisions of an instance under one version of the rules, from the reports of one link. The worker counts
// from its start; only the difference between two reports is used. Pure except for its state.
import type {
  DomainFailureMessage,
  ReportMessage,
  TotalsMessage,
} from '../../../shared/wire/fleet-messages.ts';
import { maxNameLength } from './limits.ts';
import { toCount, toPassed, toTotals, toVersion } from './worker-figures.ts';

/** A failed request is not a decision. */
export interface Traffic {
  readonly decisions: number;
  readonly overLimit: number;
  readonly errors: number;
  /** Number of descriptors that match no rule; a request can have several. */
  readonly noMatch: number;
}

/** The hits of one rule. */
export type RuleHits = Pick<Traffic, 'overLimit'> & { readonly hits: number };

/** The requests of one domain that no rule decided. */
export type DomainFailures = Pick<Traffic, 'errors' | 'noMatch'>;

export interface Tallied extends Traffic {
  /** By metric key. Only the rules define which domain a key belongs to, because names of domains contain dots, too. */
  readonly rules: ReadonlyMap<string, RuleHits>;
  /** By domain; undefined if the worker does not report them. */
  readonly failures: ReadonlyMap<string, DomainFailures> | undefined;
}

/** The current sums, and those of 10 to 20 minutes before, or of the start of the series. */
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
  /** A new name after each change of the version, and for each link: sums of different series are unrelated. */
  readonly series: string;
  readonly version: string;
  /** The end of the previous series, which has another version. */
  readonly before: (Span & { readonly version: string }) | undefined;
  /** The kind of the store that the worker could not reach in the last minute; undefined if it could reach it
   * throughout. */
  readonly storeAway: string | undefined;
}

export interface TallyDeps {
  readonly nodeId: string;
  /** Returns a new text at each call. */
  readonly newSeries: () => string;
  /** Number of this worker's rules whose hits are retained, the largest of each report first, and of domains whose
   * failures are: those of further ones count only in the totals. */
  readonly mostRules: () => number;
  /** Returns a copy of this name that does not keep a report in memory, and that all workers share. */
  readonly toOwned: (name: string) => string;
}

const recentMs = 600_000;
/** How long after an outage errors are still attributed to it. */
const storeMs = 60_000;

export const noTraffic: Traffic = { decisions: 0, overLimit: 0, errors: 0, noMatch: 0 };
const nothing: Tallied = { ...noTraffic, rules: new Map(), failures: undefined };

interface Mark {
  readonly sums: Tallied;
  readonly atMs: number;
}

export class Tally {
  readonly #deps: TallyDeps;
  /** The counts of the previous report. */
  #totals: TotalsMessage | undefined;
  #counted: Counted | undefined;
  /** The sums at two earlier moments, the newer of which is at most ten minutes old. */
  #marks: readonly [Mark, Mark] | undefined;
  #outage: { readonly kind: string; readonly atMs: number } | undefined;

  constructor(deps: TallyDeps) {
    this.#deps = deps;
  }

  /** Undefined before the first report. */
  get counted(): Counted | undefined {
    return this.#counted;
  }

  /** Returns what was counted since the previous report: nothing for the first one. `atMs` is on the monotonic
   * clock. */
  add(report: ReportMessage, atMs: number): TotalsMessage {
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

  /** A report during which the version changed is not counted for either version. */
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
  const isBound = rules.size + report.rules.length > most;
  const sorted = isBound ? report.rules.toSorted((a, b) => b.hits - a.hits) : report.rules;
  for (const { rule, hits, overLimit } of sorted) {
    const known = rules.get(rule);
    const isLeftOut = rules.size >= most || rule.length > maxNameLength;
    if (known === undefined && isLeftOut) continue;
    rules.set(known ? rule : toOwned(rule), {
      hits: (known?.hits ?? 0) + toCount(hits),
      overLimit: (known?.overLimit ?? 0) + toCount(overLimit),
    });
  }
  const failures = addFailures(before.failures, report.failures?.domains, { most, toOwned });
  return { ...addTraffic(before, passed), rules, failures };
}

function addFailures(
  before: Tallied['failures'],
  domains: readonly DomainFailureMessage[] | undefined,
  { most, toOwned }: Pick<TallyDeps, 'toOwned'> & { readonly most: number },
): Tallied['failures'] {
  if (domains === undefined) return before;
  const failures = new Map(before);
  for (const { domain, errors, noMatch } of domains) {
    const known = failures.get(domain);
    const isLeftOut = failures.size >= most || domain.length > maxNameLength;
    if (known === undefined && isLeftOut) continue;
    failures.set(known ? domain : toOwned(domain), {
      errors: (known?.errors ?? 0) + toCount(errors),
      noMatch: (known?.noMatch ?? 0) + toCount(noMatch),
    });
  }
  return failures;
}

/** `more` is added this many times: -1 subtracts it. */
export function addTraffic(all: Traffic, more: Traffic, times = 1): Traffic {
  return {
    decisions: all.decisions + times * more.decisions,
    overLimit: all.overLimit + times * more.overLimit,
    errors: all.errors + times * more.errors,
    noMatch: all.noMatch + times * more.noMatch,
  };
}
