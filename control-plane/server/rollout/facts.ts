// The facts that control planes tell each other of their own workers in a rollout.
import Type from 'typebox';
import { sanitizeMetricName } from '../../../shared/rules/lookup/metric-key.ts';
import type { Counted, Tallied } from '../fleet/tally.ts';
import { findSharedIds, toWorkerName } from '../fleet/worker-name.ts';
import { orNull } from '../or-null.ts';
import type { PeerAnswer } from '../record/peers/peers.ts';
import type { SnapshotCache } from '../snapshot/cache.ts';
import type { Fate, LostRules } from '../snapshot/lost-rules.ts';
import type { ConnectedWorkers } from '../xds/workers.ts';
import { toWorkerState } from '../xds/workers.ts';
import type { Running } from './following.ts';

/** Sums of a time. */
const figuresFields = {
  decisions: Type.Number(),
  overLimit: Type.Number(),
  errors: Type.Number(),
  /** Left out by control planes of an earlier version. */
  noMatch: Type.Optional(Type.Number()),
  /** Hits of rules that are intended to go. */
  gone: Type.Optional(Type.Number()),
  /** Of some of the domains that the revision changes. */
  domains: Type.Optional(
    Type.Array(
      Type.Object({
        name: Type.String(),
        hits: Type.Number(),
        overLimit: Type.Number(),
        /** Left out where the worker does not report them. */
        errors: Type.Optional(Type.Number()),
        noMatch: Type.Optional(Type.Number()),
        gone: Type.Optional(Type.Number()),
      }),
      { maxItems: 20 },
    ),
  ),
};
const figuresJson = Type.Object(figuresFields);
export type FiguresFacts = Type.Static<typeof figuresJson>;

const workerFactsJson = Type.Object({
  /** Of one start of a worker; of one connection where that is not known. */
  key: Type.String(),
  id: Type.String(),
  instance: orNull(Type.String()),
  /** The worker's name for people. */
  name: Type.String(),
  /** That it belongs to, in the rollout of the revision on trial. */
  pool: Type.Integer({ minimum: 0 }),
  /** Whether the revision on trial changes anything for it. */
  isAffected: Type.Boolean(),
  state: Type.Union([Type.Literal('in_force'), Type.Literal('pending'), Type.Literal('refused')]),
  /** Whether it has acknowledged the version that it is given, and decides by another one: it is pending. */
  unused: Type.Optional(Type.Boolean()),
  /** Why it refuses the version that it is given; null when it does not. */
  refusal: orNull(Type.String()),
  /** Sums under the version that it has; null when it does not report, or cannot be believed. */
  counted: orNull(
    Type.Object({
      /** Sums of different series have nothing in common. */
      series: Type.String(),
      /** Whether that is the version on trial, or else the one in force. */
      hasIt: Type.Boolean(),
      ...figuresFields,
      /** Of its last 10 to 20 minutes without the revision; left out where that is not known. */
      recent: Type.Optional(figuresJson),
      /** The kind of its store, which it could not reach in the last minute. */
      storeAway: Type.Optional(Type.String()),
    }),
  ),
});
export type WorkerFacts = Type.Static<typeof workerFactsJson>;

const goneFactsJson = Type.Object({
  /** `toGoneKey`. */
  key: Type.String(),
  /** Whether it had the version on trial, or was offered it and gave no answer; or else had the one in force. */
  hadIt: Type.Boolean(),
  /** Since when, in milliseconds. */
  forMs: Type.Number({ minimum: 0 }),
  /** That it belongs to; left out by control planes of an earlier version. */
  pool: Type.Optional(Type.Integer({ minimum: 0 })),
});
export type GoneFacts = Type.Static<typeof goneFactsJson>;

/** The facts of the workers of one control plane. */
export const factsJson = Type.Object(
  {
    /** Identifies the record that it knows. */
    record: Type.String(),
    /** Identifies the record that its workers are served by; null where it lacks the revision on trial. */
    serves: orNull(Type.String()),
    /** Whether its store does not have the revision on trial any more: a directory has only the newest. */
    lacks: Type.Optional(Type.Boolean()),
    /** The rollout that was taken back here, where that could not be put on record yet. */
    takenBack: Type.Optional(
      orNull(Type.Object({ rollout: Type.String(), reason: Type.String(), by: Type.String() })),
    ),
    workers: Type.Array(workerFactsJson),
    gone: Type.Array(goneFactsJson),
  },
  { title: 'RolloutFacts' },
);
export type RolloutFacts = Type.Static<typeof factsJson>;

