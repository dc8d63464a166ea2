// The decision: from a request to its answer. It finds the rules and their counters, has the hits counted, and makes
// the answer. Read it top to bottom.
import type { Clock } from '../../shared/clock.ts';
import { createWindows, type WindowOptions } from '../../shared/counting/counter-key.ts';
import { AppError } from '../../shared/errors.ts';
import type { Log } from '../../shared/log.ts';
import { owned } from '../../shared/owned-text.ts';
import type { DomainRules, Limit, Match, RuleSet } from '../../shared/rules/rule.ts';
import type { FailurePolicy } from '../counters/failure/failure-policy.ts';
import type { Leases } from '../counters/leases.ts';
import type { CounterStore, CountMode, CountRequest, Hit } from '../counters/store.ts';
import type { StoreCall } from '../counters/store-kind.ts';
import type { Counter, Metrics } from '../metrics.ts';
import type { Span, SpanParent } from '../tracing/tracer.ts';
import { type ClientFieldOptions, toClientFields } from './client-fields.ts';
import type { DecisionTrail } from './decision-trail.ts';
import { toDynamicMetadata } from './dynamic-metadata.ts';
import { createPrepareHits, type PrepareHits, type RuleHit } from './hit.ts';
import { matchLimitInRequest } from './limit-in-request.ts';
import {
  codes,
  type DescriptorStatus,
  type Header,
  type RateLimitRequest,
  type RateLimitResponse,
  type RequestDescriptor,
} from './message.ts';
import { toRequestText } from './message-text.ts';
import type { OverLimitCache } from './over-limit-cache.ts';
import { type HeaderOptions, toHeaders } from './response-headers.ts';
import { createStatuses, isOverInShadow, type Statuses } from './status.ts';
import { stopWhereRefused } from './stop-where-refused.ts';
import type { UnmatchedSampler } from './unmatched-sampler.ts';

export type DecisionOutcome =
  | { readonly ok: true; readonly response: RateLimitResponse }
  | { readonly ok: false; readonly error: AppError };

/** Answers one request; never throws and never blocks past the deadline. */
export type ShouldRateLimit = (decision: Decision) => void;

export interface DecisionOptions extends WindowOptions {
  /** KVSTORE_TIMEOUT: no decision takes longer (behaviour: one-deadline). */
  readonly storeTimeoutMs: number;
  readonly cacheKeyPrefix: string;
  /** KVSTORE_LONG_KEYS. */
  readonly storesLongKeys: boolean;
  /** Not negative. */
  readonly nearLimitRatio: number;
  readonly shadowMode: boolean;
  readonly quotaMode: boolean;
  /** STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT (behaviour: over-limit-stops-counting). */
  readonly stopIncrementWhenOver: 'false' | 'true' | 'enforced';
  readonly sanitizeMetricDots: boolean;
  readonly dynamicMetadata: boolean;
  readonly headers: HeaderOptions;
  /** Undefined when these fields are not sent. */
  readonly clientFields?: ClientFieldOptions | undefined;
}

/** Notified of requests that are answered OVER_LIMIT, to find the values that are limited, and of failed requests. */
export interface OverLimitObserver {
  /**
   * `statuses` has one status for each descriptor, `limited` the hits on limits in their order. Called for each such
   * request: it must be cheap, and must not retain the request.
   */
  overLimit(
    request: RateLimitRequest,
    limited: readonly RuleHit[],
    statuses: readonly DescriptorStatus[],
    nowSeconds: number,
  ): void;
  /** `domain` must not be retained: the text is part of the request. */
  failed(domain: string): void;
}

/** Records a sample of the decisions. */
export interface DecisionRecorder {
  /** Undefined for a request outside the sample. `nowMs` is wall time. Called for each request: it must be cheap. */
  choose(request: RateLimitRequest, nowMs: number): Sample | undefined;
  /** Records the answer of a request in the sample. */
  record(
    decision: Pick<Decision, 'request' | 'matches' | 'limited'>,
    sample: Sample,
    outcome: DecisionOutcome,
  ): void;
}

