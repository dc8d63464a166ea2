// The workers of all control planes as a rollout sees them at one look: who is given the revision, who has it, and
// what they have counted.
import type { Clock } from '../../shared/clock.ts';
import { type FactSources, type PeerFacts, readOwnFacts, type WorkerFacts } from './facts.ts';
import { type Judgement, judgeAll, since, sum, type Traffic } from './judgement.ts';
import { isWithin, type Limits, type PlacedWorker, type Pools } from './pools.ts';
import { placeOf } from './share.ts';

export interface FleetView {
  /** Takes what is known now. */
  update(peers: PeerFacts, pools: Pools): void;
  /** For the time without a rollout: only how many workers are connected. */
  updateCount(): void;
  /** Why nothing can be decided yet, for people. */
  readonly unknown: string | undefined;
  /** Whether the workers that reconnect after a start, or after `sinceMs`, have come, as far as one can tell. */
  isGathered(sinceMs: number): boolean;
  /** Those that can be given the revision. */
  given(): readonly PlacedWorker[];
  /** Those that are within these limits. */
  chosen(limits: Limits): readonly WorkerFacts[];
  /** How many there are in all. */
  count(): number;
  /** Begins to compare what they count. */
  startCounting(): void;
  judge(limits: Limits, overLimitPoints: number, pools: Pools): Judgement;
}

/** After a start of a control plane the workers connect one by one: a share of the first few would not be
 * representative. */
const gatherMs = 30_000;
const gatherQuietMs = 5_000;

interface KnownWorker extends PlacedWorker {
  readonly facts: WorkerFacts;
}

interface Counted {
  readonly worker: KnownWorker;
  readonly traffic: Traffic;
}

export function createFleetView(sources: FactSources, clock: Clock): FleetView {
  /** Those that can be given the revision. */
  let known: readonly KnownWorker[] = [];
  /** Those that are past the revision. */
  let past: readonly KnownWorker[] = [];
  let unknown: string | undefined;
  /** By node id; kept from look to look, as each costs a hash. */
  let places: ReadonlyMap<string, number> = new Map();
  let connected = { count: 0, sinceMs: clock.monotonicMs() };
  /** Each worker's counts at the start, or when it was first seen after that. */
  let baseline = new Map<string, Counted>();

  function toKnown(facts: WorkerFacts): KnownWorker {
    const place = places.get(facts.id) ?? placeOf(facts.id);
    return { facts, pool: facts.pool, place };
  }

  function noteCount(count: number): void {
    if (count !== connected.count) connected = { count, sinceMs: clock.monotonicMs() };
  }

  /** A worker that changes its control plane is at two of them for a moment. */
  function readTraffic(): Map<string, Counted> {
    const all = new Map<string, Counted>();
    for (const worker of [...known, ...past]) {
      const { id, traffic } = worker.facts;
      const other = all.get(id);
      if (traffic === null || (other && other.traffic.decisions >= traffic.decisions)) continue;
      all.set(id, { worker, traffic });
    }
    return all;
  }

  return {
    update(peers, pools) {
      known = [...readOwnFacts(sources, pools), ...peers.workers].map(toKnown);
      // Their pools are those of another revision.
      past = peers.passed.map((facts) => ({ ...toKnown(facts), pool: 0 }));
      unknown = peers.unknown;
      const all = [...known, ...past];
      places = new Map(all.map(({ facts, place }) => [facts.id, place]));
      noteCount(all.length);
    },
    updateCount() {
      noteCount(sources.workers.list().length);
    },
    get unknown() {
      return unknown;
    },
    isGathered(sinceMs) {
      const nowMs = clock.monotonicMs();
      if (nowMs - sinceMs >= gatherMs) return connected.count > 0;
      const quietSinceMs = Math.max(connected.sinceMs, sinceMs);
      return connected.count > 1 && nowMs - quietSinceMs >= gatherQuietMs;
    },
    given: () => known,
    chosen: (limits) =>
      known.filter((worker) => isWithin(limits, worker)).map(({ facts }) => facts),
    count: () => known.length + past.length,
    startCounting() {
      baseline = readTraffic();
    },
    judge(limits, overLimitPoints, pools) {
      const pastIds = new Set(past.map(({ facts }) => facts.id));
      const sides = new Map<number, { having: Traffic[]; others: Traffic[] }>();
      for (const [id, counted] of readTraffic()) {
        const { worker, traffic } = counted;
        const before = baseline.get(id);
        if (before === undefined) baseline.set(id, counted);
        const side = sides.get(worker.pool) ?? { having: [], others: [] };
        sides.set(worker.pool, side);
        const has = isWithin(limits, worker) && !pastIds.has(id);
        (has ? side.having : side.others).push(since((before ?? counted).traffic, traffic));
      }
      const judged = [...sides].map(([pool, { having, others }]) => ({
        name: pools.nameOf(pool),
        having: sum(having),
        others: sum(others),
        isDivided: having.length > 0 && others.length > 0,
      }));
      return judgeAll(judged, overLimitPoints);
    },
  };
}
