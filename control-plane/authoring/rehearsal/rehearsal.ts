// Decides as a worker would: with the worker's own code over given rules, counters in this process and a clock that is
// set to the time of each request. Tests of rules and replays of recordings use it.
//
// Only the parts of a worker that wait are missing: ports, servers and leases, which change no answer.
import type { Clock } from '../../../shared/clock.ts';
import { silentLog } from '../../../shared/log.ts';
import type { NamedRule } from '../../../shared/rules/lookup/possible-rules.ts';
import type { Entry, Limit, Match } from '../../../shared/rules/rule.ts';
import { MemoryStore } from '../../../worker/counters/memory-store.ts';
import type { RateLimitRequest } from '../../../worker/decision/message.ts';
import { createOverLimitCache } from '../../../worker/decision/over-limit-cache.ts';
import {
  createShouldRateLimit,
  Decision,
  type DecisionOutcome,
} from '../../../worker/decision/should-rate-limit.ts';
import { createUnmatchedSampler } from '../../../worker/decision/unmatched-sampler.ts';
import { toDecisionOptions } from '../../../worker/decision-options.ts';
import { createRegistry } from '../../../worker/metrics/registry.ts';
import type { WorkerSettings } from '../../../worker/settings.ts';
import { explainLookup } from '../explain/lookup-explanation.ts';
import type { RulesInTime, RulesNow } from './rules-in-time.ts';

export interface RehearsalDeps {
  readonly rules: RulesInTime;
  readonly settings: WorkerSettings;
  /** Wall time in milliseconds at which the rehearsal begins, with empty counters. The rules must be valid then. */
  readonly startMs: number;
}

/** Resolves each rule once, however many requests match it. */
interface RuleFinder {
  /** Undefined for a limit that came with the request. */
  find(domain: string, entries: readonly Entry[], match: Match): NamedRule | undefined;
}

export interface Rehearsal extends RuleFinder {
  /** Decides at the given wall time, in milliseconds. */
  decide(request: RateLimitRequest, atMs: number): RehearsedDecision;
  /** The statistics so far, by full name. */
  statistics(): ReadonlyMap<string, number>;
  /** The rules of the last decision. */
  rules(): RulesNow;
}

export interface RehearsedDecision {
  readonly outcome: DecisionOutcome;
  /** The match of each descriptor; undefined where no limit applied. */
  readonly matches: readonly (Match | undefined)[];
}

class OpenDecision extends Decision {
  outcome: DecisionOutcome | undefined;

  answer(outcome: DecisionOutcome): void {
    this.outcome = outcome;
  }
}

export function createRehearsal({ rules, settings, startMs }: RehearsalDeps): Rehearsal {
  const clock = createTurnedClock(startMs);
  const metrics = createRegistry({
    runtimeNamesMax: settings.stats.runtimeMetricNames,
    // The outcomes contain everything that a worker would log.
    log: silentLog,
  });
  let now = rulesAt(startMs);
  /** The store's operation for the current request. */
  let counting: (() => void) | undefined;
  const shouldRateLimit = createShouldRateLimit({
    rules: {
      get current() {
        return now.ruleSet;
      },
    },
    store: new MemoryStore({
      clock,
      log: silentLog,
      soon(task) {
        counting = task;
      },
    }),
    overLimitCache: createOverLimitCache(settings.limits.localCacheSizeBytes, metrics, clock),
    metrics,
    unmatched: createUnmatchedSampler(metrics, () => {}),
    clock,
    options: toDecisionOptions(settings),
  });

  function rulesAt(nowMs: number): RulesNow {
    const result = rules(nowMs);
    // As in a worker, the previous rules stay in force.
    return result.ok ? result.rules : now;
  }

  return {
    decide(request, atMs) {
      clock.turnTo(atMs);
      now = rulesAt(atMs);
      const decision = new OpenDecision(request, clock.monotonicMs(), undefined, undefined);
      shouldRateLimit(decision);
      const task = counting;
      counting = undefined;
      task?.();
      if (decision.outcome === undefined) throw new Error('a decision was left without an answer');
      return { outcome: decision.outcome, matches: decision.matches };
    },
    statistics: () => metrics.snapshot(),
    rules: () => now,
    ...createRuleFinder(() => now),
  };
}

function createRuleFinder(rules: () => RulesNow): RuleFinder {
  const known = new WeakMap<Limit, NamedRule>();
  return {
    find(domain, entries, match) {
      const before = known.get(match.limit);
      if (before !== undefined) return before;
      const { levels, rule } = explainLookup(rules().located.get(domain) ?? [], entries);
      if (rule === undefined) return undefined;
      const path = levels.flatMap(({ chosen }) => chosen?.rule.composite ?? []);
      const found = { name: [domain, ...path].join('.'), rule };
      known.set(match.limit, found);
      return found;
    },
  };
}

/** A clock that stops between two requests, and is set to the time of each. */
interface TurnedClock extends Clock {
  /** Wall time in milliseconds. It may go backwards, as a host's clock can; the monotonic time does not. */
  turnTo(wallMs: number): void;
}

function createTurnedClock(startMs: number): TurnedClock {
  let wall = startMs;
  let monotonic = 0;
  return {
    wallMs: () => wall,
    monotonicMs: () => monotonic,
    /** Nothing in a rehearsal waits. */
    after: () => () => {},
    turnTo(wallMs) {
      // As of a host's clock: the counters depend on whole milliseconds.
      wall = Math.floor(wallMs);
      monotonic = Math.max(monotonic, wallMs - startMs);
    },
  };
}