/** A request that is recorded. */
export interface Sample {
  /** The moment by which its windows were chosen: wall time. */
  readonly timeMs: number;
  /** Whether each descriptor is sampled; at least one is. */
  readonly isSampled: readonly boolean[];
}

/** The rules in force. */
export interface CurrentRules {
  /** Replaced as a whole; undefined before the first valid load. */
  readonly current: RuleSet | undefined;
}

export interface DecisionParts {
  /** Read once for each request. */
  readonly rules: CurrentRules;
  readonly store: CounterStore;
  /** Undefined if each hit is counted in the store. */
  readonly leases?: Pick<Leases, 'count'> | undefined;
  /** Undefined if decisions fail when the store fails. */
  readonly failurePolicy?: FailurePolicy | undefined;
  /** Undefined if counters over their limit are not cached. */
  readonly overLimitCache: OverLimitCache | undefined;
  readonly metrics: Metrics;
  readonly unmatched: UnmatchedSampler;
  /**
   * Undefined when requests over the limit are not observed. Not in a list with `recorder`, whose members would be called
   * for each answer: a decision would cost 5 % more.
   */
  readonly observer?: OverLimitObserver | undefined;
  /** Undefined when decisions are not recorded. */
  readonly recorder?: DecisionRecorder | undefined;
  readonly clock: Clock;
  /** Undefined to log nothing, as in a rehearsal. */
  readonly log?: Log | undefined;
  /**
   * Describes the span of a decision's wait for its counters; undefined when the store is in this process. Decisions
   * share the store's round trips: each has its own span around a batch that serves many, with the number of its own
   * counters.
   */
  readonly describeStoreCall?: (hits: readonly Hit[]) => StoreCall | undefined;
  /** Undefined when the log writes no debug lines. */
  readonly trail?: DecisionTrail | undefined;
  readonly options: DecisionOptions;
}

/** The most hits of all requests that may wait for the store, at about 1 kB each. */
export const maxWaitingHits = 65_536;
/** The additional room that each hit of a request beyond its first requires. */
const roomPerFurtherHit = 64;

/**
 * The reason if the store is not asked about these hits; `waiting` is the number of hits that wait for the store,
 * including these. Requests with many hits are refused earlier, so that they never use up the room of those with few.
 */
function findUncountable(hits: readonly Hit[], waiting: number): AppError | undefined {
  if (waiting + (hits.length - 1) * roomPerFurtherHit > maxWaitingHits) {
    return new AppError('overloaded', 'too many hits are waiting for the store already');
  }
  return undefined;
}

const noHeaders: { readonly response: readonly Header[]; readonly request: readonly Header[] } = {
  response: [],
  request: [],
};
const noMatches: readonly undefined[] = [];
const noHits: readonly RuleHit[] = [];
const statusWithoutLimit: DescriptorStatus = {
  code: codes.ok,
  currentLimit: undefined,
  limitRemaining: 0,
  secondsUntilReset: undefined,
};
const unlimitedStatus: DescriptorStatus = { ...statusWithoutLimit, limitRemaining: 0xffff_ffff };

/**
 * One request in progress: from its port to the store and back. Each port extends it by sending the answer. A class
 * rather than callbacks: V8 inlines the methods of a few classes, but not calls of many different closures. Its fields
 * are only declared here and set by the constructor: defined in the class body, they would make a decision without a
 * store cost 8 % more.
 */
export abstract class Decision implements CountRequest {
  declare readonly request: RateLimitRequest;
  /** When the request had arrived: the store's timeout bounds the decision from then on. Monotonic. */
  declare readonly receivedMs: number;
  /**
   * When the caller stops waiting (grpc-timeout); infinite if unknown. Set to the end of the store's timeout, if that
   * is earlier, before the store is asked. Monotonic.
   */
  declare deadlineMs: number;
  /** The parent of the decision's spans; undefined without tracing. */
  declare readonly trace: SpanParent | undefined;
  declare span: Span | undefined;
  /** Undefined unless the request is recorded. */
  declare sample: Sample | undefined;
  /** The match of each descriptor. */
  declare matches: readonly (Match | undefined)[];
  /** The hits on limits that are not unlimited, in the order of the descriptors. */
  declare limited: readonly RuleHit[];
  /** Those hits of `limited` that the store is asked about. */
  declare hits: readonly RuleHit[];
  declare mode: CountMode;
  declare storeCall: Span | undefined;
  /** Continues the decision when the store has counted; set before the store is asked. */
  declare decider: Pick<Decider, 'finish'> | undefined;
  /** When true, hits that were not yet sent to the store are not counted. */
  declare cancelled: boolean;

