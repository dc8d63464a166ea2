// Envoys with the quota filter, with a quota service in this process, that behave like released versions: they report
// every five seconds in whole seconds, keep a bucket while its numbers are the same (except the seconds of the fill
// interval), and otherwise transfer the previous bucket's tokens.
import { setImmediate } from 'node:timers/promises';
import type { MessageTypeDefinition } from '@grpc/proto-loader';
import { loadSync } from '@grpc/proto-loader';
import { ownPath } from '../../shared/own-files.ts';
import { MemoryStore } from '../../worker/counters/memory-store.ts';
import type { CounterStore } from '../../worker/counters/store.ts';
import { codes } from '../../worker/decision/message.ts';
import { createOverLimitCache } from '../../worker/decision/over-limit-cache.ts';
import {
  createShouldRateLimit,
  type DecisionOutcome,
} from '../../worker/decision/should-rate-limit.ts';
import { createUnmatchedSampler } from '../../worker/decision/unmatched-sampler.ts';
import type { StreamCaller, StreamHandler } from '../../worker/grpc/method.ts';
import { createRegistry } from '../../worker/metrics/registry.ts';
import { QuotaService } from '../../worker/quota/quota-service.ts';
import type { Tracer } from '../../worker/tracing/tracer.ts';
import { buildRules, defaults, OpenDecision, start } from './decision-worker.ts';
import { createManualClock, type ManualClock } from './manual-clock.ts';
import { createRecordedLog } from './recorded-log.ts';
import { withCount } from './with-count.ts';

const packageName = 'envoy.service.rate_limit_quota.v3';
const definition = loadSync('envoy/service/rate_limit_quota/v3/rlqs.proto', {
  includeDirs: [ownPath('proto')],
  longs: Number,
  defaults: false,
  oneofs: true,
});
const reports = definition[
  `${packageName}.RateLimitQuotaUsageReports`
] as unknown as MessageTypeDefinition<object, object>;
const responses = definition[
  `${packageName}.RateLimitQuotaResponse`
] as unknown as MessageTypeDefinition<object, QuotaResponse>;

export interface QuotaResponse {
  readonly bucketAction?: readonly QuotaAction[];
}

export interface QuotaAction {
  readonly bucketId: { readonly bucket: Readonly<Record<string, string>> };
  readonly quotaAssignmentAction?: {
    readonly assignmentTimeToLive: { readonly seconds: number };
    readonly rateLimitStrategy: {
      readonly blanketRule?: 'ALLOW_ALL' | 'DENY_ALL' | number;
      readonly tokenBucket?: {
        readonly maxTokens: number;
        readonly tokensPerFill: { readonly value: number };
        readonly fillInterval: { readonly seconds: number };
      };
    };
  };
  readonly abandonAction?: object;
}

export function encodeReports(message: object): Buffer {
  return reports.serialize(message);
}

export type QuotaWorld = ReturnType<typeof createQuotaWorld>;

export interface OpenStream {
  readonly handler: StreamHandler;
  readonly actions: QuotaAction[];
  ending: { readonly status: number; readonly text: string } | 'ok' | undefined;
}

export interface QuotaWorldOptions {
  /** Another server, whose store and clock are shared. */
  readonly beside?: { readonly clock: ManualClock; readonly store: CounterStore };
  readonly store?: (inner: CounterStore) => CounterStore;
  /** How far its wall clock is ahead of the others'. */
  readonly aheadMs?: number;
  readonly tracer?: Tracer;
}

