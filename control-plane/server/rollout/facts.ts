// The facts about their own workers that control planes exchange in a rollout.
import Type from 'typebox';
import { sanitizeMetricName } from '../../../shared/rules/lookup/metric-key.ts';
import { orNull } from '../api-shape.ts';
import type { Counted, Tallied } from '../fleet/tally.ts';
import { findSharedIds, toWorkerName } from '../fleet/worker-name.ts';
import type { PeerAnswer } from '../record/peers/peers.ts';
import type { SnapshotCache } from '../snapshot/cache.ts';
import type { Fate, LostRules } from '../snapshot/lost-rules.ts';
import type { ConnectedWorkers } from '../xds/workers.ts';
import { toWorkerState } from '../xds/workers.ts';
import type { Running } from './following.ts';

/** The most domains whose figures are sent for all workers of one control plane: they are sent each second. */
const maxDomains = 20_000;

/** The sums over a period. */
const figuresFields = {
  decisions: Type.Number(),
  overLimit: Type.Number(),
  errors: Type.Number(),
  /** Omitted by control planes of an earlier version. */
  noMatch: Type.Optional(Type.Number()),
  /** Hits of rules whose removal is intended. */
  gone: Type.Optional(Type.Number()),
  /** The figures of the domains that the revision changes and that have any, except those that are left out. */
  domains: Type.Optional(
    Type.Array(
      Type.Object({
        name: Type.String(),
        hits: Type.Number(),
        overLimit: Type.Number(),
        /** Omitted if the worker does not report errors. */
        errors: Type.Optional(Type.Number()),
        noMatch: Type.Optional(Type.Number()),
        gone: Type.Optional(Type.Number()),
      }),
      { maxItems: maxDomains },
    ),
  ),
};
const figuresJson = Type.Object(figuresFields);
export type FiguresFacts = Type.Static<typeof figuresJson>;

const workerFactsJson = Type.Object({
  /** Identifies one start of a worker, or one connection if the start is not known. */
  key: Type.String(),
  id: Type.String(),
  instance: orNull(Type.String()),
  /** The human-readable name of the worker. */
  name: Type.String(),
  /** The worker's pool in the rollout of the revision on trial. */
  pool: Type.Integer({ minimum: 0 }),
  /** Whether the revision on trial changes anything for the worker. */
  isAffected: Type.Boolean(),
  state: Type.Union([Type.Literal('in_force'), Type.Literal('pending'), Type.Literal('refused')]),
  /** Whether the worker has acknowledged the version that it is given but decides by another one: its state is
   * pending. */
  unused: Type.Optional(Type.Boolean()),
  /** Why the worker refuses the version that it is given; null if it does not refuse it. */
  refusal: orNull(Type.String()),
  /** The sums under the version that the worker has; null if it does not report or its reports cannot be trusted. */
  counted: orNull(
    Type.Object({
      /** Sums of different series cannot be compared. */
      series: Type.String(),
      /** Whether the worker has the version on trial; otherwise it has the one in force. */
      hasIt: Type.Boolean(),
      ...figuresFields,
      /** The figures of the worker's last 10 to 20 minutes without the revision; omitted if they are not known. */
      recent: Type.Optional(figuresJson),
      /** The kind of the worker's store, if it was unreachable in the last minute. */
      storeAway: Type.Optional(Type.String()),
    }),
  ),
});
export type WorkerFacts = Type.Static<typeof workerFactsJson>;

const goneFactsJson = Type.Object({
  /** The result of `toGoneKey`. */
  key: Type.String(),
  /** Whether the worker had the version on trial, or was offered it and did not answer; otherwise it had the one in
   * force. */
  hadIt: Type.Boolean(),
  /** How long the worker has been gone, in milliseconds. */
  forMs: Type.Number({ minimum: 0 }),
  /** The worker's pool; omitted by control planes of an earlier version. */
  pool: Type.Optional(Type.Integer({ minimum: 0 })),
});
export type GoneFacts = Type.Static<typeof goneFactsJson>;

/** The domains that the revision changes but whose figures are not sent, and the one of them that counts most. */
const leftOutJson = Type.Object({ count: Type.Integer(), first: Type.String() });
export type LeftOut = Type.Static<typeof leftOutJson>;

