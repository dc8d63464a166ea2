// A counter store on a real Redis, which records its reports for the test.
import { type Clock, systemClock } from '../../shared/clock.ts';
import { createOutages } from '../../worker/counters/failure/outages.ts';
import { parseStoreTarget, type StoreType } from '../../worker/counters/redis/address.ts';
import { parseCredentials } from '../../worker/counters/redis/credentials.ts';
import type { PoolOptions } from '../../worker/counters/redis/redis-pool.ts';
import { createRedisStore } from '../../worker/counters/redis/redis-store.ts';
import { createRemedies } from '../../worker/counters/redis/remedies.ts';
import type { RedisStoreOptions } from '../../worker/counters/redis/store-deps.ts';
import type { CounterStore } from '../../worker/counters/store.ts';
import type { Gauge } from '../../worker/metrics.ts';
import type { Owner } from './owner.ts';
import { createRecordedLog, type RecordedLog } from './recorded-log.ts';
import { createStubMetrics, type StubMetrics } from './stub-metrics.ts';

export interface RecordedRedisStore extends CounterStore {
  readonly log: RecordedLog;
  readonly metrics: StubMetrics;
  /** Each reported change. */
  readonly healthChanges: boolean[];
  readonly connections: { active: number; total: number; localClose: number };
}

export interface RecordedRedisStoreOptions
  extends Partial<Omit<RedisStoreOptions, 'target' | 'pool'>>,
    Partial<PoolOptions> {
  readonly socketType?: 'tcp' | 'unix';
  readonly type?: StoreType;
  readonly clock?: Clock;
  readonly clockOffset?: Gauge;
  /** As in KVSTORE_AUTH. */
  readonly auth?: string;
}

export function createRecordedRedisStore(
  url: string,
  options: RecordedRedisStoreOptions = {},
): RecordedRedisStore {
  const { socketType = 'tcp', type = 'single', auth = '', ...rest } = options;
  const {
    startup,
    readCredentials,
    tls,
    sentinelCredentials,
    clusterParallelism = 1,
    clock = systemClock,
    clockOffset,
    ...pool
  } = rest;
  const parsed = parseStoreTarget(url, type, socketType);
  if (!parsed.ok) throw new Error(parsed.reason);
  const log = createRecordedLog();
  const metrics = createStubMetrics();
  const healthChanges: boolean[] = [];
  const connections = { active: 0, total: 0, localClose: 0 };
  const counter = (name: 'total' | 'localClose') => ({
    add(count: number) {
      connections[name] += count;
    },
    get value() {
      return connections[name];
    },
  });
  const active = {
    set(value: number) {
      connections.active = value;
    },
    get value() {
      return connections.active;
    },
  };
  const store = createRedisStore(
    {
      target: { ...parsed.value, credentials: parsed.value.credentials ?? parseCredentials(auth) },
      addressSetting: 'KVSTORE_URL',
      readCredentials,
      tls,
      sentinelCredentials,
      clusterParallelism,
      pool: {
        size: 2,
        onEmpty: { behavior: 'wait', waitMs: 0 },
        closeOnReadonlyError: false,
        timeoutMs: 10_000,
        pipelineWindowMs: 0,
        describeRemedy: createRemedies({
          addressSetting: 'KVSTORE_URL',
          type,
          credentialsFrom: 'AUTH',
          tls: tls !== undefined,
          closesOnReadonly: pool.closeOnReadonlyError === true,
        }),
        jitterMaxSeconds: 300,
        failureMode: 'error',
        ...pool,
      },
      startup: startup ?? { initialIntervalMs: 50, maxIntervalMs: 200, maxElapsedMs: 0 },
    },
    {
      clock,
      ...(clockOffset && { clockOffset }),
      log,
      callDuration: metrics.storeCallDuration,
      outages: createOutages({ metricPrefix: 'ratelimit.store', metrics, clock, onOver: () => {} }),
      connections: { active, total: counter('total'), localClose: counter('localClose') },
      onHealthChange: (healthy) => healthChanges.push(healthy),
    },
  );
  return Object.assign(store, { log, metrics, healthChanges, connections });
}

/** Connected; gives up after 60 s. */
export async function openRedisStore(
  t: Owner,
  url: string,
  options?: RecordedRedisStoreOptions,
): Promise<RecordedRedisStore> {
  const store = createRecordedRedisStore(url, options);
  t.teardown(() => store.close(0));
  await store.connect(AbortSignal.timeout(60_000));
  return store;
}