  /** `callerDeadlineMs` is on the monotonic clock, undefined if unknown. */
  constructor(
    request: RateLimitRequest,
    receivedMs: number,
    callerDeadlineMs: number | undefined,
    trace: SpanParent | undefined,
  ) {
    this.request = request;
    this.receivedMs = receivedMs;
    this.deadlineMs = callerDeadlineMs ?? Number.POSITIVE_INFINITY;
    this.trace = trace;
    this.span = undefined;
    this.sample = undefined;
    this.matches = noMatches;
    this.limited = noHits;
    this.hits = noHits;
    this.mode = 'add';
    this.storeCall = undefined;
    this.decider = undefined;
    this.cancelled = false;
  }

  /** Called exactly once, possibly before the store is asked. */
  abstract answer(outcome: DecisionOutcome): void;

  /** Call it when the caller has disconnected. The request may still be answered, which has no effect. */
  cancel(): void {
    this.cancelled = true;
  }

  /** Called when the store has counted or failed. */
  settle(error: AppError | undefined): void {
    this.decider?.finish(this, error);
  }
}

/** Removes limits that another one of the same request replaces (behaviour: replaced-limits). */
function dropReplaced(matches: (Match | undefined)[], trail: DecisionTrail | undefined): void {
  const replaced = new Set(matches.flatMap((match) => match?.limit.replaces ?? []));
  for (let index = 0; index < matches.length; index++) {
    const limit = matches[index]?.limit;
    if (limit && !limit.unlimited && replaced.has(limit.name)) {
      trail?.replaced(limit.name);
      matches[index] = undefined;
    }
  }
}

/** Starts a span with the reference's name (behaviour: spans). */
function startSpan(trace: SpanParent, request: RateLimitRequest): Span {
  return trace.startSpan('ratelimit', 'ShouldRateLimit Execution', {
    // Owned, because the span waits for a slow receiver.
    domain: owned(request.domain),
    'request string': toRequestText(request),
  });
}

/** Ends the span, with the rules that were over their limit, by their names in the statistics. */
function endSpan(
  span: Span,
  matches: readonly (Match | undefined)[],
  outcome: DecisionOutcome,
): void {
  if (!outcome.ok) {
    span.end(outcome.error.message);
    return;
  }
  const { statuses } = outcome.response;
  const over = matches.filter((_, index) => statuses[index]?.code === codes.overLimit);
  if (over.length > 0) {
    span.set({ 'ratelimit.over_limit': owned(over.map((match) => match?.metricKey).join(', ')) });
  }
  span.end();
}

function startStoreSpan(trace: SpanParent, call: StoreCall | undefined): Span | undefined {
  return call && trace.startSpan(call.scope, call.name, call.attributes);
}

function isStoreError({ code }: AppError): boolean {
  return code === 'store' || code === 'overloaded';
}

export function createShouldRateLimit(parts: DecisionParts): ShouldRateLimit {
  const decider = new Decider(parts);
  return (decision) => decider.start(decision);
}

/** Leads decisions from the request to the answer; its methods are in the order in which a decision passes them. */
class Decider {
  readonly #parts: DecisionParts;
  readonly #hits: PrepareHits;
  readonly #statuses: Statuses;
  readonly #hasHeaders: boolean;
  readonly #storeErrors: Counter;
  readonly #serviceErrors: Counter;
  readonly #globalShadowMode: Counter;
  readonly #isQuota: (match: Match | undefined) => boolean;
  /** Hits of decisions that wait for the store. */
  #waitingHits = 0;
  /** Limits for which a request that can never be admitted was already logged. */
  readonly #reported = new WeakSet<Limit>();

