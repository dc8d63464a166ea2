// The snapshots in force, made from the revisions of a store: a whole revision or nothing, and the last
// good one while the newest is bad. Decides what becomes of a new revision; served.ts has what every node gets,
// control-plane/rollout decides who gets a new revision first.

import type { Clock } from '../../shared/clock.ts';
import { AppError, errorText } from '../../shared/errors.ts';
import type { Log } from '../../shared/log.ts';
import type { Problem } from '../../shared/rules/problem/problem.ts';
import type { RuleSet } from '../../shared/rules/rule.ts';
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import type { RateLimitConfigMessage } from '../../shared/wire/rate-limit-config-message.ts';
import type { GovernedRules } from '../policy/policy-guard.ts';
import {
  nowTrailer,
  type Revision,
  saysTrailer,
  stepsTrailer,
  supersedeTrailer,
  toRevisionInfo,
  toShortId,
} from '../store/revision.ts';
import type { ConfigStore } from '../store/store.ts';
import { Admission, type RevisionMemory, type RulesBefore, toTakenBack } from './admission.ts';
import {
  type BuildOptions,
  type BuildOutcome,
  type BuiltSnapshots,
  buildSnapshots,
  createRememberingParser,
} from './build.ts';
import { createLastGood, type Kept, readKept } from './last-good.ts';
import { createRevisionLog } from './revision-log.ts';
import { createServed, type InForce, type Served, type Serving } from './served.ts';
import type { NodeIdentity } from './snapshot.ts';
import { type NewestRevision, type SnapshotState, toSnapshotState } from './snapshot-state.ts';

export interface SnapshotCache
  extends Pick<Served, 'current' | 'groupOf' | 'compare' | 'onChange'> {
  /**
   * Resolves when the store's newest revision has been examined, good or bad: then it is in force, or on trial,
   * or the revision before it is in force, or none is (`current` gives undefined, so that workers keep what they
   * have). From then on the store is followed. Never rejects for problems of the store or its files; `state` and
   * the log have them.
   */
  start(): Promise<void>;
  state(): SnapshotState;
  /** Each time when a revision of the store has become the newest one, also where no node gets anything else.
   * Returns the end of that. */
  onNewest(listener: () => void): () => void;
  /** Looks at the newest revision again where something else is known of it than before: it was approved or taken back,
   * it is held back, or the memory has been read. */
  reconsider(): void;
  /** Another control plane has this revision on trial: so has this one from now on, with nobody until `offerTrial`,
   * unless it is invalid here. */
  followTrial(revision: Revision): void;
  /** All other control planes have this revision in force: so has this one from now on. */
  followInForce(revision: Revision): void;
  /** Gives the revision on trial to these nodes; all others have what is in force. */
  offerTrial(isOffered: (node: NodeIdentity) => boolean): void;
  /** The revision on trial is in force for everybody. */
  endTrial(): void;
  /** Nobody has the revision on trial any more: it is refused, for this reason. */
  takeBackTrial(reason: string): void;
  /** The rules, to explain decisions; undefined while nothing is in force. */
  readonly ruleSet: RuleSet | undefined;
  /** The documents of the rules in force; the same array as long as they are. Empty while there are none. */
  readonly documents: readonly RuleDocument[];
  /** The rules in force with their policy; undefined while nothing is. */
  readonly governed: GovernedRules | undefined;
  /** Whether everybody had this content before, as far as that is remembered. */
  wasInForce(content: string): boolean;
  /** Resolves when the revision in force is saved on disk. Idempotent; the store stays open. */
  close(): Promise<void>;
}

export interface SnapshotCacheDeps {
  readonly store: ConfigStore;
  readonly options: BuildOptions;
  /** Whether a revision may remove most limits without an approval. */
  readonly allowsRemoval: boolean;
  /** Whether a revision that changes something is on trial first, with nobody until `offerTrial`. */
  readonly rollsOut: boolean;
  readonly memory: RevisionMemory;
  readonly encode: (message: RateLimitConfigMessage) => Buffer;
  /** Directory of this control plane alone, for the last good revision. Created when missing. */
  readonly stateDirectory: string;
  readonly log: Log;
  readonly clock: Clock;
}