/** The facts of the workers of one control plane. */
export const factsJson = Type.Object(
  {
    /** Identifies the record that the control plane knows. */
    record: Type.String(),
    /** Identifies the record by which its workers are served; null if it lacks the revision on trial. */
    serves: orNull(Type.String()),
    /** Whether its store no longer has the revision on trial: a directory has only the newest. */
    lacks: Type.Optional(Type.Boolean()),
    /** The rollout that was taken back here, if that could not be put on record yet. */
    takenBack: Type.Optional(
      orNull(Type.Object({ rollout: Type.String(), reason: Type.String(), by: Type.String() })),
    ),
    workers: Type.Array(workerFactsJson),
    gone: Type.Array(goneFactsJson),
    leftOut: Type.Optional(leftOutJson),
  },
  { title: 'RolloutFacts' },
);
export type RolloutFacts = Type.Static<typeof factsJson>;

export interface FactSources {
  readonly workers: ConnectedWorkers;
  readonly snapshots: Pick<SnapshotCache, 'current' | 'compare' | 'lostRules'>;
  /** Counts by instance, for workers that report and whose reports can be trusted. */
  readonly readCounted: () => ReadonlyMap<string, Counted>;
}

const maxRefusalLength = 500;

/** The part of the revision on trial that these facts depend on. */
interface OwnTrial extends Pick<Running, 'isRemovalMeant'> {
  readonly pools: Pick<Running['pools'], 'poolOf'>;
}

export type OwnFacts = Pick<RolloutFacts, 'workers' | 'gone' | 'leftOut'>;

/** `nowMs`: the time of the monotonic clock. */
export function readOwnFacts(
  { workers, snapshots, readCounted }: FactSources,
  running: OwnTrial | undefined,
  nowMs: number,
): OwnFacts {
  const counted = readCounted();
  const connected = workers.list();
  const sharedIds = findSharedIds(connected);
  const lost = snapshots.lostRules();
  const isRemovalMeant = running?.isRemovalMeant === true;
  const described = connected.map((worker): WorkerFacts => {
    const { node, instance, nacked, wantedVersion } = worker;
    const { state, expected } = toWorkerState(worker, snapshots.current(node));
    const both = snapshots.compare(node);
    const before = both?.before && wantedVersion(both.before);
    const after = both?.after && wantedVersion(both.after);
    const isRefusal = state === 'refused' && nacked?.version === expected;
    // The figures of a link count only for the worker with the same instance and node id.
    const sums = instance === undefined ? undefined : counted.get(instance);
    const isOwn = sums?.nodeId === node.id;
    return {
      key: toKey(instance, node.id, worker.address),
      id: node.id,
      instance: instance ?? null,
      name: `'${toWorkerName(worker, sharedIds.has(node.id))}'`,
      pool: running?.pools.poolOf(node) ?? 0,
      isAffected: after !== undefined && before !== after,
      state,
      ...(worker.isUnused && { unused: true }),
      refusal: isRefusal ? (nacked?.text.slice(0, maxRefusalLength) ?? '') : null,
      counted:
        both && lost && isOwn && before !== after
          ? toFacts(sums, before, after, findChange(both, lost, isRemovalMeant))
          : null,
    };
  });
  return {
    ...boundDomains(described),
    gone: workers.vanished().flatMap(({ node, instance, sent, acked, nacked, goneAtMs }) => {
      const both = snapshots.compare(node);
      const [before, after] = [both?.before?.version, both?.after?.version];
      // A worker that is killed by what it loads never accepts it.
      const isOffered = sent?.version === after && nacked?.version !== after;
      const had = isOffered ? after : acked?.version;
      if (had === undefined || before === after) return [];
      return {
        key: toGoneKey(instance, node.id),
        hadIt: had === after,
        forMs: Math.max(0, nowMs - goneAtMs),
        pool: running?.pools.poolOf(node) ?? 0,
      };
    }),
  };
}

/** Leaves the domains out that count least, of all workers alike: first those of which the fewest requests with the
 * revision went wrong, then those with the fewest requests. Each worker has one vote, however much it reports. */
function boundDomains(workers: WorkerFacts[]): Pick<RolloutFacts, 'workers' | 'leftOut'> {
  const all = workers.flatMap(({ counted }) => counted ?? []);
  const weights = new Map<string, number>();
  let count = 0;
  for (const { decisions, errors, hasIt, domains = [] } of all) {
    count += domains.length;
    for (const { name, hits, overLimit, errors: failed = 0, noMatch = 0 } of domains) {
      const wrong = hasIt ? overLimit + failed + noMatch : 0;
      const weight = (wrong + hits / 1_000) / Math.max(1, decisions + errors);
      weights.set(name, (weights.get(name) ?? 0) + weight);
    }
  }
  if (count <= maxDomains) return { workers };
  const sorted = [...weights].sort(([, a], [, b]) => b - a).map(([name]) => name);
  const included = new Set(sorted.splice(0, Math.floor(maxDomains / all.length)));
  const bound = <Of extends FiguresFacts>(figures: Of): Of => ({
    ...figures,
    domains: figures.domains?.filter(({ name }) => included.has(name)),
  });
  const bounded = workers.map(({ counted, ...worker }) => {
    const recent = counted?.recent && { recent: bound(counted.recent) };
    return { ...worker, counted: counted && { ...bound(counted), ...recent } };
  });
  return { workers: bounded, leftOut: { count: sorted.length, first: sorted[0] ?? '' } };
}

