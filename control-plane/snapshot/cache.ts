// The snapshots in force, made from the revisions of a store: a whole revision or nothing, and the last
// good one while the newest is bad. Decides what becomes of a new revision; served.ts has what every node gets,
// control-plane/rollout decides who gets a new revision first.

import type { Clock } from '../../shared/clock.ts';
import { AppError, errorText } from '../../shared/errors.ts';
import type { Log } from '../../shared/log.ts';
import { type Problem, problemOf } from '../../shared/rules/problem/problem.ts';
import type { RuleSet } from '../../shared/rules/rule.ts';
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import type { RateLimitConfigMessage } from '../../shared/wire/rate-limit-config-message.ts';
import { type GovernedRules, judgeByPolicy } from '../policy/policy-guard.ts';
import {
  allowRemovalTrailer,
  nowTrailer,
  type Revision,
  type RevisionInfo,
  saysTrailer,
  stepsTrailer,
  supersedeTrailer,
  toRevisionInfo,
  toShortId,
} from '../store/revision.ts';
import type { ConfigStore, StoreStatus } from '../store/store.ts';
import {
  type BuildOptions,
  type BuildOutcome,
  type BuiltSnapshots,
  buildSnapshots,
  createRememberingParser,
} from './build.ts';
import { createLastGood } from './last-good.ts';
import { findRemoval } from './removal-guard.ts';
import { createRevisionLog } from './revision-log.ts';
import { heldBackBy, type RevisionMemory, type Said, takenBackBy } from './revision-memory.ts';
import { createServed, type InForce, type Served, type Serving, type Trial } from './served.ts';
import type { NodeIdentity } from './snapshot.ts';
import type { InForceState, SnapshotState, Staleness, TrialState } from './snapshot-state.ts';

