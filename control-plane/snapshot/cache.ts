// The snapshots in force, made from the revisions of a store: a whole revision or nothing, and the last
// good one while the newest is bad. control-plane/xds serves them; control-plane/rollout decides who gets
// a new revision first.

import type { Clock } from '../../shared/clock.ts';
import { errorText } from '../../shared/errors.ts';
import type { Log } from '../../shared/log.ts';
import { type Problem, problemOf } from '../../shared/rules/problem.ts';
import type { RuleSet } from '../../shared/rules/rule.ts';
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import type { RateLimitConfigMessage } from '../../shared/wire/rate-limit-config-message.ts';
import { type Revision, type RevisionInfo, toRevisionInfo, toShortId } from '../store/revision.ts';
import type { ConfigStore, StoreStatus } from '../store/store.ts';
import {
  type BuildOptions,
  type BuildOutcome,
  type BuiltSnapshots,
  buildSnapshots,
  selectGroup,
  selectSnapshot,
} from './build.ts';
import { isSameToAll, keepIdentities } from './group-identity.ts';
import { createLastGood } from './last-good.ts';
import { createRememberingParser } from './remembering-parser.ts';
import { findRemoval } from './removal-guard.ts';
import { createRevisionLog } from './revision-log.ts';
import {
  allowRemovalTrailer,
  nowTrailer,
  saysTrailer,
  supersedeTrailer,
} from './revision-trailer.ts';
import type { NodeIdentity, SnapshotProvider } from './snapshot.ts';
import type { InForceState, SnapshotState, Staleness, TrialState } from './snapshot-state.ts';

export interface SnapshotCache extends SnapshotProvider {
  /**
   * Resolves when the store's newest revision has been examined, good or bad: then it is in force, or the
   * last good one that an earlier process kept, or nothing (`current` gives undefined, so that workers
   * keep what they have). From then on the store is followed. Never rejects for problems of the store or
   * its files; `state` and the log have them.
   */
  start(): Promise<void>;
  /** The name of a node's group; undefined while nothing is in force. */
  groupOf(node: NodeIdentity): string | undefined;
  state(): SnapshotState;
  /** Serves the revision that is held back; false when that is another one. */
  approve(revisionId: string): boolean;
  /** Gives the revision on trial to these nodes; all others have what is in force. */
  offerTrial(takes: (node: NodeIdentity) => boolean): void;
  /** The revision on trial is in force for everybody. */
  endTrial(): void;
  /** Nobody has the revision on trial any more: it is refused, for this reason. */
  takeBackTrial(reason: string): void;
  /** The rules, to explain decisions; undefined while nothing is in force. */
  readonly ruleSet: RuleSet | undefined;
  /** Of the rules in force; the same array as long as they are. Empty while nothing is. */
  readonly documents: readonly RuleDocument[];
  /** Resolves when the revision in force is saved on disk. Idempotent; the store stays open. */
  close(): Promise<void>;
}

export interface SnapshotCacheDeps {
  readonly store: ConfigStore;
  readonly options: BuildOptions;
  /** Whether a revision may remove most limits without an approval. */
  readonly allowsRemoval: boolean;
  /** Given where a revision that changes something is on trial first, with nobody until `offerTrial`. */
  readonly trials:
    | {
        /** What was in force before this revision, where its trial was begun and has not come through. */
        findBase(revisionId: string): Promise<Revision | undefined>;
      }
    | undefined;
  readonly encode: (message: RateLimitConfigMessage) => Buffer;
  /** Directory of this control plane alone, for the last good revision. Created when missing. */
  readonly stateDirectory: string;
  readonly log: Log;
  readonly clock: Clock;
}

interface InForce {
  readonly revision: RevisionInfo;
  readonly sinceMs: number;
  readonly built: BuiltSnapshots;
}

interface Trial extends InForce {
  /** As a whole, to be kept when it has come through. */
  readonly whole: Revision;
  readonly takes: (node: NodeIdentity) => boolean;
}

/** A valid one that removes too much is refused like one with errors. */
type TakenOutcome =
  | (BuildOutcome & { readonly ok: true })
  | (BuildOutcome & { readonly ok: false; readonly isHeldBack?: boolean });

type Kept =
  | { readonly revision: Revision; readonly outcome: BuildOutcome }
  | { readonly trouble: string };

interface Newest {
  readonly revision: RevisionInfo;
  readonly problems: readonly Problem[];
  /**
   * Wall time since which the newest revision, whichever it was, has been invalid; undefined when it is
   * valid.
   */
  readonly invalidSinceMs: number | undefined;
  /** The revision, when it is valid but held back. */
  readonly heldBack: Revision | undefined;
  /** The revision, when it is good and waits for the end of a trial before it. */
  readonly waiting: Revision | undefined;
}