function toFacts(
  counted: Counted,
  before: string | undefined,
  after: string | undefined,
  change: NodeChange,
): WorkerFacts['counted'] {
  const { series, version, storeAway } = counted;
  const hasIt = version === after;
  const isBefore = counted.before?.version === before;
  const recent = hasIt ? isBefore && counted.before : counted;
  return {
    ...{ series, hasIt, ...change.figuresOf(counted.now) },
    ...(recent && {
      recent: subtract(change.figuresOf(recent.now), change.figuresOf(recent.older)),
    }),
    ...(storeAway !== undefined && { storeAway }),
  };
}

type Both = NonNullable<ReturnType<SnapshotCache['compare']>>;

/** Changes by the map of lost rules, which is the same object as long as the same revision is on trial. */
const changesOf = new WeakMap<ReadonlyMap<string, LostRules>, Map<string, NodeChange>>();

/** Finds the change of a node; all nodes of a group have the same one. */
function findChange(
  both: Both,
  lost: ReadonlyMap<string, LostRules>,
  isRemovalMeant: boolean,
): NodeChange {
  const known = changesOf.get(lost) ?? new Map<string, NodeChange>();
  changesOf.set(lost, known);
  const key = `${both.before?.version} ${both.after?.version} ${isRemovalMeant}`;
  const found = known.get(key) ?? new NodeChange(both, lost, isRemovalMeant);
  known.set(key, found);
  return found;
}

/** Subtracts `part`, an earlier sum of the same series, from `all`. */
export function subtract(all: FiguresFacts, part: FiguresFacts): FiguresFacts {
  const before = new Map(part.domains?.map((each) => [each.name, each]));
  const minus = (now = 0, past = 0) => now - past;
  const domains = all.domains?.map(({ name, errors, noMatch, ...now }) => {
    const past = before.get(name);
    return {
      name,
      hits: minus(now.hits, past?.hits),
      overLimit: minus(now.overLimit, past?.overLimit),
      gone: minus(now.gone, past?.gone),
      ...(errors !== undefined && { errors: minus(errors, past?.errors) }),
      ...(noMatch !== undefined && { noMatch: minus(noMatch, past?.noMatch) }),
    };
  });
  return {
    decisions: minus(all.decisions, part.decisions),
    overLimit: minus(all.overLimit, part.overLimit),
    errors: minus(all.errors, part.errors),
    noMatch: minus(all.noMatch, part.noMatch),
    gone: minus(all.gone, part.gone),
    ...(domains && { domains }),
  };
}

interface RulePosition {
  readonly domain: string;
  readonly fate: Fate;
}

interface DomainSums {
  readonly name: string;
  hits: number;
  overLimit: number;
  errors?: number;
  noMatch?: number;
  gone: number;
}

/** What the revision changes for a node. Domains are named as in metric keys. */
class NodeChange {
  /** All domains of the node, with or without the revision. */
  readonly #domains = new Set<string>();
  /** The changed domains, whose figures are compared. */
  readonly #changed = new Set<string>();
  /** The domains whose removal is intended, so that their requests match no rule. */
  readonly #removed = new Set<string>();
  readonly #lost: ReadonlyMap<string, LostRules>;
  readonly #isRemovalMeant: boolean;
  /** The position of each rule by its metric key. */
  readonly #positions = new Map<string, RulePosition>();
  readonly #figures = new WeakMap<Tallied, FiguresFacts>();

