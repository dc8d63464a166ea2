// A counter store on real memcacheds, which records its reports for the test.
import { type Clock, systemClock } from '../../shared/clock.ts';
import { parseHostPort } from '../../shared/host-port.ts';
import { createOutages } from '../../worker/counters/failure/outages.ts';
import { createMemcachedMetrics } from '../../worker/counters/memcached/memcached-metrics.ts';
import {
  MemcachedStore,
  type MemcachedStoreOptions,
} from '../../worker/counters/memcached/memcached-store.ts';
import type { ResolveSrv } from '../../worker/counters/memcached/srv-record.ts';
import type { Owner } from './owner.ts';
import { createRecordedLog, type RecordedLog } from './recorded-log.ts';
import { createStubMetrics, type StubMetrics } from './stub-metrics.ts';

/** memcached-node.ts considers a node silent after this time without an answer. */
const answerTimeoutMs = 500;

/** Never considers a node silent: on a busy machine a healthy node may be without a processor for longer, and its
 * counters would count as 0. Tests of silence use the `systemClock`. */
export const patientClock: Clock = {
  ...systemClock,
  after: (delayMs, task) =>
    delayMs === answerTimeoutMs ? () => {} : systemClock.after(delayMs, task),
};

export interface RecordedMemcachedStore extends MemcachedStore {
  readonly log: RecordedLog;
  readonly metrics: StubMetrics;
}

export interface RecordedMemcachedStoreOptions extends Partial<MemcachedStoreOptions> {
  /** `host:port` of each node. */
  readonly urls?: readonly string[];
  readonly resolveSrv?: ResolveSrv;
  /** Default: `patientClock`. */
  readonly clock?: Clock;
}

export function createRecordedMemcachedStore({
  urls = [],
  resolveSrv = () => Promise.reject(new Error('this test has no DNS')),
  clock = patientClock,
  ...options
}: RecordedMemcachedStoreOptions): RecordedMemcachedStore {
  const log = createRecordedLog();
  const metrics = createStubMetrics();
  const addresses = urls.map((url) => {
    const parsed = parseHostPort(url, 1);
    if (!parsed.ok) throw new Error(parsed.reason);
    return parsed.value;
  });
  const store = new MemcachedStore(
    {
      source: { kind: 'list', addresses },
      maxIdleConnections: 2,
      tls: undefined,
      jitterMaxSeconds: 300,
      failureMode: 'error',
      longKeys: 'fail',
      ...options,
    },
    {
      clock,
      log,
      metrics: createMemcachedMetrics(metrics),
      outages: createOutages({ metricPrefix: 'ratelimit.store', metrics, clock, onOver: () => {} }),
      resolveSrv,
    },
  );
  return Object.assign(store, { log, metrics });
}

/** Started; gives up after 30 s. */
export async function openMemcachedStore(
  t: Owner,
  options: RecordedMemcachedStoreOptions,
): Promise<RecordedMemcachedStore> {
  const store = createRecordedMemcachedStore(options);
  t.teardown(() => store.close(0));
  await store.connect(AbortSignal.timeout(30_000));
  return store;
}
