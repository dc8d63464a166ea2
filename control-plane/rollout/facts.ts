// What rollouts know of workers: of this control plane's own, and of those of its peers.
import { isDeepStrictEqual } from 'node:util';
import Type from 'typebox';
import { toCountText } from '../../shared/count-text.ts';
import { orNull } from '../../shared/or-null.ts';
import type { PeerAnswer } from '../peers/peers.ts';
import type { SnapshotCache } from '../snapshot/cache.ts';
import { toWorkerState } from '../xds/worker-state.ts';
import type { ConnectedWorker, ConnectedWorkers } from '../xds/workers.ts';
import type { Traffic } from './judgement.ts';
import { type Limits, limitsJson, type Pools } from './pools.ts';

const workerFactsJson = Type.Object({
  id: Type.String(),
  /** For people. */
  name: Type.String(),
  /** That it belongs to, in the rollout of the revision on trial. */
  pool: Type.Integer({ minimum: 0 }),
  state: Type.Union([Type.Literal('in_force'), Type.Literal('pending'), Type.Literal('refused')]),
  /** Why it refuses the version that it is given; null when it does not. */
  refusal: orNull(Type.String()),
  /** Counts since its start; null when it does not report. */
  traffic: orNull(
    Type.Object({ decisions: Type.Number(), overLimit: Type.Number(), errors: Type.Number() }),
  ),
});
export type WorkerFacts = Type.Static<typeof workerFactsJson>;

/** Of the workers of one control plane. */
export const factsJson = Type.Object(
  {
    /** The revision that only some of its workers are given. */
    trial: orNull(Type.String()),
    inForce: orNull(Type.String()),
    /** By pool, nodes up to this place are given the trial. */
    limits: limitsJson,
    /** Identifies the record of the rollout that it knows. */
    record: orNull(Type.String()),
    workers: Type.Array(workerFactsJson),
  },
  { title: 'RolloutFacts' },
);
export type RolloutFacts = Type.Static<typeof factsJson>;

export interface FactSources {
  readonly workers: ConnectedWorkers;
  readonly snapshots: Pick<SnapshotCache, 'current'>;
  /** By node id, of the workers that report: since their start. */
  readonly readTraffic: () => ReadonlyMap<string, Traffic>;
}

const maxRefusalLength = 500;
const maxNameLength = 200;

export function readOwnFacts(
  { workers, snapshots, readTraffic }: FactSources,
  pools: Pick<Pools, 'poolOf'> | undefined,
): WorkerFacts[] {
  const trafficByNode = readTraffic();
  return workers.list().map((worker) => {
    const { state, expected } = toWorkerState(worker, snapshots.current(worker.node));
    const { nacked, node } = worker;
    const isRefusal = state === 'refused' && nacked?.version === expected;
    const traffic = trafficByNode.get(node.id);
    return {
      id: node.id,
      name: nameOf(worker),
      pool: pools?.poolOf(node) ?? 0,
      state,
      refusal: isRefusal ? (nacked?.text.slice(0, maxRefusalLength) ?? '') : null,
      traffic: traffic ? { ...traffic } : null,
    };
  });
}

function nameOf({ node, address }: ConnectedWorker): string {
  return node.id === '' ? address : `'${node.id.slice(0, maxNameLength)}'`;
}

/** The workers of all peers. */
export interface PeerFacts {
  /** Those that can be given the revision. */
  readonly workers: readonly WorkerFacts[];
  /** Those of peers that are past the revision: they are not given it any more. */
  readonly passed: readonly WorkerFacts[];
  /** Why nothing is decided yet, for people: a peer does not answer, or does not follow. */
  readonly unknown: string | undefined;
}

export const noPeers: PeerFacts = { workers: [], passed: [], unknown: undefined };

export interface Expected {
  readonly revision: string;
  readonly limits: Limits;
  /** The revision that is next, if there is one. */
  readonly next: string | undefined;
}

/** Pure. What a peer says of another revision or share than the expected one is no answer yet. */
export function toPeerFacts(
  answers: readonly PeerAnswer<RolloutFacts>[],
  { revision, limits, next }: Expected,
): PeerFacts {
  const workers: WorkerFacts[] = [];
  const passed: WorkerFacts[] = [];
  let unknown: string | undefined;
  for (const { url, value, error, ...rest } of answers) {
    if (value === undefined) {
      const last = 'last' in rest ? rest.last : undefined;
      const whom = last === undefined ? 'its workers' : `its ${toCountText(last, 'worker')}`;
      unknown ??= `waits for peer ${url}, which gives no answer (${error}): it is unknown for ${whom}`;
      continue;
    }
    if (value.trial !== null && value.trial === next) {
      passed.push(...value.workers);
      continue;
    }
    const hasIt = value.inForce === revision;
    if (hasIt || (value.trial === revision && isDeepStrictEqual(value.limits, limits))) {
      workers.push(...value.workers);
    } else {
      unknown ??= `waits for peer ${url} to follow this step`;
      const asked = value.workers.map(
        (each) => ({ ...each, state: 'pending', refusal: null }) as const,
      );
      workers.push(...asked);
    }
  }
  return { workers, passed, unknown };
}
