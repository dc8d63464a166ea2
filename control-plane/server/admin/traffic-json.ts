// The traffic that the workers report, in the format of the admin API, and in a few words. Pure.
import Type from 'typebox';
import { toCountText } from '../../../shared/count-text.ts';
import { decisionDurationBounds, findP99Ms } from '../../../shared/decision-durations.ts';
import { orNull, time, toTime } from '../api-shape.ts';
import type { LinkedWorker } from '../fleet/fleet.ts';
import type { QuotaFigures, WorkerFigures } from '../fleet/worker-figures.ts';
import type { ConnectedWorker } from '../xds/workers.ts';
import { roundFields, sumFields } from './joined.ts';

const rates = {
  decisionsPerSecond: Type.Number(),
  overLimitPerSecond: Type.Number({ description: 'Requests that were answered OVER_LIMIT' }),
  errorsPerSecond: Type.Number({ description: 'Requests that could not be decided' }),
  /** Null without decisions, and if the percentile is above the last edge. */
  p99Ms: orNull(
    Type.Number({ description: '99 of 100 decisions took at most this: the edge of a bucket' }),
  ),
  p99AboveMs: orNull(
    Type.Number({
      description: 'More than one of 100 decisions took longer than this, the last edge',
    }),
  ),
};

/** Differences between the last two reports of one worker. */
export const figuresJson = Type.Object(
  {
    ...rates,
    at: time,
    version: Type.String(),
    store: Type.Object({
      kind: Type.String(),
      serversAway: Type.Number(),
      clockOffsetMs: Type.Number(),
      unreachableSince: Type.Optional(
        Type.String({
          format: 'date-time',
          description:
            'Since when requests are answered without the store, or without one of its servers',
        }),
      ),
    }),
  },
  { title: 'WorkerFigures' },
);
type FiguresJson = Type.Static<typeof figuresJson>;

const storeProblem = {
  withoutStorePerSecond: Type.Number({
    description: 'Requests that were answered without the store',
  }),
  workersWithoutStore: Type.Integer({
    description: 'Those that answer so, or that do not reach a server of their store',
  }),
  storeCalls: orNull(
    Type.Object(
      { p99Ms: rates.p99Ms, p99AboveMs: rates.p99AboveMs },
      {
        description: 'How long 99 of 100 calls of the store took, which the decisions waited for',
      },
    ),
  ),
};

/** Absent if no Envoy requests quotas, and from an older control plane. */
const quota = Type.Optional(
  Type.Object(
    {
      streams: Type.Integer({ description: 'Open streams of Envoys' }),
      buckets: Type.Integer({ description: 'Buckets that these report' }),
      assignmentsPerSecond: Type.Number(),
    },
    { description: 'The quota service' },
  ),
);

export const trafficJson = Type.Object(
  {
    ...{ workers: Type.Integer({ description: 'Those that report' }), ...rates },
    ...{ ...storeProblem, quota },
  },
  { title: 'Traffic' },
);
export type TrafficJson = Type.Static<typeof trafficJson>;

const ratesOfAll = ['decisionsPerSecond', 'overLimitPerSecond', 'errorsPerSecond'] as const;

const lastEdgeMs = (decisionDurationBounds.at(-1) ?? 0) * 1000;

/** The traffic of the workers of one control plane; null when none reports. */
export function toTrafficJson(linked: readonly LinkedWorker[]): TrafficJson | null {
  const all = linked.flatMap(({ figures }) => figures ?? []);
  const parts = all.map(({ withoutStorePerSecond, store, ...rates }) => ({
    ...{ ...rates, withoutStorePerSecond, workers: 1 },
    workersWithoutStore: withoutStorePerSecond > 0 || store.serversAway > 0 ? 1 : 0,
  }));
  return sumTraffic(parts, {
    ofDecisions: toP99(all.map(({ durations }) => durations)),
    ofStoreCalls: toP99(all.map(({ storeDurations }) => storeDurations)),
  });
}

/** The traffic that control planes report, together: of their latencies, the slowest counts. */
export function toTraffic(all: readonly TrafficJson[]): TrafficJson | null {
  return sumTraffic(all, {
    ofDecisions: findSlowest(all),
    ofStoreCalls: findSlowest(all.flatMap(({ storeCalls }) => storeCalls ?? [])),
  });
}

type TrafficPart = Omit<TrafficJson, keyof P99 | 'storeCalls' | 'quota'> & {
  readonly quota?: QuotaFigures | undefined;
};
type P99 = Pick<TrafficJson, 'p99Ms' | 'p99AboveMs'>;