const firstReadMs = 5_000;
/** Silence of more than two seconds looks like a program that hangs. */
const firstReadSaidMs = 2_000;

export function createSnapshotCache(deps: SnapshotCacheDeps): SnapshotCache {
  const { store, options, memory, rollsOut, encode, stateDirectory, log, clock } = deps;
  const lastGood = createLastGood({ stateDirectory, store: store.description, log });
  const say = createRevisionLog(store.description, log);
  const nextParse = createRememberingParser();
  const served = createServed();
  const admission = new Admission(memory, deps.allowsRemoval);
  /** Served by an earlier process; used until this one serves something. */
  let servedBefore: RulesBefore | undefined;
  let newest: NewestRevision | undefined;
  /** The newest one, while it is not known what was said of it. */
  let unexamined: Revision | undefined;
  const newestListeners = new Set<() => void>();
  let withdrawn: SnapshotState['withdrawn'];
  let stopWatching = () => {};
  const counts = { accepted: 0, refused: 0, takenBack: 0 };

  function apply(revision: Revision): void {
    unexamined = rollsOut && !memory.isKnown ? revision : undefined;
    if (unexamined !== undefined || revision.id === newest?.whole.id) return;
    take(revision);
    for (const listener of [...newestListeners]) listener();
  }

  /** Decides what becomes of the newest revision, when it arrives and when something else is known of it. */
  function take(whole: Revision): void {
    const outcome = build(whole);
    const content = outcome.ok ? outcome.built.content : undefined;
    const before = newest;
    const now: NewestRevision = {
      ...admission.toCandidate(whole, content, before),
      problems: outcome.ok ? outcome.warnings : outcome.problems,
      invalidSinceMs: undefined,
      isHeldBack: false,
      isWaiting: false,
    };
    newest = now;
    if (!outcome.ok) {
      refuse(now, outcome.problems, before);
      return;
    }
    const { built } = outcome;
    const goesBack = isBack(whole, built);
    const judgement = admission.judge(now, built, findBefore());
    const warnings = [...outcome.warnings, ...judgement.warnings];
    if (judgement.refused.length > 0) {
      // Its author wants the revision on trial no more all the same.
      if (goesBack) noteWithdrawn(whole);
      if (goesBack || served.now.trial?.revision.id === whole.id) {
        served.change({ trial: undefined });
      }
      const { isHeldBack } = judgement;
      refuse({ ...now, isHeldBack }, [...warnings, ...judgement.refused], before);
      return;
    }
    newest = { ...now, problems: warnings };
    say.warnings(warnings);
    if (judgement.exception !== undefined) say.excused(whole, judgement.exception);
    if (goesBack || !needsTrial(whole, built)) {
      noteWithdrawn(whole);
      const isAnswer = before?.invalidSinceMs !== undefined || served.now.inForce === undefined;
      serve(whole, built, { isAtOnce: true, trial: undefined }, isAnswer);
    } else tryOut({ ...now, problems: warnings }, built);
  }

  /** Nobody is to have the revision on trial any more. */
  function noteWithdrawn(by: Revision): void {
    const { trial } = served.now;
    if (trial === undefined) return;
    withdrawn = { revision: trial.revision.id, by: by.id };
    say.withdrawn(trial.revision, by);
  }

  function refuse(
    now: NewestRevision,
    problems: readonly Problem[],
    before: NewestRevision | undefined,
  ): void {
    newest = { ...now, problems, invalidSinceMs: before?.invalidSinceMs ?? clock.wallMs() };
    counts.refused++;
    say.refused(now.whole, problems, served.now.inForce?.revision.id);
  }

  /** To what everybody had before: that is an undo, which needs no steps. */
  function isBack(whole: Revision, { content }: BuiltSnapshots): boolean {
    const isTried = content === served.now.trial?.built.content || saysTrailer(whole, stepsTrailer);
    return !isTried && memory.wasInForce(content);
  }

  function findBefore(): RulesBefore | undefined {
    const { inForce } = served.now;
    return inForce ? { id: inForce.revision.id, built: inForce.built } : servedBefore;
  }

  /** A revision that changes nothing for anybody has nothing to try. */
  function needsTrial(whole: Revision, { content }: BuiltSnapshots): boolean {
    if (!rollsOut || saysTrailer(whole, nowTrailer)) return false;
    const before = served.now.inForce?.built.content ?? memory.inForce?.content;
    return before !== undefined && before !== content;
  }

  function tryOut(now: NewestRevision, built: BuiltSnapshots): void {
    const { whole } = now;
    const { trial } = served.now;
    if (trial?.whole.id === whole.id) return;
    if (trial === undefined || saysTrailer(whole, supersedeTrailer)) {
      beginTrial(whole, built);
      return;
    }
    newest = { ...now, isWaiting: true };
    say.waits(whole, trial.revision);
  }

  function beginTrial(whole: Revision, built: BuiltSnapshots): void {
    // One that comes while the end of another one is not on record yet does not bring that back.
    if (withdrawn?.revision === whole.id) withdrawn = undefined;
    served.change({
      trial: {
        whole,
        revision: toRevisionInfo(whole),
        sinceMs: clock.wallMs(),
        built,
        saidBefore:
          newest?.whole.id === whole.id
            ? newest.saidBefore
            : memory.verdictOf(whole.id, built.content),
        isOffered: () => false,
      },
    });
  }

  /** `trial`: what only some nodes get from now on. */
  function serve(
    whole: Revision,
    built: BuiltSnapshots,
    { isAtOnce, trial }: Pick<InForce, 'isAtOnce'> & Pick<Serving, 'trial'>,
    // Seen at the default level when it answers a question: what is served, and whether a repair worked.
    isAnswer = true,
  ): void {
    const before = served.now;
    counts.accepted++;
    const revision = toRevisionInfo(whole);
    served.change({ inForce: { revision, sinceMs: clock.wallMs(), built, isAtOnce }, trial });
    admission.noteServed(built.content);
    lastGood.keep(whole);
    // It is kept in the store as well: control planes without a state read it there.
    if (rollsOut) void store.keepInForce?.(whole);
    const isNews = before.trial !== undefined || before.inForce?.built.content !== built.content;
    say.inForce(revision, built, isNews, isAnswer);
  }

  /** The other control planes have judged otherwise than this one. */
  function letThrough({ id }: Revision, problems: readonly Problem[]): void {
    if (newest?.whole.id !== id) return;
    newest = { ...newest, problems, invalidSinceMs: undefined, isHeldBack: false };
  }

  /** Takes the revision that waited for the end of a trial. */
  function takeWaiting(): void {
    if (newest?.isWaiting) take(newest.whole);
  }

  function build(revision: Revision): BuildOutcome {
    const nowMs = clock.wallMs();
    return buildSnapshots(revision, options, { encode, nowMs, parse: nextParse() });
  }

  /** `why`: the reason for serving an earlier revision. */
  function restore(kept: Kept | undefined, why: string): void {
    if (kept === undefined) {
      log.error(`${why}, and no earlier revision was kept: workers get nothing until there is one`);
      return;
    }
    if (kept.trouble !== undefined) {
      log.error(kept.trouble);
      return;
    }
    const { revision, outcome } = kept;
    const info = toRevisionInfo(revision);
    if (!outcome.ok) {
      say.refused(info, outcome.problems, undefined);
      return;
    }
    served.change({
      inForce: {
        revision: info,
        sinceMs: clock.wallMs(),
        built: outcome.built,
        isAtOnce: false,
      },
    });
    say.restored(info, outcome.built, why, clock.wallMs());
  }

  /** A hanging store must not keep the last good revision from the workers: reading goes on, and its result arrives
   * like any other change. */
  async function readStore(): Promise<{ revision: Revision | undefined; trouble: string }> {
    const late = Promise.withResolvers<never>();
    const cancelSaying = clock.after(firstReadSaidMs, () => {
      log.info(`Reading ${store.description} takes its time; waiting for it`);
    });
    const cancel = clock.after(firstReadMs, () => {
      const seconds = firstReadMs / 1000;
      late.reject(new AppError('store', `no answer within ${seconds}s, it is still asked`));
    });
    try {
      const revision = await Promise.race([store.read(), late.promise]);
      return { revision, trouble: `Revision ${toShortId(revision.id)} is not served` };
    } catch (error) {
      const trouble = `The store ${store.description} cannot be read (${errorText(error)})`;
      return { revision: undefined, trouble };
    } finally {
      cancelSaying();
      cancel();
    }
  }

  return {
    async start() {
      const found = await readStore();
      const kept = await readKept({ lastGood, store, memory, build });
      if (kept?.outcome?.ok) {
        servedBefore = { id: kept.revision.id, built: kept.outcome.built };
      }
      // A revision that has not come through its trial goes on with it: workers keep what they have.
      const { revision } = found;
      if (rollsOut && revision && kept?.revision && kept.revision.id !== revision.id) {
        restore(kept, `Revision ${toShortId(revision.id)} was not in force yet`);
      }
      if (revision !== undefined) apply(revision);
      const { inForce, trial } = served.now;
      if (inForce === undefined && trial === undefined) restore(kept, found.trouble);
      servedBefore = undefined;
      stopWatching = store.watch(apply);
    },
    current: served.current,
    groupOf: served.groupOf,
    compare: served.compare,
    onChange: served.onChange,
    onNewest(listener) {
      newestListeners.add(listener);
      return () => {
        newestListeners.delete(listener);
      };
    },
    wasInForce: (content) => admission.wasInForce(content),
    get ruleSet() {
      return served.now.inForce?.built.ruleSet;
    },
    get governed() {
      return served.now.inForce?.built;
    },
    get documents() {
      return served.now.inForce?.built.documents ?? [];
    },
    state: () =>
      toSnapshotState({
        ...{ newest, withdrawn, counts, serving: served.now, store: store.status() },
        mayRemove: (revision) => admission.mayRemove(revision),
      }),
    reconsider() {
      if (unexamined !== undefined) {
        apply(unexamined);
        return;
      }
      const { inForce, trial } = served.now;
      const ids = { inForceId: inForce?.revision.id, trialId: trial?.revision.id };
      if (newest !== undefined && admission.isOutdated(newest, ids)) take(newest.whole);
    },
    followTrial(revision) {
      const outcome = build(revision);
      if (!outcome.ok) return;
      beginTrial(revision, outcome.built);
      // A verdict on an earlier try does not count where it is tried again.
      letThrough(revision, outcome.warnings);
      if (newest && newest.whole.id !== revision.id && newest.invalidSinceMs === undefined) {
        newest = { ...newest, isWaiting: newest.whole.id !== served.now.inForce?.revision.id };
      }
    },
    followInForce(whole) {
      const outcome = build(whole);
      if (!outcome.ok) return;
      serve(whole, outcome.built, { isAtOnce: false, trial: served.now.trial });
      // The limits for whose removal it was held back are gone everywhere by now.
      letThrough(whole, outcome.warnings);
    },
    offerTrial(isOffered) {
      const { trial } = served.now;
      if (trial !== undefined) served.change({ trial: { ...trial, isOffered } });
    },
    endTrial() {
      const { trial } = served.now;
      if (trial === undefined) return;
      serve(trial.whole, trial.built, { isAtOnce: false, trial: undefined });
      takeWaiting();
    },
    takeBackTrial(reason) {
      const { trial, inForce } = served.now;
      if (trial === undefined) return;
      const { revision } = trial;
      counts.takenBack++;
      served.change({ trial: undefined });
      const problem = toTakenBack(reason);
      say.refused(revision, [problem], inForce?.revision.id);
      if (newest?.whole.id === revision.id) {
        const problems = [...newest.problems, problem];
        newest = { ...newest, problems, invalidSinceMs: clock.wallMs() };
      }
      takeWaiting();
    },
    async close() {
      stopWatching();
      await lastGood.settled();
    },
  };
}