export interface FactSources {
  readonly workers: ConnectedWorkers;
  readonly snapshots: Pick<SnapshotCache, 'current' | 'compare' | 'lostRules'>;
  /** By instance, of the workers that report and can be believed. */
  readonly readCounted: () => ReadonlyMap<string, Counted>;
}

const maxRefusalLength = 500;
/** Each worker's figures of them are told each second. */
const maxDomains = 20;

/** The revision on trial, as far as these facts depend on it. */
interface OwnTrial extends Pick<Running, 'isRemovalMeant'> {
  readonly pools: Pick<Running['pools'], 'poolOf'>;
}

/** `nowMs`: of the monotonic clock. */
export function readOwnFacts(
  { workers, snapshots, readCounted }: FactSources,
  running: OwnTrial | undefined,
  nowMs: number,
): Pick<RolloutFacts, 'workers' | 'gone'> {
  const counted = readCounted();
  const connected = workers.list();
  const sharedIds = findSharedIds(connected);
  const lost = snapshots.lostRules();
  const isRemovalMeant = running?.isRemovalMeant === true;
  return {
    workers: connected.map((worker) => {
      const { node, instance, nacked, wantedVersion } = worker;
      const { state, expected } = toWorkerState(worker, snapshots.current(node));
      const both = snapshots.compare(node);
      const before = both?.before && wantedVersion(both.before);
      const after = both?.after && wantedVersion(both.after);
      const isRefusal = state === 'refused' && nacked?.version === expected;
      // Figures of a link count for the worker with the same instance and node id alone.
      const sums = instance === undefined ? undefined : counted.get(instance);
      const isKnown = sums?.nodeId === node.id && [before, after].includes(sums.version);
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
          both && lost && sums && isKnown && before !== after
            ? toFacts(sums, before, after, findChange(both, lost, isRemovalMeant))
            : null,
      };
    }),
    gone: workers.vanished().flatMap(({ node, instance, sent, acked, nacked, goneAtMs }) => {
      const both = snapshots.compare(node);
      const [before, after] = [both?.before?.version, both?.after?.version];
      // One that is killed by what it loads never accepts it.
      const isOffered = sent?.version === after && nacked?.version !== after;
      const had = isOffered ? after : acked?.version;
      if (had === undefined || (had !== before && had !== after) || before === after) return [];
      return {
        key: toGoneKey(instance, node.id),
        hadIt: had === after,
        forMs: Math.max(0, nowMs - goneAtMs),
        pool: running?.pools.poolOf(node) ?? 0,
      };
    }),
  };
}