function sumTraffic(
  all: readonly TrafficPart[],
  p99: { readonly ofDecisions: P99; readonly ofStoreCalls: P99 },
): TrafficJson | null {
  if (all.length === 0) return null;
  const quotas = all.flatMap(({ quota }) => quota ?? []);
  return {
    ...roundFields(sumFields(all, ['workers', ...ratesOfAll])),
    ...p99.ofDecisions,
    ...roundFields(sumFields(all, ['withoutStorePerSecond', 'workersWithoutStore'])),
    storeCalls: p99.ofStoreCalls,
    ...(quotas.length > 0 && {
      quota: roundFields(sumFields(quotas, ['streams', 'buckets', 'assignmentsPerSecond'])),
    }),
  };
}

function findSlowest(all: readonly P99[]): P99 {
  const slowest = all.flatMap(({ p99Ms }) => p99Ms ?? []);
  const [above] = all.flatMap(({ p99AboveMs }) => p99AboveMs ?? []);
  const isKnown = slowest.length > 0 && above === undefined;
  return { p99Ms: isKnown ? Math.max(...slowest) : null, p99AboveMs: above ?? null };
}

export type FindFigures = (
  worker: Pick<ConnectedWorker, 'node' | 'instance' | 'address'>,
) => FiguresJson | null;

/** Finds figures by instance and node id. For a worker without an instance, they are found by node id and host, among
 * the links whose instance no worker has: ids may be shared, and hosts may be a proxy's, so links that share both are
 * summed. */
export function createFindFigures(
  linked: readonly LinkedWorker[],
  workers: readonly Pick<ConnectedWorker, 'instance'>[],
): FindFigures {
  const named = new Set(workers.map(({ instance }) => instance));
  const byInstance = new Map<string, LinkedWorker>();
  const byAddress = new Map<string, WorkerFigures[]>();
  for (const link of linked) {
    const { hello, address, figures } = link;
    if (figures === undefined) continue;
    if (named.has(hello.instance)) {
      byInstance.set(hello.instance, link);
      continue;
    }
    const key = toKey(hello.nodeId, address);
    byAddress.set(key, [...(byAddress.get(key) ?? []), figures]);
  }
  function find({ node, instance, address }: Parameters<FindFigures>[0]) {
    if (instance === undefined) return byAddress.get(toKey(node.id, address)) ?? [];
    const { hello, figures } = byInstance.get(instance) ?? {};
    return figures !== undefined && hello?.nodeId === node.id ? [figures] : [];
  }

  return (worker) => {
    const all = find(worker);
    const last = all.at(-1);
    if (last === undefined) return null;
    const { isPartly: _, ...store } = last.store;
    return {
      ...roundFields(sumFields(all, ratesOfAll)),
      ...toP99(all.map(({ durations }) => durations)),
      at: toTime(last.atMs),
      version: last.version,
      store,
    };
  };
}

/** Such as `1204 decisions/s, 12 over limit/s, no errors, p99 at most 100 ms, of calls of the store at most 50 ms (3 workers report)`. */
export function toTrafficText(traffic: TrafficJson): string {
  const { decisionsPerSecond, overLimitPerSecond, errorsPerSecond, workers } = traffic;
  const errors = errorsPerSecond === 0 ? 'no errors' : `${errorsPerSecond} errors/s`;
  const p99 = toP99Text(traffic);
  const storeP99 = traffic.storeCalls ? toP99Text(traffic.storeCalls) : '';
  const times =
    (p99 === '' ? '' : `, p99 ${p99}`) +
    (storeP99 === '' ? '' : `, of calls of the store ${storeP99}`);
  const who = `${toCountText(workers, 'worker')} ${workers === 1 ? 'reports' : 'report'}`;
  const { quota: asked } = traffic;
  const quotaText = asked
    ? `; quota service: ${toCountText(asked.streams, 'stream')}, ${toCountText(asked.buckets, 'bucket')}, ${asked.assignmentsPerSecond} assignments/s`
    : '';
  return `${decisionsPerSecond} decisions/s, ${overLimitPerSecond} over limit/s, ${errors}${times} (${who})${quotaText}`;
}

/** Such as `at most 0.5 ms`; '' without decisions. */
function toP99Text({ p99Ms, p99AboveMs }: P99): string {
  if (p99AboveMs !== null) return `above ${p99AboveMs} ms`;
  return p99Ms === null ? '' : `at most ${p99Ms} ms`;
}

function toP99(all: readonly (readonly number[])[]): P99 {
  const p99Ms = findP99Ms(all);
  return p99Ms === Number.POSITIVE_INFINITY
    ? { p99Ms: null, p99AboveMs: lastEdgeMs }
    : { p99Ms: p99Ms ?? null, p99AboveMs: null };
}

function toKey(nodeId: string, address: string): string {
  return `${nodeId}\n${address.slice(0, address.lastIndexOf(':'))}`;
}
