// A decision with real rules and counters in process, on a manual clock.
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import type { RuleSet } from '../../shared/rules/rule.ts';
import { buildRuleSet } from '../../shared/rules/rule-set.ts';
import type { AnsweringMode } from '../../worker/counters/failure/failure-mode.ts';
import { createFailurePolicy } from '../../worker/counters/failure/failure-policy.ts';
import type { Leases } from '../../worker/counters/leases.ts';
import { MemoryStore } from '../../worker/counters/memory-store.ts';
import type { CounterStore } from '../../worker/counters/store.ts';
import { createDecisionTrail } from '../../worker/decision/decision-trail.ts';
import {
  codes,
  type RateLimitRequest,
  type RequestDescriptor,
} from '../../worker/decision/message.ts';
import { createOverLimitCache } from '../../worker/decision/over-limit-cache.ts';
import {
  createShouldRateLimit,
  Decision,
  type DecisionOptions,
  type DecisionOutcome,
} from '../../worker/decision/should-rate-limit.ts';
import {
  createUnmatchedSampler,
  type UnmatchedSample,
} from '../../worker/decision/unmatched-sampler.ts';
import { createRegistry } from '../../worker/metrics/registry.ts';
import { createManualClock } from './manual-clock.ts';
import { createRecordedLog } from './recorded-log.ts';

export const defaults: DecisionOptions = {
  weekResetDay: 4,
  calendarMonths: false,
  storeTimeoutMs: 1_000,
  cacheKeyPrefix: '',
  storesLongKeys: false,
  nearLimitRatio: 0.8,
  shadowMode: false,
  quotaMode: false,
  stopIncrementWhenOver: 'false',
  sanitizeMetricDots: false,
  dynamicMetadata: false,
  headers: { response: undefined, request: undefined, perUnit: undefined, shadowed: undefined },
};

/** The initial time of the clock. */
export const start = Date.parse('2026-11-21T12:00:15Z');

export function buildRules(yaml: string): RuleSet {
  const { document, problems } = parseRuleDocument(yaml, 'test.yaml');
  if (!document) throw new Error(problems.map((problem) => problem.message).join('\n'));
  const built = buildRuleSet([document], { mergeDomains: false, sanitizeMetricDots: false });
  if (!built.ok) throw new Error(built.problems.map((problem) => problem.message).join('\n'));
  return built.ruleSet;
}

/** A decision that calls a function with its outcome. */
export class OpenDecision extends Decision {
  readonly #settle: (outcome: DecisionOutcome) => void;

  constructor(
    request: RateLimitRequest,
    receivedMs: number,
    settle: (outcome: DecisionOutcome) => void,
    deadlineMs?: number,
  ) {
    super(request, receivedMs, deadlineMs, undefined);
    this.#settle = settle;
  }

  answer(outcome: DecisionOutcome): void {
    this.#settle(outcome);
  }
}

interface WorkerOptions extends Partial<DecisionOptions> {
  /** The answer without the store; by default there is none. */
  readonly failureMode?: AnsweringMode;
  /** Whether debug lines are logged. */
  readonly isTrailed?: boolean;
  readonly localCacheBytes?: number;
  /** Limit of the counters in process. */
  readonly maxCounters?: number;
  readonly store?: (inner: CounterStore) => CounterStore;
  readonly leases?: (counters: CounterStore) => Pick<Leases, 'count'>;
}

export function createWorker(yaml: string | undefined, options: WorkerOptions = {}) {
  const clock = createManualClock(start);
  const log = createRecordedLog();
  const metrics = createRegistry({ runtimeNamesMax: 100, log });
  const memory = new MemoryStore({
    clock,
    log,
    ...(options.maxCounters !== undefined && { maxCounters: options.maxCounters }),
  });
  const rules = { current: yaml === undefined ? undefined : buildRules(yaml) };
  const samples: UnmatchedSample[] = [];
  const failurePolicy =
    options.failureMode &&
    createFailurePolicy({
      mode: options.failureMode,
      metrics,
      clock,
      log,
      outagesAreOver: () => true,
    });
  const trail = options.isTrailed === true ? createDecisionTrail(log) : undefined;
  const shouldRateLimit = createShouldRateLimit({
    ...(failurePolicy && { failurePolicy }),
    ...(trail && { trail }),
    rules,
    store: options.store?.(memory) ?? memory,
    ...(options.leases && { leases: options.leases(memory) }),
    overLimitCache: createOverLimitCache(options.localCacheBytes ?? 0, metrics, clock),
    metrics,
    unmatched: createUnmatchedSampler(metrics, (sample) => void samples.push(sample)),
    clock,
    log,
    options: { ...defaults, ...options },
  });
  return {
    clock,
    log,
    failurePolicy,
    memory,
    samples,
    useRules(next: string) {
      rules.current = buildRules(next);
    },
    /** `receivedMs` is the current time by default. */
    decide: (request: RateLimitRequest, deadlineMs?: number, receivedMs = clock.monotonicMs()) =>
      new Promise<DecisionOutcome>((settle) =>
        shouldRateLimit(new OpenDecision(request, receivedMs, settle, deadlineMs)),
      ),
    stat: (name: string) => metrics.snapshot().get(`ratelimit.service.${name}`) ?? 0,
    statistics: () => metrics.snapshot(),
  };
}

export const describeEntries = (pairs: string) =>
  pairs.split(',').map((pair) => {
    const [key = '', value = ''] = pair.split('=');
    return { key, value };
  });
export function ask(...descriptors: (string | (Partial<RequestDescriptor> & { of: string }))[]) {
  return {
    domain: 'd',
    hitsAddend: 0,
    descriptors: descriptors.map((descriptor): RequestDescriptor => {
      const { of, ...more } = typeof descriptor === 'string' ? { of: descriptor } : descriptor;
      return {
        entries: describeEntries(of),
        limit: undefined,
        hitsAddend: undefined,
        isNegativeHits: false,
        ...more,
      };
    }),
  } satisfies RateLimitRequest;
}

export function summarize(outcome: DecisionOutcome): string {
  if (!outcome.ok) return `${outcome.error.code}: ${outcome.error.message}`;
  const name = (code: number) => (code === codes.ok ? 'OK' : 'OVER');
  const { overallCode, statuses } = outcome.response;
  const list = statuses.map((status) => `${name(status.code)} ${status.limitRemaining}`);
  return `${name(overallCode)} [${list.join(', ')}]`;
}