function toFacts(
  counted: Counted,
  before: string | undefined,
  after: string | undefined,
  change: Change,
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

/** By what is lost, which is one object as long as the same revision is on trial. */
const changesOf = new WeakMap<ReadonlyMap<string, LostRules>, Map<string, Change>>();

/** All nodes of a group have the same change. */
function findChange(
  both: Both,
  lost: ReadonlyMap<string, LostRules>,
  isRemovalMeant: boolean,
): Change {
  const known = changesOf.get(lost) ?? new Map<string, Change>();
  changesOf.set(lost, known);
  const key = `${both.before?.version} ${both.after?.version} ${isRemovalMeant}`;
  const found = known.get(key) ?? new Change(both, lost, isRemovalMeant);
  known.set(key, found);
  return found;
}

/** What `all` has more than `part`, which is an earlier sum of the same series. */
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

/** `index`: of its domain among those that change; -1 for those of others. */
interface RulePlace {
  readonly index: number;
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

/** What a node gets otherwise with the revision. Domains are named as in metric keys. */
class Change {
  /** All domains of the node, with the revision or without it. */
  readonly #domains = new Set<string>();
  /** The first of those whose figures are compared. */
  readonly #changed: readonly string[];
  /** Those whose removal is intended, so that their requests find no rule. */
  readonly #removed = new Set<string>();
  readonly #lost: ReadonlyMap<string, LostRules>;
  readonly #isRemovalMeant: boolean;
  /** By metric key. */
  readonly #places = new Map<string, RulePlace>();
  readonly #figures = new WeakMap<Tallied, FiguresFacts>();

  constructor(
    { before, after }: Both,
    lost: ReadonlyMap<string, LostRules>,
    isRemovalMeant: boolean,
  ) {
    this.#lost = lost;
    this.#isRemovalMeant = isRemovalMeant;
    const changed = new Set<string>();
    for (const snapshot of [before, after]) {
      for (const name of snapshot?.resources.keys() ?? []) {
        const domain = sanitizeMetricName(name);
        this.#domains.add(domain);
        const [was, is] = [before, after].map((each) => each?.resources.get(name)?.version);
        const isRemoved = isRemovalMeant && is === undefined;
        if (was !== is) (isRemoved ? this.#removed : changed).add(domain);
      }
    }
    this.#changed = [...changed].slice(0, maxDomains);
  }

  /** Made once of each sum: workers report every five seconds, and are judged each second. */
  figuresOf(sums: Tallied): FiguresFacts {
    const figures = this.#figures.get(sums) ?? this.#toFigures(sums);
    this.#figures.set(sums, figures);
    return figures;
  }

  #toFigures({ decisions, overLimit, errors, noMatch, rules, failures }: Tallied): FiguresFacts {
    const none = failures && { errors: 0, noMatch: 0 };
    const domains = this.#changed.map(
      (name): DomainSums => ({
        name,
        hits: 0,
        overLimit: 0,
        gone: 0,
        ...none,
        ...failures?.get(name),
      }),
    );
    let gone = 0;
    for (const [rule, hits] of rules) {
      const { index, fate } = this.#placeOf(rule);
      const sums = domains[index];
      if (fate === 'gone') {
        gone += hits.hits;
        if (sums !== undefined) sums.gone += hits.hits;
      } else if (fate === 'kept' && sums !== undefined) {
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
    return { decisions, overLimit, errors, noMatch: unmeant, gone, domains };
  }

  #placeOf(rule: string): RulePlace {
    const known = this.#places.get(rule);
    if (known !== undefined) return known;
    // There may be domains `shop` and `shop.eu`.
    let end = rule.lastIndexOf('.');
    while (end > 0 && !this.#domains.has(rule.slice(0, end))) end = rule.lastIndexOf('.', end - 1);
    const domain = rule.slice(0, Math.max(0, end));
    const lost = this.#lost.get(domain);
    const isMeant = this.#isRemovalMeant || lost?.isPure === true;
    const fate = isMeant && lost ? lost.fateOf(rule) : 'kept';
    const place = { index: this.#changed.indexOf(domain), fate };
    this.#places.set(rule, place);
    return place;
  }
}

/** A worker without an instance has come back when one with its node id has. */
export function toGoneKey(instance: string | undefined, id: string): string {
  return instance ?? JSON.stringify([id]);
}

function toKey(instance: string | undefined, id: string, address: string): string {
  return instance === undefined ? JSON.stringify([id, address]) : instance;
}

export interface KnownWorker extends WorkerFacts {
  /** Whether its peer does not follow: what it has answered is not known. */
  readonly isUnsure?: boolean;
}

/** The facts that the peers tell. */
export interface PeerFacts extends Pick<RolloutFacts, 'gone'> {
  readonly workers: readonly KnownWorker[];
  /** Why not all is known, for people: a peer does not answer, or does not follow. */
  readonly unknown: string | undefined;
  /** Whether one of them can never follow the rollout. */
  readonly lacks: boolean;
  /** When they were asked, on the monotonic clock: where a worker went later is not known yet. */
  readonly askedAtMs: number;
}

export const noPeers: PeerFacts = {
  workers: [],
  gone: [],
  unknown: undefined,
  lacks: false,
  askedAtMs: Number.POSITIVE_INFINITY,
};

/** Of a peer that does not follow the record `contentId` yet nobody has what the record says, and what is said of its
 * workers may be about another revision. Pure. */
export function toPeerFacts(
  answers: readonly PeerAnswer<RolloutFacts>[],
  contentId: string,
  askedAtMs: number,
): PeerFacts {
  const workers: KnownWorker[] = [];
  const gone: GoneFacts[] = [];
  let unknown: string | undefined;
  let lacks = false;
  for (const { url, value, error } of answers) {
    if (value === undefined) {
      unknown ??= `waits for peer ${url}, which gives no answer (${error})`;
      continue;
    }
    lacks ||= value.record === contentId && value.lacks === true;
    if (value.serves === contentId) {
      workers.push(...value.workers);
      gone.push(...value.gone);
      continue;
    }
    unknown ??= `waits for peer ${url} to follow this step`;
    const none = { state: 'pending', refusal: null, counted: null, isUnsure: true } as const;
    workers.push(...value.workers.map((each) => ({ ...each, ...none })));
  }
  return { workers, gone, unknown, lacks, askedAtMs };
}
