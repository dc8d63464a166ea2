// The decision: from a request to its answer. Which rules apply, which counters they use, their values,
// and the answer. Read it top to bottom.
import type { Clock } from '../../shared/clock.ts';
import { createWindows, type WindowOptions } from '../../shared/counting/window.ts';
import { AppError } from '../../shared/errors.ts';
import type { Match, RuleSet } from '../../shared/rules/rule.ts';
import type { Span, SpanParent } from '../../shared/tracing.ts';
import type { FailurePolicy } from '../counters/failure/failure-policy.ts';
import type { Leases } from '../counters/leases.ts';
import type { CounterStore, CountMode, CountRequest } from '../counters/store.ts';
import type { Metrics } from '../metrics.ts';
import type { DecisionSpans } from './decision-spans.ts';
import type { DecisionTrail } from './decision-trail.ts';
import { toDynamicMetadata } from './dynamic-metadata.ts';
import { createPrepareHits, type LimitedHit } from './hit.ts';
import {
  codes,
  type DescriptorStatus,
  type RateLimitRequest,
  type RateLimitResponse,
} from './message.ts';
import type { OverLimitCache } from './over-limit-cache.ts';
import type { OverLimitObserver } from './over-limit-observer.ts';
import { type HeaderOptions, toHeaders } from './response-headers.ts';
import { selectLimits } from './select-limits.ts';
import { createStatuses } from './status.ts';
import type { UnmatchedSampler } from './unmatched-sampler.ts';

export type DecisionOutcome =
  | { readonly ok: true; readonly response: RateLimitResponse }
  | { readonly ok: false; readonly error: AppError };

/** The caller that waits for a decision. An object rather than a callback: V8 inlines the methods of a few
 * classes, but not calls of many different closures. */
export interface Caller {
  settle(outcome: DecisionOutcome): void;
}

/**
 * Answers one request; never throws and never blocks past the deadline.
 *
 * `receivedMs`: when the request had arrived; the store's timeout bounds the decision from then on.
 * `deadlineMs`: when its caller stops waiting (grpc-timeout), if known. Both on the monotonic clock. `caller` is settled exactly once, possibly before `shouldRateLimit` returns, which then
 * returns undefined. `trace`: the parent of the decision's spans; undefined without tracing.
 */
export type ShouldRateLimit = (
  request: RateLimitRequest,
  receivedMs: number,
  deadlineMs: number | undefined,
  caller: Caller,
  trace?: SpanParent,
) => PendingDecision | undefined;

export interface PendingDecision {
  /** The caller has left: hits that were not yet sent to the store are not counted. The caller may still be
   * settled. */
  cancel(): void;
}

export interface DecisionOptions extends WindowOptions {
  /** KVSTORE_TIMEOUT: no decision takes longer (behaviour: one-deadline). */
  readonly storeTimeoutMs: number;
  readonly cacheKeyPrefix: string;
  /** Not negative. */
  readonly nearLimitRatio: number;
  readonly shadowMode: boolean;
  readonly quotaMode: boolean;
  /** STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT (behaviour: over-limit-stops-counting). */
  readonly stopIncrementWhenOver: boolean;
  readonly sanitizeMetricDots: boolean;
  readonly dynamicMetadata: boolean;
  readonly headers: HeaderOptions;
}

export interface DecisionParts {
  /** The rules in force; undefined before the first good load. Read once for each request. */
  readonly rules: () => RuleSet | undefined;
  readonly store: CounterStore;
  /** Undefined: the store is asked for every hit. */
  readonly leases?: Leases | undefined;
  /** Undefined: decisions fail when the store fails. */
  readonly failurePolicy?: FailurePolicy | undefined;
  readonly overLimitCache: OverLimitCache;
  readonly metrics: Metrics;
  readonly unmatched: UnmatchedSampler;
  /** Undefined when nobody wants to know. */
  readonly observer?: OverLimitObserver | undefined;
  readonly clock: Clock;
  /** Undefined without tracing. */
  readonly spans?: DecisionSpans | undefined;
  /** Undefined when the log takes no debug lines. */
  readonly trail?: DecisionTrail | undefined;
  readonly options: DecisionOptions;
}

/** Hits of all requests that wait for the store, of about 1 kB each. */
export const maxWaitingHits = 65_536;
/** Room that each hit of a request beyond its first requires in addition. */
const roomPerFurtherHit = 64;

/**
 * Whether there is room for a request with `hits`; `waiting` are the hits that wait for the store, its own
 * included. Requests with many hits are refused earlier, so that they never take the room of those with
 * few.
 */
function hasRoomForHits(waiting: number, hits: number): boolean {
  return waiting + (hits - 1) * roomPerFurtherHit <= maxWaitingHits;
}

const noHeaders = { response: [], request: [] };
const noHits: readonly LimitedHit[] = [];
const statusWithoutLimit: DescriptorStatus = {
  code: codes.ok,
  currentLimit: undefined,
  limitRemaining: 0,
  secondsUntilReset: undefined,
};
const unlimitedStatus: DescriptorStatus = { ...statusWithoutLimit, limitRemaining: 0xffff_ffff };