export interface SnapshotCache
  extends Pick<Served, 'current' | 'groupOf' | 'compare' | 'onChange'> {
  /**
   * Resolves when the store's newest revision has been examined, good or bad: then it is in force, or on trial, or
   * what was in force before is, or nothing (`current` gives undefined, so that workers keep what they have). From
   * then on the store is followed. Never rejects for problems of the store or its files; `state` and the log have
   * them.
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
  offerTrial(takes: (node: NodeIdentity) => boolean): void;
  /** The revision on trial is in force for everybody. */
  endTrial(): void;
  /** Nobody has the revision on trial any more: it is refused, for this reason. */
  takeBackTrial(reason: string): void;
  /** The rules, to explain decisions; undefined while nothing is in force. */
  readonly ruleSet: RuleSet | undefined;
  /** Of the rules in force; the same array as long as they are. Empty while nothing is. */
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

/** A revision to begin with, or why it cannot be read. */
type Kept =
  | { readonly revision: Revision; readonly outcome: BuildOutcome; readonly trouble?: undefined }
  | { readonly trouble: string; readonly revision?: undefined; readonly outcome?: undefined };

interface Newest {
  readonly whole: Revision;
  /** Undefined when it is invalid. */
  readonly content: string | undefined;
  readonly problems: readonly Problem[];
  /**
   * Wall time since which the newest revision, whichever it was, has been invalid; undefined when it is
   * valid.
   */
  readonly invalidSinceMs: number | undefined;
  /** Valid, but it waits for an approval. */
  readonly isHeldBack: boolean;
  /** Good, and waits for the end of a trial before it. */
  readonly isWaiting: boolean;
  /** Of it or its content before it came after another one: that is about an earlier try, and does not count. */
  readonly saidBefore: Said | undefined;
}

/** Revisions and contents that are remembered. */
const maxSeen = 1_000;
const firstReadMs = 5_000;
/** Silence of more than two seconds looks like a program that hangs. */
const firstReadSaidMs = 2_000;

export function createSnapshotCache(deps: SnapshotCacheDeps): SnapshotCache {
  const { store, options, memory, rollsOut, encode, stateDirectory, log, clock } = deps;
  const lastGood = createLastGood({ stateDirectory, store: store.description, log });
  const say = createRevisionLog(store.description, log);
  const nextParse = createRememberingParser();
  const served = createServed();
  /** Served by an earlier process; used until this one serves something. */
  let servedBefore: { readonly id: string; readonly built: BuiltSnapshots } | undefined;
  let newest: Newest | undefined;
  /** The newest one, while it is not known what was said of it. */
  let unexamined: Revision | undefined;
  /** Ids of revisions that have been the newest one, the oldest first. */
  const seen = new Set<string>();
  /** Contents that this control plane has had in force, the oldest first. */
  const servedContents = new Set<string>();
  const newestListeners = new Set<() => void>();
  let withdrawn: SnapshotState['withdrawn'];
  let stopWatching = () => {};
  let accepted = 0;
  let refused = 0;
  let takenBack = 0;

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
    const now: Newest = {
      whole,
      content,
      problems: outcome.ok ? outcome.warnings : outcome.problems,
      invalidSinceMs: undefined,
      isHeldBack: false,
      isWaiting: false,
      saidBefore: findSaidBefore(whole, content, before),
    };
    newest = now;
    addBounded(seen, whole.id);
    if (!outcome.ok) {
      refuse(now, outcome.problems, before);
      return;
    }
    const { built } = outcome;
    const goesBack = isBack(whole, built);
    const takenBack = findTakenBack(now);
    const problem = takenBack ?? findGuarded(now, built);
    const policy = judgeByPolicy(findBefore()?.built, built, {
      author: whole.author,
      message: whole.message,
      isUndo: wasInForce(built.content),
    });
    const warnings = [...outcome.warnings, ...policy.tolerated];
    const stopping = problem === undefined ? policy.refused : [problem, ...policy.refused];
    if (stopping.length > 0) {
      // Its author wants the revision on trial no more all the same.
      if (goesBack) noteWithdrawn(whole);
      if (goesBack || served.now.trial?.revision.id === whole.id) {
        served.change({ trial: undefined });
      }
      const isHeldBack = takenBack === undefined && policy.refused.length === 0;
      refuse({ ...now, isHeldBack }, [...warnings, ...stopping], before);
      return;
    }
    newest = { ...now, problems: warnings };
    say.warnings(warnings);
    if (policy.exception !== undefined) say.excused(whole, policy.exception);
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

  function refuse(now: Newest, problems: readonly Problem[], before: Newest | undefined): void {
    newest = { ...now, problems, invalidSinceMs: before?.invalidSinceMs ?? clock.wallMs() };
    refused++;
    say.refused(now.whole, problems, served.now.inForce?.revision.id);
  }

  /** To what everybody had before: that is an undo, which needs no steps. */
  function isBack(whole: Revision, { content }: BuiltSnapshots): boolean {
    const isTried = content === served.now.trial?.built.content || saysTrailer(whole, stepsTrailer);
    return !isTried && memory.wasInForce(content);
  }

  function wasInForce(content: string): boolean {
    return servedContents.has(content) || memory.wasInForce(content);
  }

  function findSaidBefore(
    { id }: Revision,
    content: string | undefined,
    before: Newest | undefined,
  ): Said | undefined {
    if (before === undefined || content === undefined) return undefined;
    if (before.content === content) return before.saidBefore;
    const said = memory.verdictOf(id, content);
    // Others knew it earlier: what they say is about this try.
    return said?.revision === id && !seen.has(id) ? undefined : said;
  }

  function findTakenBack({ whole, content, saidBefore }: Newest): Problem | undefined {
    if (content === undefined) return undefined;
    const word = takenBackBy(memory.verdictOf(whole.id, content), saidBefore);
    return word && toTakenBack(word.reason);
  }

  /** What the workers have, as far as it is known. */
  function findBefore(): { readonly id: string; readonly built: BuiltSnapshots } | undefined {
    const { inForce } = served.now;
    return inForce ? { id: inForce.revision.id, built: inForce.built } : servedBefore;
  }

  function findGuarded(now: Newest, { content, ruleSet }: BuiltSnapshots): Problem | undefined {
    const { whole } = now;
    if (mayRemove(whole) || isApproved(whole, content)) return undefined;
    const heldBack = findHeldBack(now);
    if (heldBack !== undefined) {
      return problemOf('error', 'large-removal', '(all files)', heldBack.reason);
    }
    const before = findBefore();
    if (before === undefined || before.id === whole.id) return undefined;
    return findRemoval(before.built.ruleSet, ruleSet);
  }

  function isApproved({ id }: Revision, content: string): boolean {
    return memory.verdictOf(id, content)?.outcome === 'approved';
  }

  function mayRemove(revision: RevisionInfo): boolean {
    return deps.allowsRemoval || saysTrailer(revision, allowRemovalTrailer);
  }

  /** By those that know what it would remove, also where that is not known here, or not any more. */
  function findHeldBack({ whole, content, saidBefore }: Newest): Said | undefined {
    const inForce = memory.inForce?.content;
    if (content === undefined || inForce === content) return undefined;
    return heldBackBy(memory.verdictOf(whole.id, content), saidBefore, inForce);
  }

  /** Whether other words count of it now than those by which it was judged. Those about what is on trial are for
   * whoever follows the rollout. */
  function isToBeJudgedAgain(now: Newest): boolean {
    const { whole, content, isHeldBack, invalidSinceMs } = now;
    const { inForce, trial } = served.now;
    if (content === undefined) return false;
    // A rollout that has begun has no such word on record any more.
    const isHeldNow = !mayRemove(whole) && findHeldBack(now) !== undefined;
    if (whole.id === trial?.revision.id) return isHeldNow;
    if (isHeldBack) return isApproved(whole, content);
    if (invalidSinceMs !== undefined) return false;
    const isTakenBack = whole.id !== inForce?.revision.id && findTakenBack(now) !== undefined;
    return isTakenBack || isHeldNow;
  }

  /** What changes nothing for anybody has nothing to try. */
  function needsTrial(whole: Revision, { content }: BuiltSnapshots): boolean {
    if (!rollsOut || saysTrailer(whole, nowTrailer)) return false;
    const before = served.now.inForce?.built.content ?? memory.inForce?.content;
    return before !== undefined && before !== content;
  }

  function tryOut(now: Newest, built: BuiltSnapshots): void {
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
        takes: () => false,
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
    accepted++;
    const revision = toRevisionInfo(whole);
    served.change({ inForce: { revision, sinceMs: clock.wallMs(), built, isAtOnce }, trial });
    addBounded(servedContents, built.content);
    lastGood.keep(whole);
    // For control planes without a state.
    if (rollsOut) void store.keepInForce?.(whole);
    const isNews = before.trial !== undefined || before.inForce?.built.content !== built.content;
    say.inForce(revision, built, isNews, isAnswer);
  }

  /** Others have judged otherwise than this control plane. */
  function letThrough({ id }: Revision, problems: readonly Problem[]): void {
    if (newest?.whole.id !== id) return;
    newest = { ...newest, problems, invalidSinceMs: undefined, isHeldBack: false };
  }

  /** What waited for the end of a trial is next. */
  function takeWaiting(): void {
    if (newest?.isWaiting) take(newest.whole);
  }

  function build(revision: Revision): BuildOutcome {
    const nowMs = clock.wallMs();
    return buildSnapshots(revision, options, { encode, nowMs, parse: nextParse() });
  }

  /** Undefined where there is none. */
  async function readKept(
    read: () => Promise<Revision | undefined>,
    trouble: string,
  ): Promise<Kept | undefined> {
    try {
      const revision = await read();
      return revision && { revision, outcome: build(revision) };
    } catch (error) {
      return { trouble: `${trouble}: ${errorText(error)}` };
    }
  }

  /** What an earlier process kept, or else what is remembered to be in force. */
  async function readBase(): Promise<Kept | undefined> {
    const kept = await readKept(lastGood.read, 'The last good revision cannot be restored');
    const wanted = memory.inForce;
    const content = kept?.outcome?.ok ? kept.outcome.built.content : undefined;
    if (wanted === undefined || content === wanted.content) return kept;
    const found = await readKept(
      () => store.readRevision(wanted.revision),
      'The revision in force before cannot be read',
    );
    return found?.revision === undefined ? (kept ?? found) : found;
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
      const kept = await readBase();
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
    get ruleSet() {
      return served.now.inForce?.built.ruleSet;
    },
    wasInForce,
    get governed() {
      return served.now.inForce?.built;
    },
    get documents() {
      return served.now.inForce?.built.documents ?? [];
    },
    state() {
      const status = store.status();
      const { inForce, trial } = served.now;
      return {
        store: status,
        newest: newest && {
          revision: toRevisionInfo(newest.whole),
          content: newest.content,
          valid: newest.invalidSinceMs === undefined,
          isHeldBack: newest.isHeldBack,
          isWaiting: newest.isWaiting,
          saidBefore: newest.saidBefore,
          problems: newest.problems,
        },
        inForce: inForce && toInForceState(inForce, mayRemove(inForce.revision)),
        trial: trial && toTrialState(trial, mayRemove(trial.whole)),
        withdrawn,
        stale: toStaleness(status),
        counts: { accepted, refused, takenBack },
      };
    },
    reconsider() {
      if (unexamined !== undefined) {
        apply(unexamined);
        return;
      }
      if (newest !== undefined && isToBeJudgedAgain(newest)) take(newest.whole);
    },
    followTrial(revision) {
      const outcome = build(revision);
      if (!outcome.ok) return;
      beginTrial(revision, outcome.built);
      // What was said of it before does not count where it is tried again.
      letThrough(revision, outcome.warnings);
      if (newest && newest.whole.id !== revision.id && newest.invalidSinceMs === undefined) {
        newest = { ...newest, isWaiting: newest.whole.id !== served.now.inForce?.revision.id };
      }
    },
    followInForce(whole) {
      const outcome = build(whole);
      if (!outcome.ok) return;
      serve(whole, outcome.built, { isAtOnce: false, trial: served.now.trial });
      // What was held back for what it would have removed has removed it everywhere.
      letThrough(whole, outcome.warnings);
    },
    offerTrial(takes) {
      const { trial } = served.now;
      if (trial !== undefined) served.change({ trial: { ...trial, takes } });
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
      takenBack++;
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

/** The oldest one goes. */
function addBounded(texts: Set<string>, text: string): void {
  texts.add(text);
  const [oldest = ''] = texts;
  if (texts.size > maxSeen) texts.delete(oldest);
}

function toTakenBack(reason: string): Problem {
  return problemOf('error', 'taken-back', '(all files)', `taken back: ${reason}`);
}

function toTrialState(
  { whole, revision, sinceMs, built, saidBefore }: Trial,
  mayRemove: boolean,
): TrialState {
  return {
    revision,
    sinceMs,
    content: built.content,
    supersedes: saysTrailer(whole, supersedeTrailer),
    mayRemove,
    saidBefore,
    groups: built.groups.map(({ group }) => group),
  };
}

function toInForceState(
  { revision, sinceMs, built, isAtOnce }: InForce,
  mayRemove: boolean,
): InForceState {
  return {
    revision,
    sinceMs,
    content: built.content,
    isAtOnce,
    mayRemove,
    domains: built.domains,
    limitCount: built.ruleSet.limitCount,
    groups: built.groups.map(({ group, domains }) => ({ name: group.name, domains })),
    leftOut: [...built.leftOut].map(([domain, fields]) => ({ domain, fields })),
  };
}
