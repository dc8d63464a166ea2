// Requests to a counter store, for tests: sensible defaults, and the outcome as a promise.
import { systemClock } from '../../shared/clock.ts';
import type { AppError } from '../../shared/errors.ts';
import type { Lease } from '../../shared/rules/limit-shape.ts';
import type { Unit } from '../../shared/rules/unit.ts';
import {
  type CounterStore,
  type CountRequest,
  type Hit,
  type LimiterWindow,
  toLimiterHit,
  toMapKey,
} from '../../worker/counters/store.ts';

export interface HitOptions {
  readonly key: string;
  /** 1 unless given; a bigint for numbers above 2^53. */
  readonly hits?: number | bigint;
  readonly refund?: boolean;
  readonly limit?: number;
  readonly unit?: Unit;
  readonly windowSeconds?: number;
  readonly descriptorIndex?: number;
  readonly stopsOthers?: Hit['stopsOthers'];
  readonly limiter?: LimiterWindow;
  readonly lease?: Lease;
}

export interface CountOutcome {
  readonly error: AppError | undefined;
  /** The `after` of each hit; meaningless with an error. */
  readonly after: number[];
  /** From `startCounting` to the outcome. */
  readonly tookMs: number;
}

/** Long enough for a busy machine; tests that need a shorter timeout set it. */
const patientMs = 20_000;

export function createHit(options: HitOptions): Hit {
  const hits = options.hits ?? 1;
  return {
    key: options.key,
    mapKey: toMapKey(options.key),
    hits: Number(hits),
    exactHits: typeof hits === 'bigint' ? hits : undefined,
    refund: options.refund ?? false,
    limit: options.limit ?? 100,
    windowSeconds: options.windowSeconds ?? 3600,
    unit: options.unit ?? 'hour',
    descriptorIndex: options.descriptorIndex ?? 0,
    stopsOthers: options.stopsOthers ?? 'alone',
    after: -1,
    limiter: options.limiter && toLimiterHit(options.limiter, Number(options.hits ?? 1)),
    lease: options.lease,
  };
}

export function createRequest(
  hits: readonly Hit[],
  options: Partial<CountRequest> & Pick<CountRequest, 'settle'>,
): CountRequest {
  return {
    hits,
    mode: 'add',
    deadlineMs: systemClock.monotonicMs() + patientMs,
    cancelled: false,
    ...options,
  };
}

/** A request whose outcome is a promise; a second outcome fails the process. */
export function startCounting(
  hits: readonly Hit[],
  options: Partial<Omit<CountRequest, 'settle'>> = {},
): { request: CountRequest; result: Promise<CountOutcome> } {
  const startMs = performance.now();
  let settled = false;
  let settle: CountRequest['settle'] = () => {};
  const result = new Promise<CountOutcome>((resolve) => {
    settle = (error) => {
      if (settled)
        process.nextTick(() => {
          throw new Error('a request was settled twice');
        });
      settled = true;
      const tookMs = performance.now() - startMs;
      resolve({ error, after: hits.map((hit) => hit.after), tookMs });
    };
  });
  return { request: createRequest(hits, { ...options, settle }), result };
}

/** The outcome of a request to this store. */
export function countOn(
  store: Pick<CounterStore, 'count'>,
  ...request: Parameters<typeof startCounting>
): Promise<CountOutcome> {
  const started = startCounting(...request);
  store.count(started.request);
  return started.result;
}