/** A decision that waits for the store. */
class CountedDecision implements CountRequest, PendingDecision {
  readonly request: RateLimitRequest;
  readonly matches: readonly (Match | undefined)[];
  readonly limited: readonly LimitedHit[];
  readonly hits: readonly LimitedHit[];
  readonly mode: CountMode;
  readonly deadlineMs: number;
  readonly storeCall: Span | undefined;
  readonly caller: Caller;
  readonly #finish: (decision: CountedDecision, error: AppError | undefined) => void;
  cancelled = false;

  constructor(
    request: RateLimitRequest,
    matches: readonly (Match | undefined)[],
    limited: readonly LimitedHit[],
    hits: readonly LimitedHit[],
    mode: CountMode,
    deadlineMs: number,
    storeCall: Span | undefined,
    caller: Caller,
    finish: (decision: CountedDecision, error: AppError | undefined) => void,
  ) {
    this.request = request;
    this.matches = matches;
    this.limited = limited;
    this.hits = hits;
    this.mode = mode;
    this.deadlineMs = deadlineMs;
    this.storeCall = storeCall;
    this.caller = caller;
    this.#finish = finish;
  }

  settle(error: AppError | undefined): void {
    this.#finish(this, error);
  }

  cancel(): void {
    this.cancelled = true;
  }
}

function isStoreError({ code }: AppError): boolean {
  return code === 'store' || code === 'overloaded';
}