export function createQuotaWorld(
  yaml: string,
  { beside, store, aheadMs = 0, tracer }: QuotaWorldOptions = {},
) {
  const all = beside?.clock ?? createManualClock(start);
  const clock = aheadMs === 0 ? all : { ...all, wallMs: () => all.wallMs() + aheadMs };
  const log = createRecordedLog();
  const metrics = createRegistry({ runtimeNamesMax: 100, log });
  const memory = beside?.store ?? new MemoryStore({ clock, log });
  const rules = { current: buildRules(yaml) };
  const inner = store?.(memory) ?? memory;
  let isKilled = false;
  /** The number of the service's store requests, answers and messages so far. */
  let done = 0;
  const counters = withCount(inner, (request) => {
    if (!isKilled) inner.count(request);
  });
  const watched = withCount(counters, (request) => {
    done++;
    const settle = request.settle.bind(request);
    request.settle = (error) => {
      done++;
      settle(error);
    };
    counters.count(request);
  });
  const service = new QuotaService({
    ...{ rules, metrics, log, clock, options: defaults, store: watched, tracer },
    unmatched: createUnmatchedSampler(metrics, () => {}),
    isShared: beside !== undefined,
  });
  const decide = createShouldRateLimit({
    ...{ rules, metrics, log, clock, options: defaults, store: counters },
    overLimitCache: createOverLimitCache(0, metrics, clock),
    unmatched: createUnmatchedSampler(metrics, () => {}),
  });
  return {
    clock,
    service,
    log,
    store: counters,
    statistics: () => metrics.snapshot(),
    stat: (name: string) => metrics.snapshot().get(`ratelimit.${name}`) ?? 0,
    useRules(next: string) {
      rules.current = buildRules(next);
    },
    /** Decides one request (ShouldRateLimit). */
    ask(bucket: Readonly<Record<string, string>>, answer: (isAdmitted: boolean) => void) {
      const entries = Object.entries(bucket).map(([key, value]) => ({ key, value }));
      const descriptor = { entries, limit: undefined, hitsAddend: undefined };
      const descriptors = [{ ...descriptor, isNegativeHits: false }];
      const request = { domain: 'd', hitsAddend: 0, descriptors };
      const settle = (outcome: DecisionOutcome) =>
        answer(outcome.ok && outcome.response.overallCode === codes.ok);
      decide(new OpenDecision(request, clock.monotonicMs(), settle));
    },
    /** The messages that were sent on a stream, and how it ended. */
    open() {
      const stream: OpenStream = {
        actions: [],
        ending: undefined,
        handler: service.open({
          send(bytes) {
            done++;
            if (!isKilled)
              stream.actions.push(...(responses.deserialize(bytes).bucketAction ?? []));
          },
          finish: (error) => {
            stream.ending = error ?? 'ok';
          },
        } satisfies StreamCaller),
      };
      return stream;
    },
    /** The process ends as if killed: its streams are cut, and it sends nothing more to the store. */
    kill() {
      isKilled = true;
    },
    /** Waits for started work to complete. */
    async turn() {
      // Work that a busy machine splits into many slices takes more turns of the event loop.
      for (let quiet = 0; quiet < 8; quiet++) {
        const before = done;
        await setImmediate();
        if (done > before) quiet = 0;
      }
    },
  };
}

const reportMs = 5_000;

/** One bucket of one Envoy. */
export class QuotaEnvoy {
  #world: QuotaWorld;
  readonly #bucket: Readonly<Record<string, string>>;
  perSecond: number;
  #stream: OpenStream | undefined;
  #action: QuotaAction['quotaAssignmentAction'];
  #tokens = 0;
  #filledMs = 0;
  #endsMs = Number.POSITIVE_INFINITY;
  #read = 0;
  #due = 0;
  #reportedMs = 0;
  #allowed = 0;
  #denied = 0;
  #hasBucket = false;
  /** Since it was last read. */
  passed = 0;
  refused = 0;

  constructor(world: QuotaWorld, bucket: Readonly<Record<string, string>>, perSecond: number) {
    this.#world = world;
    this.#bucket = bucket;
    this.perSecond = perSecond;
  }

  /** The stream is cut; the assignment is kept. */
  cut(): void {
    this.#stream?.handler.closed();
    this.#stream = undefined;
  }

  /** Connects to another server; the bucket is reported to it when it is due. */
  moveTo(world: QuotaWorld): void {
    this.cut();
    this.#world = world;
  }

  /** The requests that its assignment admits in `seconds`. */
  assigned(seconds: number): number {
    const isOver = this.#world.clock.monotonicMs() >= this.#endsMs;
    const bucket = this.#action?.rateLimitStrategy.tokenBucket;
    if (bucket === undefined || isOver) return 0;
    return (bucket.tokensPerFill.value / bucket.fillInterval.seconds) * seconds;
  }

  /** Requests that it has admitted or may admit, without those already reported. */
  get open(): number {
    return this.#allowed + this.#fill(this.#world.clock.monotonicMs());
  }

