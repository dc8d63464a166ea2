// The workers of all control planes as a rollout sees them at one look: who is given the revision, who has it, and
// what they have counted.
import type { Clock } from '../../shared/clock.ts';
import {
  type FactSources,
  noPeers,
  type PeerFacts,
  readOwnFacts,
  type WorkerFacts,
} from './facts.ts';
import { type Judgement, judge, since, sum, type Traffic } from './judgement.ts';
import { placeOf } from './share.ts';

export interface FleetView {
  /** Takes what is known now. */
  update(peers: PeerFacts): void;
  /** For the time without a rollout: only how many workers are connected. */
  updateCount(): void;
  /** Why nothing can be decided yet, for people. */
  readonly unknown: string | undefined;
  /** Whether the workers that reconnect after a start, or after `sinceMs`, have come, as far as one can tell. */
  isGathered(sinceMs: number): boolean;
  /** Of those that can be given the revision (share.ts). */
  places(): number[];
  /** Those up to this place. */
  chosen(limit: number): WorkerFacts[];
  /** How many there are in all. */
  count(): number;
  /** Begins to compare what they count. */
  startCounting(): void;
  judge(limit: number, overLimitPoints: number): Judgement;
}

/** After a start of a control plane the workers connect one by one: a share of the first few would not be
 * representative. */
const gatherMs = 30_000;
const gatherQuietMs = 5_000;

export function createFleetView(sources: FactSources, clock: Clock): FleetView {
  let own: readonly WorkerFacts[] = [];
  let peers: PeerFacts = noPeers;
  /** By node id; kept from look to look, as each costs a hash. */
  let places: ReadonlyMap<string, number> = new Map();
  let connected = { count: 0, sinceMs: clock.monotonicMs() };
  /** Each worker's counts at the start, or when it was first seen after that. */
  let baseline = new Map<string, Traffic>();

  function known(): WorkerFacts[] {
    return [...own, ...peers.workers];
  }

  function placeIn({ id }: Pick<WorkerFacts, 'id'>): number {
    return places.get(id) ?? placeOf(id);
  }

  function noteCount(count: number): void {
    if (count !== connected.count) connected = { count, sinceMs: clock.monotonicMs() };
  }

  /** A worker that changes its control plane is at two of them for a moment. */
  function readTraffic(): Map<string, Traffic> {
    const all = new Map<string, Traffic>();
    for (const { id, traffic } of [...known(), ...peers.passed]) {
      if (traffic === null) continue;
      const other = all.get(id);
      if (other === undefined || other.decisions < traffic.decisions) all.set(id, traffic);
    }
    return all;
  }

  return {
    update(given) {
      own = readOwnFacts(sources);
      peers = given;
      const all = [...known(), ...peers.passed];
      places = new Map(all.map((worker) => [worker.id, placeIn(worker)]));
      noteCount(all.length);
    },
    updateCount() {
      noteCount(sources.workers.list().length);
    },
    get unknown() {
      return peers.unknown;
    },
    isGathered(sinceMs) {
      const nowMs = clock.monotonicMs();
      if (nowMs - sinceMs >= gatherMs) return connected.count > 0;
      const quietSinceMs = Math.max(connected.sinceMs, sinceMs);
      return connected.count > 1 && nowMs - quietSinceMs >= gatherQuietMs;
    },
    places: () => known().map(placeIn),
    chosen: (limit) => known().filter((worker) => placeIn(worker) <= limit),
    count: () => known().length + peers.passed.length,
    startCounting() {
      baseline = readTraffic();
    },
    judge(limit, overLimitPoints) {
      const having: Traffic[] = [];
      const others: Traffic[] = [];
      const passed = new Set(peers.passed.map(({ id }) => id));
      for (const [id, traffic] of readTraffic()) {
        const before = baseline.get(id);
        if (before === undefined) baseline.set(id, traffic);
        const has = placeIn({ id }) <= limit && !passed.has(id);
        (has ? having : others).push(since(before ?? traffic, traffic));
      }
      return judge(sum(having), sum(others), overLimitPoints);
    },
  };
}