export function createShouldRateLimit(parts: DecisionParts): ShouldRateLimit {
  const {
    store,
    leases,
    failurePolicy,
    overLimitCache,
    metrics,
    unmatched,
    observer,
    clock,
    spans,
    trail,
    options,
  } = parts;
  const windowAt = createWindows(options);
  const { toStatus, toListStatus } = createStatuses({
    overLimitCache,
    metrics,
    trail,
    nearLimitRatio: options.nearLimitRatio,
    windowAt,
  });
  const { prepare, prepareList } = createPrepareHits({
    overLimitCache,
    metrics,
    trail,
    windowAt,
    cacheKeyPrefix: options.cacheKeyPrefix,
    calendarMonths: options.calendarMonths,
  });
  const { headers: headerOptions } = options;
  const hasHeaders = Object.values(headerOptions).some((names) => names !== undefined);
  const storeErrors = metrics.counter('ratelimit.service.call.should_rate_limit.redis_error');
  const serviceErrors = metrics.counter('ratelimit.service.call.should_rate_limit.service_error');
  const globalShadowMode = metrics.counter('ratelimit.service.global_shadow_mode');

  /** Hits of decisions that wait for the store. */
  let waitingHits = 0;

  const wallSeconds = () => Math.floor(clock.wallMs() / 1000);

  /** `errors`: not the counter of decisions that fail before anything is counted. */
  const fail = (error: AppError, caller: Caller, errors = serviceErrors) => {
    errors.add(1);
    caller.settle({ ok: false, error });
    return undefined;
  };

  const isQuota = (match: Match | undefined): boolean =>
    options.quotaMode || match?.limit.quotaMode === true;

  /** Over the limit: any enforced descriptor, or all quotas. */
  const isOverLimit = (
    statuses: readonly DescriptorStatus[],
    matches: readonly (Match | undefined)[],
  ): boolean => {
    let quotas = 0;
    let quotasOver = 0;
    for (let index = 0; index < statuses.length; index++) {
      const isOver = statuses[index]?.code === codes.overLimit;
      const match = matches[index];
      if (!isQuota(match)) {
        if (isOver) return true;
      } else if (!match?.limit.unlimited) {
        quotas++;
        if (isOver) quotasOver++;
      }
    }
    return quotas > 0 && quotas === quotasOver;
  };

  const answer = (
    request: RateLimitRequest,
    matches: readonly (Match | undefined)[],
    limited: readonly LimitedHit[],
    nowSeconds: number,
  ): RateLimitResponse => {
    const statuses = new Array<DescriptorStatus>(matches.length);
    let next = 0;
    for (let index = 0; index < statuses.length; index++) {
      const hit = limited[next];
      if (hit?.descriptorIndex === index) {
        const match = matches[index];
        const count = match?.parts?.length ?? 1;
        statuses[index] =
          match === undefined || count === 1
            ? toStatus(hit, nowSeconds)
            : toListStatus(match, limited.slice(next, next + count), nowSeconds);
        next += count;
      } else statuses[index] = matches[index] ? unlimitedStatus : statusWithoutLimit;
    }
    const headers = hasHeaders
      ? toHeaders(headerOptions, statuses, matches.map(isQuota))
      : noHeaders;
    const isOver = isOverLimit(statuses, matches);
    if (isOver && options.shadowMode) globalShadowMode.add(1);
    else if (isOver) observer?.overLimit(request, limited, statuses, nowSeconds);
    const response = {
      overallCode: isOver && !options.shadowMode ? codes.overLimit : codes.ok,
      statuses,
      responseHeadersToAdd: headers.response,
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
  };

  const countMode = (someKnownOver: boolean): CountMode => {
    if (!options.stopIncrementWhenOver) return 'add';
    return someKnownOver ? 'look' : 'add-unless-over';
  };

  const decide: ShouldRateLimit = (request, receivedMs, deadlineMs, caller, trace) => {
    if (request.domain === '') {
      return fail(new AppError('bad_request', 'rate limit domain must not be empty'), caller);
    }
    if (request.descriptors.length === 0) {
      return fail(
        new AppError('bad_request', 'rate limit descriptor list must not be empty'),
        caller,
      );
    }
    const ruleSet = parts.rules();
    if (!ruleSet) {
      return fail(new AppError('not_ready', 'no rate limit configuration loaded'), caller);
    }
    const nowSeconds = wallSeconds();
    const rules = ruleSet.domain(request.domain);
    let matches: (Match | undefined)[] | AppError;
    if (rules) {
      matches = selectLimits(
        rules,
        request,
        options.sanitizeMetricDots,
        trail,
        unmatched,
        nowSeconds,
      );
      if (matches instanceof AppError) return fail(matches, caller);
    } else {
      metrics.unknownDomain(request.domain).add(request.descriptors.length);
      unmatched.unknownDomain(request, nowSeconds);
      trail?.unknownDomain(request);
      matches = request.descriptors.map(() => undefined);
    }

    /** By descriptor, for those with a limit that is not unlimited. */
    let limited: LimitedHit[] | undefined;
    let known = 0;
    for (let index = 0; index < matches.length; index++) {
      const match = matches[index];
      if (!match || match.limit.unlimited) continue;
      if (match.parts !== undefined) {
        const list = prepareList(request, index, match, match.parts, nowSeconds);
        known += list.filter(({ fallback }) => fallback !== undefined).length;
        limited = limited === undefined ? [...list] : limited.concat(list);
        continue;
      }
      const hit = prepare(request, index, match, nowSeconds);
      if (limited === undefined) limited = [hit];
      else limited.push(hit);
      if (hit.fallback !== undefined) known++;
    }
    if (limited === undefined || known === limited.length) {
      caller.settle({
        ok: true,
        response: answer(request, matches, limited ?? noHits, nowSeconds),
      });
      return undefined;
    }
    const hits = known === 0 ? limited : limited.filter((hit) => hit.fallback === undefined);
    trail?.counting(hits);
    const latestMs = receivedMs + options.storeTimeoutMs;
    const decision = new CountedDecision(
      request,
      matches,
      limited,
      hits,
      countMode(known > 0),
      deadlineMs === undefined ? latestMs : Math.min(latestMs, deadlineMs),
      trace === undefined ? undefined : spans?.startStoreCall(trace, hits),
      caller,
      finish,
    );
    waitingHits += hits.length;
    if (!hasRoomForHits(waitingHits, hits.length)) {
      decision.settle(
        new AppError('overloaded', 'too many hits are waiting for the store already'),
      );
      return undefined;
    }
    if (hits.length === 1 && hits[0]?.lease !== undefined && leases !== undefined) {
      leases.count(decision);
    } else store.count(decision);
    return decision;
  };

  const finish = (decision: CountedDecision, error: AppError | undefined): void => {
    const { request, matches, limited, caller } = decision;
    waitingHits -= decision.hits.length;
    decision.storeCall?.end(error?.message);
    if (!error)
      caller.settle({ ok: true, response: answer(request, matches, limited, wallSeconds()) });
    // The caller has left: not an error of the store.
    else if (decision.cancelled) caller.settle({ ok: false, error });
    else if (failurePolicy !== undefined && isStoreError(error)) {
      answerWithoutStore(decision, error, failurePolicy);
    } else fail(error, caller, storeErrors);
  };

  /** Hits that were counted despite the failure, on another node, are judged as usual. */
  const answerWithoutStore = (
    { request, matches, limited, hits, mode, caller }: CountedDecision,
    failure: AppError,
    policy: FailurePolicy,
  ): void => {
    const uncounted = hits.filter(({ after }) => after < 0);
    policy.answer(uncounted, mode, failure, (error) => {
      if (error !== undefined) {
        fail(error, caller, storeErrors);
        return;
      }
      for (const hit of uncounted) hit.fallback = policy.mode;
      caller.settle({ ok: true, response: answer(request, matches, limited, wallSeconds()) });
    });
  };

  return (request, receivedMs, deadlineMs, caller, trace) => {
    trail?.asked(request);
    if (trace === undefined || spans === undefined) {
      return decide(request, receivedMs, deadlineMs, caller);
    }
    const decision = spans.startDecision(trace, request);
    const traced: Caller = {
      settle(outcome) {
        decision.end(outcome.ok ? undefined : outcome.error.message);
        caller.settle(outcome);
      },
    };
    return decide(request, receivedMs, deadlineMs, traced, trace);
  };
}