  /** `ms` have passed. */
  step(ms: number): void {
    const nowMs = this.#world.clock.monotonicMs();
    this.#receive(nowMs);
    this.#due += (this.perSecond * ms) / 1_000;
    for (; this.#due >= 1; this.#due--) this.#request(nowMs);
    if (this.#hasBucket && nowMs - this.#reportedMs >= reportMs) this.#report(nowMs);
  }

  #request(nowMs: number): void {
    const isAllowed = this.#isAllowed(nowMs);
    if (isAllowed) {
      this.#allowed++;
      this.passed++;
    } else {
      this.#denied++;
      this.refused++;
    }
    if (!this.#hasBucket) this.#report(nowMs);
  }

  #isAllowed(nowMs: number): boolean {
    if (this.#action === undefined || nowMs >= this.#endsMs) return true;
    const { blanketRule, tokenBucket } = this.#action.rateLimitStrategy;
    if (tokenBucket === undefined) return blanketRule !== 'DENY_ALL' && blanketRule !== 1;
    if (this.#fill(nowMs) < 1) return false;
    this.#tokens--;
    return true;
  }

  /** Returns the current number of tokens. */
  #fill(nowMs: number): number {
    const bucket = this.#action?.rateLimitStrategy.tokenBucket;
    if (bucket === undefined) return 0;
    const perSecond = bucket.tokensPerFill.value / bucket.fillInterval.seconds;
    const filled = ((nowMs - this.#filledMs) * perSecond) / 1_000;
    this.#tokens = Math.min(bucket.maxTokens, this.#tokens + filled);
    this.#filledMs = nowMs;
    return this.#tokens;
  }

  #report(nowMs: number): void {
    this.#stream ??= this.#open();
    const elapsedMs = this.#hasBucket ? nowMs - this.#reportedMs : 0;
    const usage = {
      bucketId: { bucket: this.#bucket },
      timeElapsed: { seconds: Math.floor(elapsedMs / 1_000) },
      numRequestsAllowed: this.#allowed,
      numRequestsDenied: this.#denied,
    };
    this.#hasBucket = true;
    this.#reportedMs = nowMs;
    this.#allowed = 0;
    this.#denied = 0;
    this.#stream.handler.message(encodeReports({ domain: 'd', bucketQuotaUsages: [usage] }));
  }

  #open(): OpenStream {
    this.#read = 0;
    return this.#world.open();
  }

  #receive(nowMs: number): void {
    const actions = this.#stream?.actions ?? [];
    for (; this.#read < actions.length; this.#read++) {
      const next = actions[this.#read]?.quotaAssignmentAction;
      const before = this.#action?.rateLimitStrategy.tokenBucket;
      const bucket = next?.rateLimitStrategy.tokenBucket;
      const isReused =
        before?.maxTokens === bucket?.maxTokens &&
        before?.tokensPerFill.value === bucket?.tokensPerFill.value;
      if (!isReused) {
        // A bucket that replaces another one gets the remaining tokens.
        const left = before === undefined ? Number.POSITIVE_INFINITY : this.#fill(nowMs);
        this.#tokens = Math.min(bucket?.maxTokens ?? 0, left);
        this.#filledMs = nowMs;
      }
      this.#action = next;
      if (next === undefined) this.#hasBucket = false;
      else this.#endsMs = nowMs + next.assignmentTimeToLive.seconds * 1_000;
    }
  }
}

/** An Envoy with the filter that calls for each request, of a worker on the same store. */
export class AskingEnvoy {
  readonly #world: QuotaWorld;
  readonly #bucket: Readonly<Record<string, string>>;
  perSecond: number;
  #due = 0;
  /** Since it was last read. */
  passed = 0;
  refused = 0;
  /** Whether a request was ever refused. */
  wasRefused = false;

  constructor(world: QuotaWorld, bucket: Readonly<Record<string, string>>, perSecond: number) {
    this.#world = world;
    this.#bucket = bucket;
    this.perSecond = perSecond;
  }

  /** `ms` have passed. */
  step(ms: number): void {
    this.#due += (this.perSecond * ms) / 1_000;
    for (; this.#due >= 1; this.#due--) {
      this.#world.ask(this.#bucket, (isAdmitted) => {
        if (isAdmitted) this.passed++;
        else this.refused++;
        this.wasRefused ||= !isAdmitted;
      });
    }
  }
}

const stepMs = 20;

/** Runs the Envoys for this many seconds; returns what each admitted and refused, by second. */
export async function runEnvoys(
  worlds: readonly QuotaWorld[],
  envoys: readonly (QuotaEnvoy | AskingEnvoy)[],
  seconds: number,
): Promise<readonly (readonly { readonly passed: number; readonly refused: number }[])[]> {
  const rows = [];
  for (let passedMs = stepMs; passedMs <= seconds * 1_000; passedMs += stepMs) {
    worlds[0]?.clock.advance(stepMs);
    for (const world of worlds) await world.turn();
    for (const envoy of envoys) envoy.step(stepMs);
    for (const world of worlds) await world.turn();
    if (passedMs % 1_000 > 0) continue;
    rows.push(envoys.map(({ passed, refused }) => ({ passed, refused })));
    for (const envoy of envoys) {
      envoy.passed = 0;
      envoy.refused = 0;
    }
  }
  return rows;
}