  constructor(
    { before, after }: Both,
    lost: ReadonlyMap<string, LostRules>,
    isRemovalMeant: boolean,
  ) {
    this.#lost = lost;
    this.#isRemovalMeant = isRemovalMeant;
    for (const snapshot of [before, after]) {
      for (const name of snapshot?.resources.keys() ?? []) {
        const domain = sanitizeMetricName(name);
        this.#domains.add(domain);
        const [was, is] = [before, after].map((each) => each?.resources.get(name)?.version);
        const isRemoved = isRemovalMeant && is === undefined;
        if (was !== is) (isRemoved ? this.#removed : this.#changed).add(domain);
      }
    }
  }

  /** Computes the figures once per sum: workers report every five seconds but are judged every second. */
  figuresOf(sums: Tallied): FiguresFacts {
    const figures = this.#figures.get(sums) ?? this.#toFigures(sums);
    this.#figures.set(sums, figures);
    return figures;
  }

  #toFigures({ decisions, overLimit, errors, noMatch, rules, failures }: Tallied): FiguresFacts {
    const domains = new Map<string, DomainSums>();
    const none = { hits: 0, overLimit: 0, gone: 0, ...(failures && { errors: 0, noMatch: 0 }) };
    const of = (name: string) => {
      const sums = domains.get(name) ?? { name, ...none, ...failures?.get(name) };
      domains.set(name, sums);
      return sums;
    };
    for (const name of failures?.keys() ?? []) if (this.#changed.has(name)) of(name);
    let gone = 0;
    for (const [rule, hits] of rules) {
      const { domain, fate } = this.#positionOf(rule);
      if (fate === 'gone') gone += hits.hits;
      if (fate === 'listed' || !this.#changed.has(domain)) continue;
      const sums = of(domain);
      if (fate === 'gone') sums.gone += hits.hits;
      else {
        sums.hits += hits.hits;
        sums.overLimit += hits.overLimit;
      }
    }
    let unmeant = noMatch;
    if (this.#removed.size > 0 && failures) {
      // A worker that reports no values (CONFIG_FLEET_LINK_VALUES) does not name domains without rules.
      unmeant = 0;
      for (const [name, of] of failures) if (!this.#removed.has(name)) unmeant += of.noMatch;
    }
    return { decisions, overLimit, errors, noMatch: unmeant, gone, domains: [...domains.values()] };
  }

  #positionOf(rule: string): RulePosition {
    const known = this.#positions.get(rule);
    if (known !== undefined) return known;
    // One domain can be `shop` and another one `shop.eu`.
    let end = rule.lastIndexOf('.');
    while (end > 0 && !this.#domains.has(rule.slice(0, end))) end = rule.lastIndexOf('.', end - 1);
    const domain = rule.slice(0, Math.max(0, end));
    const lost = this.#lost.get(domain);
    const isMeant = this.#isRemovalMeant || lost?.isPure === true;
    const fate = isMeant && lost ? lost.fateOf(rule) : 'kept';
    const position = { domain, fate };
    this.#positions.set(rule, position);
    return position;
  }
}

/** A worker without an instance has reconnected once a worker with its node id has. */
export function toGoneKey(instance: string | undefined, id: string): string {
  return instance ?? JSON.stringify([id]);
}

function toKey(instance: string | undefined, id: string, address: string): string {
  return instance === undefined ? JSON.stringify([id, address]) : instance;
}

export interface KnownWorker extends WorkerFacts {
  /** Whether its peer does not follow the record, so that the worker's answer is not known. */
  readonly isUnsure?: boolean;
}

/** The facts that the peers report. */
export interface PeerFacts extends Pick<RolloutFacts, 'gone' | 'leftOut'> {
  readonly workers: readonly KnownWorker[];
  /** A human-readable reason why facts are missing: a peer does not answer or does not follow the record. */
  readonly unknown: string | undefined;
  /** Whether a peer can never follow the rollout. */
  readonly lacks: boolean;
  /** When the peers were asked, on the monotonic clock: later moves of workers are not known yet. */
  readonly askedAtMs: number;
}

export const noPeers: PeerFacts = {
  workers: [],
  gone: [],
  unknown: undefined,
  lacks: false,
  askedAtMs: Number.POSITIVE_INFINITY,
};

/** Merges the answers of the peers. No worker of a peer that does not follow the record `contentId` yet counts as
 * having the revision on record, since its facts may be about another revision. Pure. */
export function toPeerFacts(
  answers: readonly PeerAnswer<RolloutFacts>[],
  contentId: string,
  askedAtMs: number,
): PeerFacts {
  const workers: KnownWorker[] = [];
  const gone: GoneFacts[] = [];
  let unknown: string | undefined;
  let lacks = false;
  let leftOut: LeftOut | undefined;
  for (const { url, value, error } of answers) {
    if (value === undefined) {
      unknown ??= `waits for peer ${url}, which does not answer (${error})`;
      continue;
    }
    lacks ||= value.record === contentId && value.lacks === true;
    if (value.serves === contentId) {
      workers.push(...value.workers);
      gone.push(...value.gone);
      leftOut = value.leftOut ?? leftOut;
      continue;
    }
    unknown ??= `waits for peer ${url} to follow this step`;
    const none = { state: 'pending', refusal: null, counted: null, isUnsure: true } as const;
    workers.push(...value.workers.map((each) => ({ ...each, ...none })));
  }
  return { workers, gone, unknown, lacks, askedAtMs, ...(leftOut && { leftOut }) };
}