export function createSnapshotCache(deps: SnapshotCacheDeps): SnapshotCache {
  const { store, options, encode, stateDirectory, log, clock } = deps;
  const lastGood = createLastGood({ stateDirectory, store: store.description, log });
  const say = createRevisionLog(store.description, log);
  const parse = createRememberingParser();
  const listeners = new Set<() => void>();
  let approvedId: string | undefined;
  let inForce: InForce | undefined;
  let trial: Trial | undefined;
  /** Served by an earlier process; used until this one serves something. */
  let servedBefore: { readonly id: string; readonly ruleSet: RuleSet } | undefined;
  let newest: Newest | undefined;
  let stopWatching = () => {};
  let accepted = 0;
  let refused = 0;
  let takenBack = 0;

  function apply(revision: Revision): void {
    if (revision.id === newest?.revision.id) return;
    take(revision, heldBackUnlessAllowed(revision, build(revision)));
  }

  function heldBackUnlessAllowed(revision: Revision, outcome: BuildOutcome): TakenOutcome {
    const before = inForce
      ? { id: inForce.revision.id, ruleSet: inForce.built.ruleSet }
      : servedBefore;
    if (!outcome.ok || before === undefined || before.id === revision.id) return outcome;
    if (deps.allowsRemoval || revision.id === approvedId) return outcome;
    if (saysTrailer(revision, allowRemovalTrailer)) return outcome;
    const removal = findRemoval(before.ruleSet, outcome.built.ruleSet);
    if (removal === undefined) return outcome;
    return { ok: false, problems: [...outcome.warnings, removal], isHeldBack: true };
  }

  function take(revision: Revision, outcome: TakenOutcome): void {
    const info = toRevisionInfo(revision);
    const problems = outcome.ok ? outcome.warnings : outcome.problems;
    const wasInvalid = newest?.invalidSinceMs !== undefined;
    newest = {
      revision: info,
      problems,
      invalidSinceMs: outcome.ok ? undefined : (newest?.invalidSinceMs ?? clock.wallMs()),
      heldBack: outcome.ok || !outcome.isHeldBack ? undefined : revision,
      waiting: undefined,
    };
    if (!outcome.ok) {
      refused++;
      say.refused(info, problems, inForce?.revision.id);
      return;
    }
    say.warnings(outcome.warnings);
    if (needsTrial(revision, outcome.built)) {
      if (trial === undefined || saysTrailer(revision, supersedeTrailer)) {
        beginTrial(revision, outcome.built);
      } else {
        newest = { ...newest, waiting: revision };
        say.waits(info, trial.revision);
      }
      return;
    }
    trial = undefined;
    accepted++;
    const isFirst = inForce === undefined;
    const isNews = serve(info, outcome.built);
    lastGood.keep(revision);
    // Seen at the default level when it answers a question: what is served, and whether a repair worked.
    say.inForce(info, outcome.built, isNews, isFirst || wasInvalid);
  }

  /** What changes nothing for anybody has nothing to try. */
  function needsTrial(revision: Revision, built: BuiltSnapshots): boolean {
    if (deps.trials === undefined || inForce === undefined || saysTrailer(revision, nowTrailer))
      return false;
    return !isSameToAll(inForce.built.groups, built.groups);
  }

  function beginTrial(whole: Revision, built: BuiltSnapshots): void {
    const revision = toRevisionInfo(whole);
    const groups = inForce ? keepIdentities(built.groups, inForce.built.groups) : built.groups;
    trial = {
      whole,
      revision,
      sinceMs: clock.wallMs(),
      built: { ...built, groups },
      takes: () => false,
    };
    tellAll();
  }

  /** What waited for the end of a trial is next. */
  function takeWaiting(): void {
    const waiting = newest?.waiting;
    if (waiting !== undefined) take(waiting, heldBackUnlessAllowed(waiting, build(waiting)));
  }

  function tellAll(): void {
    for (const listener of [...listeners]) listener();
  }

  function build(revision: Revision): BuildOutcome {
    return buildSnapshots(revision, options, { encode, parse: parse.next() });
  }

  function servedTo(node: NodeIdentity): InForce | undefined {
    return trial?.takes(node) ? trial : inForce;
  }

  /** True when any node gets something else. */
  function serve(revision: RevisionInfo, built: BuiltSnapshots): boolean {
    const before = inForce;
    const groups = before ? keepIdentities(built.groups, before.built.groups) : built.groups;
    inForce = { revision, sinceMs: clock.wallMs(), built: { ...built, groups } };
    const isNews = before === undefined || !isSameToAll(before.built.groups, groups);
    if (isNews) tellAll();
    return isNews;
  }

  /** The revision that an earlier process kept; undefined without one, `trouble` when it cannot be read. */
  async function readKept(): Promise<Kept | undefined> {
    try {
      const revision = await lastGood.read();
      return revision && { revision, outcome: build(revision) };
    } catch (error) {
      return { trouble: `The last good revision cannot be restored: ${errorText(error)}` };
    }
  }

  /** For a process without a kept revision: to begin with one on trial would give it to everybody. */
  async function readBase(newest: Revision | undefined): Promise<Kept | undefined> {
    try {
      const revision = newest && (await deps.trials?.findBase(newest.id));
      return revision && { revision, outcome: build(revision) };
    } catch (error) {
      return { trouble: `The revision before the rollout cannot be read: ${errorText(error)}` };
    }
  }

  /** `why`: the reason for serving an earlier revision. */
  function restore(kept: Kept | undefined, why: string): void {
    if (kept === undefined) {
      log.error(`${why}, and no earlier revision was kept: workers get nothing until there is one`);
      return;
    }
    if ('trouble' in kept) {
      log.error(kept.trouble);
      return;
    }
    const { revision, outcome } = kept;
    const info = toRevisionInfo(revision);
    if (!outcome.ok) {
      say.refused(info, outcome.problems, undefined);
      return;
    }
    serve(info, outcome.built);
    say.restored(info, outcome.built, why, clock.wallMs());
  }

  async function readStore(): Promise<{ revision: Revision | undefined; trouble: string }> {
    try {
      const revision = await store.read();
      return { revision, trouble: `Revision ${toShortId(revision.id)} is not served` };
    } catch (error) {
      const trouble = `The store ${store.description} cannot be read (${errorText(error)})`;
      return { revision: undefined, trouble };
    }
  }

  function toStaleness(status: StoreStatus): Staleness | undefined {
    if (newest?.invalidSinceMs !== undefined) {
      return { reason: 'newest_invalid', sinceMs: newest.invalidSinceMs };
    }
    return status.failingSinceMs === undefined
      ? undefined
      : { reason: 'store_unreachable', sinceMs: status.failingSinceMs };
  }

  return {
    async start() {
      const found = await readStore();
      const kept = (await readKept()) ?? (await readBase(found.revision));
      if (kept !== undefined && 'outcome' in kept && kept.outcome.ok) {
        servedBefore = { id: kept.revision.id, ruleSet: kept.outcome.built.ruleSet };
      }
      // A revision that has not come through its trial goes on with it: workers keep what they have.
      if (deps.trials && found.revision !== undefined && isOther(kept, found.revision)) {
        restore(kept, `Revision ${toShortId(found.revision.id)} was not in force yet`);
      }
      if (found.revision !== undefined) apply(found.revision);
      if (inForce === undefined) restore(kept, found.trouble);
      servedBefore = undefined;
      stopWatching = store.watch(apply);
    },
    current: (node) => {
      const served = servedTo(node);
      return served && selectSnapshot(served.built.groups, node);
    },
    groupOf: (node) => {
      const served = servedTo(node);
      return served && selectGroup(served.built.groups, node)?.group.name;
    },
    onChange(listener) {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
      };
    },
    get ruleSet() {
      return inForce?.built.ruleSet;
    },
    get documents() {
      return inForce?.built.documents ?? [];
    },
    state() {
      const status = store.status();
      return {
        store: status,
        newest: newest && {
          revision: newest.revision,
          valid: newest.invalidSinceMs === undefined,
          isHeldBack: newest.heldBack !== undefined,
          isWaiting: newest.waiting !== undefined,
          problems: newest.problems,
        },
        inForce: inForce && toState(inForce),
        trial: trial && toTrialState(trial),
        stale: toStaleness(status),
        counts: { accepted, refused, takenBack },
      };
    },
    approve(revisionId) {
      const heldBack = newest?.heldBack;
      if (heldBack?.id !== revisionId) return false;
      approvedId = revisionId;
      take(heldBack, build(heldBack));
      return true;
    },
    offerTrial(takes) {
      if (trial === undefined) return;
      trial = { ...trial, takes };
      tellAll();
    },
    endTrial() {
      if (trial === undefined) return;
      const { whole, revision, built } = trial;
      trial = undefined;
      accepted++;
      serve(revision, built);
      lastGood.keep(whole);
      say.inForce(revision, built, true, true);
      takeWaiting();
    },
    takeBackTrial(reason) {
      if (trial === undefined) return;
      const { revision } = trial;
      trial = undefined;
      takenBack++;
      tellAll();
      const problem = problemOf('error', 'taken-back', '(all files)', `taken back: ${reason}`);
      say.refused(revision, [problem], inForce?.revision.id);
      if (newest?.revision.id === revision.id) {
        const problems = [...newest.problems, problem];
        newest = { ...newest, problems, invalidSinceMs: clock.wallMs() };
      }
      takeWaiting();
    },
    async close() {
      stopWatching();
      listeners.clear();
      await lastGood.settled();
    },
  };
}

function toTrialState({ revision, sinceMs, built }: Trial): TrialState {
  return { revision, sinceMs, groups: built.groups.map(({ group }) => group) };
}

function isOther(kept: Kept | undefined, found: Revision): boolean {
  return kept !== undefined && 'outcome' in kept && kept.revision.id !== found.id;
}

function toState({ revision, sinceMs, built }: InForce): InForceState {
  return {
    revision,
    sinceMs,
    domains: built.domains,
    limitCount: built.ruleSet.limitCount,
    groups: built.groups.map(({ group, domains, ours, others }) => ({
      name: group.name,
      domains,
      oursVersion: ours.version,
      othersVersion: others.version,
    })),
    leftOut: [...built.leftOut].map(([domain, fields]) => ({ domain, fields })),
  };
}