  constructor(parts: DecisionParts) {
    const { overLimitCache, metrics, trail, options } = parts;
    const windowAt = createWindows(options);
    this.#parts = parts;
    this.#hits = createPrepareHits({ ...options, overLimitCache, metrics, trail, windowAt });
    const { nearLimitRatio } = options;
    this.#statuses = createStatuses({ overLimitCache, metrics, trail, nearLimitRatio, windowAt });
    this.#hasHeaders = Object.values(options.headers).some((names) => names !== undefined);
    this.#storeErrors = metrics.counter('ratelimit.service.call.should_rate_limit.redis_error');
    this.#serviceErrors = metrics.counter('ratelimit.service.call.should_rate_limit.service_error');
    this.#globalShadowMode = metrics.counter('ratelimit.service.global_shadow_mode');
    this.#isQuota = (match) => options.quotaMode || match?.limit.quotaMode === true;
  }

  /** As ShouldRateLimit. */
  start(decision: Decision): void {
    const { request, trace } = decision;
    this.#parts.trail?.asked(request);
    if (trace !== undefined) decision.span = startSpan(trace, request);
    this.#decide(decision);
  }

  #decide(decision: Decision): void {
    const { request } = decision;
    const { rules, clock, recorder } = this.#parts;
    if (request.domain === '') {
      this.#fail(decision, new AppError('bad_request', 'rate limit domain must not be empty'));
      return;
    }
    if (request.descriptors.length === 0) {
      this.#fail(
        decision,
        new AppError('bad_request', 'rate limit descriptor list must not be empty'),
      );
      return;
    }
    const ruleSet = rules.current;
    if (!ruleSet) {
      this.#fail(decision, new AppError('not_ready', 'no rate limit configuration loaded'));
      return;
    }
    const nowMs = clock.wallMs();
    const nowSeconds = Math.floor(nowMs / 1000);
    if (recorder !== undefined) decision.sample = recorder.choose(request, nowMs);
    const matches = this.#findMatches(ruleSet, request, nowSeconds);
    if (matches instanceof AppError) {
      this.#fail(decision, matches);
      return;
    }
    decision.matches = matches;
    const known = this.#prepareHits(decision, nowSeconds);
    const { limited } = decision;
    if (known === limited.length) {
      this.#answer(decision, nowSeconds);
    } else {
      decision.hits = known === 0 ? limited : limited.filter((hit) => hit.fallback === undefined);
      decision.mode = this.#countMode(decision, known > 0);
      this.#count(decision);
    }
  }

  #findMatches(
    ruleSet: RuleSet,
    request: RateLimitRequest,
    nowSeconds: number,
  ): (Match | undefined)[] | AppError {
    const rules = ruleSet.domains.get(request.domain);
    if (rules) return this.#matchDescriptors(rules, request, nowSeconds);
    const { metrics, unmatched, trail } = this.#parts;
    metrics.unknownDomain(request.domain).add(request.descriptors.length);
    unmatched.unknownDomain(request, nowSeconds);
    trail?.unknownDomain(request);
    return request.descriptors.map(() => undefined);
  }

  /** The match of each descriptor: undefined when no limit applies. An error when the request is invalid. */
  #matchDescriptors(
    rules: DomainRules,
    request: RateLimitRequest,
    nowSeconds: number,
  ): (Match | undefined)[] | AppError {
    const { unmatched, trail, options } = this.#parts;
    const matches = new Array<Match | undefined>(request.descriptors.length);
    let somethingIsReplaced = false;
    for (let index = 0; index < matches.length; index++) {
      const descriptor = request.descriptors[index] as RequestDescriptor;
      const { entries, limit } = descriptor;
      const match = limit
        ? matchLimitInRequest(rules, descriptor, limit, index, options.sanitizeMetricDots)
        : rules.match(entries);
      if (match instanceof AppError) return match;
      trail?.lookedUp(descriptor, match, rules);
      matches[index] = match;
      if (match === undefined) unmatched.noMatch(rules, entries, nowSeconds);
      else if (match.limit.replaces.length > 0) somethingIsReplaced = true;
    }
    if (somethingIsReplaced) dropReplaced(matches, trail);
    return matches;
  }

  /** Sets `limited`. Returns how many of these hits need no answer of the store. */
  #prepareHits(decision: Decision, nowSeconds: number): number {
    const { matches } = decision;
    const { prepare, prepareList } = this.#hits;
    let limited: RuleHit[] | undefined;
    let known = 0;
    for (let index = 0; index < matches.length; index++) {
      const match = matches[index];
      if (!match || match.limit.unlimited) continue;
      if (match.parts !== undefined) {
        const list = prepareList(decision, index, match, match.parts, nowSeconds);
        known += list.filter(({ fallback }) => fallback !== undefined).length;
        limited = limited === undefined ? [...list] : limited.concat(list);
        continue;
      }
      const hit = prepare(decision, index, match, nowSeconds);
      if (limited === undefined) limited = [hit];
      else limited.push(hit);
      if (hit.fallback !== undefined) known++;
    }
    if (limited !== undefined) decision.limited = limited;
    return known;
  }

  #countMode(decision: Decision, someKnownOver: boolean): CountMode {
    const { options } = this.#parts;
    switch (options.stopIncrementWhenOver) {
      case 'false':
        return 'add';
      case 'true':
        return someKnownOver ? 'peek' : 'add-unless-over';
      case 'enforced':
        return options.shadowMode ? 'add' : stopWhereRefused(decision, this.#isQuota);
    }
  }

  #count(decision: Decision): void {
    const { hits, receivedMs, trace } = decision;
    const { store, leases, describeStoreCall, trail, options } = this.#parts;
    trail?.counting(hits);
    decision.deadlineMs = Math.min(receivedMs + options.storeTimeoutMs, decision.deadlineMs);
    if (trace !== undefined) {
      decision.storeCall = startStoreSpan(trace, describeStoreCall?.(hits));
    }
    decision.decider = this;
    this.#waitingHits += hits.length;
    const refusal = findUncountable(hits, this.#waitingHits);
    if (refusal !== undefined) decision.settle(refusal);
    else if (hits.length === 1 && hits[0]?.lease !== undefined && leases !== undefined) {
      leases.count(decision);
    } else store.count(decision);
  }

  /** Called when the store has counted or failed. */
  finish(decision: Decision, error: AppError | undefined): void {
    this.#waitingHits -= decision.hits.length;
    decision.storeCall?.end(error?.message);
    if (error === undefined) {
      this.#answer(decision, this.#nowSeconds());
      return;
    }
    const { failurePolicy } = this.#parts;
    // The caller has left, which is not an error of the store.
    if (decision.cancelled) this.#leave(decision, { ok: false, error });
    else if (failurePolicy !== undefined && isStoreError(error)) {
      this.#answerWithoutStore(decision, error, failurePolicy);
    } else this.#fail(decision, error, this.#storeErrors);
  }

  /** Hits that another node counted despite the failure are judged as usual. */
  #answerWithoutStore(decision: Decision, failure: AppError, policy: FailurePolicy): void {
    const uncounted = decision.hits.filter(({ after }) => after < 0);
    policy.answer(uncounted, decision.mode, failure, (error) => {
      if (error !== undefined) {
        this.#fail(decision, error, this.#storeErrors);
        return;
      }
      for (const hit of uncounted) hit.fallback = policy.mode;
      this.#answer(decision, this.#nowSeconds());
    });
  }

  #answer(decision: Decision, nowSeconds: number): void {
    this.#leave(decision, { ok: true, response: this.#toResponse(decision, nowSeconds) });
  }

  #toResponse(decision: Decision, nowSeconds: number): RateLimitResponse {
    const { request, matches, limited } = decision;
    const { observer, trail, options } = this.#parts;
    const { headers: headerOptions, clientFields } = options;
    const { toStatus, toListStatus, findWait } = this.#statuses;
    const statuses = new Array<DescriptorStatus>(matches.length);
    let next = 0;
    for (let index = 0; index < statuses.length; index++) {
      const hit = limited[next];
      if (hit?.descriptorIndex === index) {
        const match = matches[index];
        if (hit.hits > hit.limit && !hit.refund) this.#reportTooMany(request, hit);
        const count = match?.parts?.length ?? 1;
        statuses[index] =
          match === undefined || count === 1
            ? toStatus(hit, nowSeconds, decision)
            : toListStatus(match, limited.slice(next, next + count), nowSeconds, decision);
        next += count;
      } else statuses[index] = matches[index] ? unlimitedStatus : statusWithoutLimit;
    }
    const isOver = this.#isOverLimit(statuses, matches);
    const isRefused = isOver && !options.shadowMode;
    const isQuotas =
      this.#hasHeaders || clientFields !== undefined ? matches.map(this.#isQuota) : [];
    const isShadowed =
      headerOptions.shadowed !== undefined &&
      !isRefused &&
      (isOver || limited.some(isOverInShadow));
    const headers = this.#hasHeaders
      ? toHeaders(headerOptions, statuses, isQuotas, isShadowed)
      : noHeaders;
    if (isOver && options.shadowMode) this.#globalShadowMode.add(1);
    else if (isOver) observer?.overLimit(request, limited, statuses, nowSeconds);
    const response = {
      overallCode: isRefused ? codes.overLimit : codes.ok,
      statuses,
      responseHeadersToAdd:
        clientFields === undefined
          ? headers.response
          : headers.response.concat(
              toClientFields(clientFields, {
                request,
                limited,
                statuses,
                isQuota: isQuotas,
                isRefused,
                nowSeconds,
                findWait,
              }),
            ),
      requestHeadersToAdd: headers.request,
      dynamicMetadata: options.dynamicMetadata
        ? toDynamicMetadata(
            request,
            matches.map((match) => (match?.limit.unlimited ? undefined : match?.limit)),
            statuses,
          )
        : undefined,
    };
    trail?.answered(response);
    return response;
  }

  /** Over the limit when any enforced descriptor is, or when all quotas are. */
  #isOverLimit(
    statuses: readonly DescriptorStatus[],
    matches: readonly (Match | undefined)[],
  ): boolean {
    let quotas = 0;
    let quotasOver = 0;
    for (let index = 0; index < statuses.length; index++) {
      const isOver = statuses[index]?.code === codes.overLimit;
      const match = matches[index];
      if (!this.#isQuota(match)) {
        if (isOver) return true;
      } else if (!match?.limit.unlimited) {
        quotas++;
        if (isOver) quotasOver++;
      }
    }
    return quotas > 0 && quotas === quotasOver;
  }

  /**
   * Logs such a request once for each limit of a rule, but not for limits in requests. Limits of 0 refuse
   * intentionally.
   */
  #reportTooMany({ descriptors }: RateLimitRequest, hit: RuleHit): void {
    const { match, hits, limit, descriptorIndex } = hit;
    if (limit === 0 || descriptors[descriptorIndex]?.limit !== undefined) return;
    if (this.#reported.has(match.limit)) return;
    this.#reported.add(match.limit);
    this.#parts.log?.warning(
      `rule ${match.metricKey}: a request has ${hits} hits and the limit is ${limit}, so it can never be admitted`,
    );
  }

  /** `errors` defaults to the counter of decisions that fail before anything is counted. */
  #fail(decision: Decision, error: AppError, errors = this.#serviceErrors): void {
    errors.add(1);
    this.#parts.observer?.failed(decision.request.domain);
    this.#leave(decision, { ok: false, error });
  }

  #leave(decision: Decision, outcome: DecisionOutcome): void {
    if (decision.span !== undefined) endSpan(decision.span, decision.matches, outcome);
    if (decision.sample !== undefined)
      this.#parts.recorder?.record(decision, decision.sample, outcome);
    decision.answer(outcome);
  }

  #nowSeconds(): number {
    return Math.floor(this.#parts.clock.wallMs() / 1000);
  }
}
