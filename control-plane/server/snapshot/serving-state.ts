// What a control plane serves: the revision in force, the one on trial and the newest one of its store, as one
// immutable value, and a step for each event. A step lists the effects; cache.ts performs them, and their results are
// the next events. admission.ts judges, rollout/fleet-step.ts decides on a trial. Pure.
import type { Problem } from '../../../shared/rules/problem/problem.ts';
import { formatProblem } from '../../../shared/rules/problem/problem-text.ts';
import {
  hasTrailer,
  inRepository,
  nowTrailer,
  type Revision,
  type RevisionInfo,
  toRevisionInfo,
} from '../store/revision.ts';
import { become, type Turn as StepTurn } from '../turn.ts';
import {
  type Admission,
  type Candidate,
  type Circumstances,
  contentOf,
  findEarlierVerdict,
  isApproved,
  isOutdated,
  type Judged,
  judge,
  type RevisionMemory,
  toTakenBackProblem,
} from './admission.ts';
import type { BuildOutcome, BuiltSnapshots } from './build.ts';
import { isLarge } from './building.ts';
import type { AttributedStep } from './makers.ts';
import type { KnownStep } from './policy-steps.ts';
import {
  describeExcused,
  describeInForce,
  describeRefused,
  describeRestored,
  describeWaiting,
  describeWarnings,
  describeWithdrawn,
  type LogLine,
} from './revision-log.ts';
import { type InForce, nothingServed, type Serving, type Trial, withServing } from './served.ts';

export interface ServingOptions {
  /** Whether a revision may remove most limits without an approval. */
  readonly allowsRemoval: boolean;
  /** Whether the store records who made which change between two revisions. */
  readonly knowsMakers: boolean;
  /** The folder of the files in their repository, such as `rules/`; '' at its root. */
  readonly folder: string;
  /** The description of the store. */
  readonly store: string;
}

/** The newest revision of the store, and the verdict on it. */
export interface NewestRevision extends Judged {
  readonly problems: readonly Problem[];
  /** Whether it is valid and waits for the end of another revision's trial. */
  readonly isWaiting: boolean;
}

export interface ServingState extends Serving {
  readonly options: ServingOptions;
  readonly newest: NewestRevision | undefined;
  /** The newest revision of the store while it is examined; a newer one replaces it. `isBegun`: false until the earlier
   * verdicts on it are known. */
  readonly examined: { readonly revision: Revision; readonly isBegun: boolean } | undefined;
  /** A revision whose trial this control plane has abandoned because of the newer revision `by`. */
  readonly withdrawn: { readonly revision: string; readonly by: string } | undefined;
  /** The rules that an earlier process served; used until this process serves some. */
  readonly before: Circumstances['before'];
  /** The makers of the newest revision's changes, if a policy requires them. */
  readonly way: Way;
  /** Ids of revisions that have been the newest one, oldest first. */
  readonly seenIds: ReadonlySet<string>;
  readonly counts: {
    readonly accepted: number;
    readonly refused: number;
    readonly takenBack: number;
  };
  /** Incremented at each change of state that a judgement may depend on. */
  readonly turns: number;
  /** The warnings of the last valid revision, and the last revision that broke the policy with a reason. */
  readonly logged: { readonly warnings: ReadonlySet<string>; readonly excused: string | undefined };
}

interface Way {
  readonly steps: readonly KnownStep[];
  /** Ids of the approved revisions among the steps. */
  readonly approvals: string;
}

export interface Facts {
  readonly memory: RevisionMemory;
  readonly wallMs: number;
}

/** `examine`: the revision is the newest one; `try`: another control plane has it on trial; `follow`: all others have
 * it in force. */
export type Purpose = 'examine' | 'try' | 'follow';

/** Events that follow from the record. */
export type TrialEvent =
  /** The verdict on the newest revision may have changed: it was approved, taken back or held back, or the memory has
   * been read. */
  | { readonly kind: 'reconsider' }
  /** Another control plane has this revision on trial. This one puts it on trial too, without any node until it is
   * offered, unless it is invalid here. Large revisions take longer. */
  | { readonly kind: 'follow_trial'; readonly revision: Revision }
  /** All other control planes have this revision in force; this one puts it in force too. */
  | { readonly kind: 'follow_in_force'; readonly revision: Revision }
  /** These nodes get the revision on trial; all others get the one in force. */
  | { readonly kind: 'offer_trial'; readonly isOffered: Trial['isOffered'] }
  /** The revision on trial comes into force for all nodes. */
  | { readonly kind: 'end_trial' }
  /** The revision on trial is withdrawn from all nodes and refused for this reason. */
  | { readonly kind: 'take_back_trial'; readonly reason: string }
  /** No connected worker holds other rules than those served for lack of anything known. */
  | { readonly kind: 'end_first' };

export type ServingEvent =
  /** This is the newest revision of the store now. */
  | { readonly kind: 'found'; readonly revision: Revision }
  | {
      readonly kind: 'built';
      readonly purpose: Purpose;
      readonly revision: Revision;
      readonly outcome: BuildOutcome;
    }
  /** `turns`: that of the state in which it was judged. */
  | {
      readonly kind: 'judged';
      readonly candidate: Candidate;
      readonly admission: Admission;
      readonly way: Way;
      readonly turns: number;
    }
  | TrialEvent
  /** At a start: what an earlier process had in force; undefined if this process starts without it. */
  | { readonly kind: 'started'; readonly before: Circumstances['before'] }
  /** At a start: an earlier revision is served, for the reason `why`. */
  | {
      readonly kind: 'restored';
      readonly revision: Revision;
      readonly outcome: BuildOutcome;
      readonly why: string;
    };

/** Performed in the order in which a step lists them: nodes get their snapshots before any listener is notified. */
export type ServingEffect =
  | { readonly kind: 'build'; readonly purpose: Purpose; readonly revision: Revision }
  /** Judges in slices, with the makers of the changes; the step itself judges small revisions by a single author. */
  | { readonly kind: 'judge'; readonly revision: Revision; readonly outcome: BuildOutcome }
  /** Some nodes get a different snapshot. */
  | { readonly kind: 'refresh' }
  /** A revision of the store has become the newest one, even if no node gets anything different. */
  | { readonly kind: 'newest' }
  /** Stores the revision for the next start. */
  | { readonly kind: 'keep'; readonly revision: Revision }
  | LogLine;

type Turn = StepTurn<ServingState, ServingEffect>;

/** Maximum number of remembered revisions. */
const maxRemembered = 1_000;
const noWay: Way = { steps: [], approvals: '' };
/** The revision comes from the record, or from an earlier process. */
const followed = { isAtOnce: false } as const;

export function startServing(options: ServingOptions): ServingState {
  return {
    ...nothingServed,
    options,
    newest: undefined,
    examined: undefined,
    withdrawn: undefined,
    before: undefined,
    way: noWay,
    seenIds: new Set(),
    counts: { accepted: 0, refused: 0, takenBack: 0 },
    turns: 0,
    logged: { warnings: new Set(), excused: undefined },
  };
}

export function step(state: ServingState, event: ServingEvent, facts: Facts): Turn {
  const turn: Turn = { state, effects: [] };
  switch (event.kind) {
    case 'found':
      return find(turn, event.revision, facts);
    case 'built':
      return noteBuilt(turn, event, facts);
    case 'judged':
      return noteJudged(turn, event, facts);
    case 'reconsider':
      return reconsider(become(turn, { turns: state.turns + 1 }), facts);
    case 'follow_trial':
      return build(turn, 'try', event.revision, facts);
    case 'follow_in_force':
      return build(turn, 'follow', event.revision, facts);
    case 'offer_trial': {
      const { trial } = state;
      return trial ? serve(turn, { trial: { ...trial, isOffered: event.isOffered } }) : turn;
    }
    case 'end_trial': {
      const { trial } = state;
      if (trial === undefined) return turn;
      const { revision, built } = trial;
      const given = { ...followed, trial: undefined, isAnswer: true };
      return startWaiting(bringIntoForce(turn, revision, built, given, facts), facts);
    }
    case 'take_back_trial':
      return takeBackTrial(turn, event.reason, facts);
    case 'end_first': {
      const { inForce } = state;
      return inForce ? serve(turn, { inForce: { ...inForce, isFirst: false } }) : turn;
    }
    case 'started':
      return become(turn, { before: event.before });
    case 'restored':
      return restore(turn, event, facts);
  }
}

/** The rules that the workers have, if known. */
export function beforeOf({ inForce, before }: ServingState): Circumstances['before'] {
  return inForce ?? before;
}

/** Whether authors other than that of the revision may have made changes that come into force with it. */
export function needsWay(state: ServingState, revision: Revision, outcome: BuildOutcome): boolean {
  const before = beforeOf(state);
  if (!outcome.ok || !state.options.knowsMakers || before?.revision.id === revision.id)
    return false;
  return (before?.built.policyText ?? outcome.built.policyText) !== undefined;
}

export function toCandidate(
  { newest, seenIds }: ServingState,
  revision: Revision,
  outcome: BuildOutcome,
  { memory }: Facts,
): Candidate {
  const given = { memory, seen: seenIds };
  const earlierVerdict = findEarlierVerdict(revision, contentOf({ outcome }), newest, given);
  return { revision, outcome, earlierVerdict };
}

export function toCircumstances(
  state: ServingState,
  steps: readonly AttributedStep[],
  { memory }: Facts,
): Circumstances {
  const { allowsRemoval } = state.options;
  return { steps, serving: state, before: beforeOf(state), memory, allowsRemoval };
}

/** Adds the approvals known by now. */
export function toWay(revision: Revision, steps: readonly KnownStep[], { memory }: Facts): Way {
  const makers = steps.flatMap((each) => each.makers);
  const known = [...makers, { revision: revision.id, content: undefined }];
  const approvals = known
    .flatMap(({ revision: id = revision.id, content = '' }) =>
      memory.verdictOf(id, content)?.outcome === 'approved' ? id : [],
    )
    .join();
  return { steps, approvals };
}

/** The content of a revision that an operator can approve by its id: the newest one, or one that was refused together
 * with the newest. */
export function contentOfStep({ newest, way }: ServingState, id: string): string | undefined {
  if (newest?.revision.id === id) return contentOf(newest);
  const makers = way.steps.flatMap((each) => each.makers);
  return makers.find(({ revision }) => revision === id)?.content;
}

function build(turn: Turn, purpose: Purpose, revision: Revision, facts: Facts): Turn {
  const { newest } = turn.state;
  if (newest?.revision.id !== revision.id) {
    return become(turn, {}, { kind: 'build', purpose, revision });
  }
  return noteBuilt(turn, { purpose, revision: newest.revision, outcome: newest.outcome }, facts);
}

function find(turn: Turn, revision: Revision, facts: Facts): Turn {
  const { memory } = facts;
  const isBegun = memory.otherVersion === undefined && memory.isKnown;
  const isKnown = revision.id === turn.state.newest?.revision.id;
  if (isBegun && isKnown) return become(turn, { examined: undefined });
  const found = become(turn, { examined: { revision, isBegun } });
  return isBegun ? build(found, 'examine', revision, facts) : found;
}

/** Judges the newest revision again after a change of what the verdict depends on. If a newer one is being examined,
 * its admission covers that. */
function judgeAgain(turn: Turn, facts: Facts): Turn {
  const { newest, examined } = turn.state;
  if (newest === undefined || examined !== undefined) return turn;
  const { revision } = newest;
  return build(become(turn, { examined: { revision, isBegun: true } }), 'examine', revision, facts);
}

function reconsider(turn: Turn, facts: Facts): Turn {
  const { examined, newest, way } = turn.state;
  if (examined?.isBegun === false) return find(turn, examined.revision, facts);
  if (newest === undefined) return turn;
  const { revision, invalidSinceMs } = newest;
  const isOtherwiseApproved =
    invalidSinceMs !== undefined && way.approvals !== toWay(revision, way.steps, facts).approvals;
  const needsVerdict =
    isOtherwiseApproved ||
    isTriedAgain(newest, facts) ||
    isOutdated(newest, toCircumstances(turn.state, [], facts));
  return needsVerdict ? judgeAgain(turn, facts) : turn;
}

/** Whether the revision was taken back, and an operator has approved it nevertheless. */
function isTriedAgain(newest: NewestRevision, { memory }: Facts): boolean {
  const isTakenBack = newest.problems.some(({ rule }) => rule === 'taken-back');
  return isTakenBack && isApproved(newest, memory);
}

/** Judges the revision that waited for the end of a trial. */
function startWaiting(turn: Turn, facts: Facts): Turn {
  return turn.state.newest?.isWaiting ? judgeAgain(turn, facts) : turn;
}

function noteBuilt(
  turn: Turn,
  { purpose, revision, outcome }: Omit<Extract<ServingEvent, { kind: 'built' }>, 'kind'>,
  facts: Facts,
): Turn {
  const { state } = turn;
  if (purpose === 'examine') {
    if (state.examined?.revision !== revision) return turn;
    if (isLarge(revision) || needsWay(state, revision, outcome)) {
      return become(turn, {}, { kind: 'judge', revision, outcome });
    }
    const candidate = toCandidate(state, revision, outcome, facts);
    const admission = judge(candidate, toCircumstances(state, [], facts));
    return noteAdmission(turn, candidate, admission, toWay(revision, [], facts), facts);
  }
  if (!outcome.ok) return turn;
  if (purpose === 'try') return startFollowedTrial(turn, revision, outcome, facts);
  const given = { ...followed, trial: state.trial, isAnswer: true };
  const served = bringIntoForce(turn, revision, outcome.built, given, facts);
  // The limits for whose removal the revision was held back are no longer in force on any control plane.
  const now = letThrough(served, revision, outcome.warnings);
  return state.inForce?.isFirst ? judgeAgain(now, facts) : now;
}

/** Puts the revision on trial, without any node until it is offered. */
function startFollowedTrial(
  turn: Turn,
  revision: Revision,
  { built, warnings }: Extract<BuildOutcome, { ok: true }>,
  facts: Facts,
): Turn {
  if (turn.state.trial?.revision.id === revision.id) return turn;
  // A verdict on an earlier try does not apply to the new try.
  const tried = letThrough(beginTrial(turn, revision, built, facts), revision, warnings);
  const { newest, inForce } = tried.state;
  if (newest === undefined || newest.revision.id === revision.id) return tried;
  if (newest.invalidSinceMs !== undefined) return tried;
  const isWaiting = newest.revision.id !== inForce?.revision.id;
  return become(tried, { newest: { ...newest, isWaiting } });
}

/** Judges again if the state that the judgement depends on has changed meanwhile. */
function noteJudged(
  turn: Turn,
  { candidate, admission, way, turns }: Extract<ServingEvent, { kind: 'judged' }>,
  facts: Facts,
): Turn {
  const { revision, outcome } = candidate;
  if (turn.state.examined?.revision !== revision) return turn;
  if (turns !== turn.state.turns) return become(turn, {}, { kind: 'judge', revision, outcome });
  return noteAdmission(turn, candidate, admission, way, facts);
}

function noteAdmission(
  turn: Turn,
  candidate: Candidate,
  admission: Admission,
  way: Way,
  facts: Facts,
): Turn {
  const { inForce, trial, newest: last, options, seenIds, logged } = turn.state;
  const { revision } = candidate;
  const { becomes, isHeldBack, exception } = admission;
  const problems = toNamed(admission.problems, options);
  const isRefused = becomes === 'refused';
  const newest: NewestRevision = {
    ...{ ...candidate, problems, isHeldBack, isWaiting: becomes === 'waiting' },
    invalidSinceMs: isRefused ? (last?.invalidSinceMs ?? facts.wallMs) : undefined,
  };
  const isWithdrawn = admission.trial === 'withdrawn' && trial !== undefined;
  const isExcused = exception !== undefined && logged.excused !== revision.id;
  const settled = become(
    turn,
    {
      ...{ examined: undefined, way, newest, seenIds: withBounded(seenIds, revision.id) },
      ...(isWithdrawn && { withdrawn: { revision: trial.revision.id, by: revision.id } }),
      logged: {
        warnings: isRefused ? logged.warnings : new Set(problems.map(formatProblem)),
        excused: exception === undefined ? logged.excused : revision.id,
      },
    },
    ...(isRefused ? [] : describeWarnings(problems, logged.warnings)),
    ...(isExcused ? [describeExcused(revision, exception)] : []),
    ...(isWithdrawn ? [describeWithdrawn(trial.revision, revision)] : []),
  );
  const isAnswer = last?.invalidSinceMs !== undefined || inForce === undefined;
  const now = bringOn(settled, revision, admission, isAnswer, facts);
  return last?.revision.id === revision.id ? now : become(now, {}, { kind: 'newest' });
}

/** Carries out the admission. */
function bringOn(
  turn: Turn,
  revision: Revision,
  admission: Admission,
  isAnswer: boolean,
  facts: Facts,
): Turn {
  const { trial, counts, newest } = turn.state;
  switch (admission.becomes) {
    case 'refused': {
      const ended = admission.trial === 'stays' ? turn : serve(turn, { trial: undefined });
      const counted = become(ended, { counts: { ...counts, refused: counts.refused + 1 } });
      return refuse(counted, revision, newest?.problems ?? []);
    }
    case 'in_force': {
      const isFirst = isFirstKnown(turn.state, revision, facts);
      const given = { isAtOnce: !isFirst, isFirst, trial: undefined, isAnswer };
      return bringIntoForce(turn, revision, admission.built, given, facts);
    }
    case 'on_trial':
      return trial?.revision.id === revision.id
        ? turn
        : beginTrial(turn, revision, admission.built, facts);
    case 'waiting':
      return trial === undefined
        ? turn
        : become(turn, {}, describeWaiting(revision, trial.revision));
  }
}

/** Whether it is unknown what the workers had before, and its author does not want it at once. */
function isFirstKnown(state: ServingState, revision: Revision, { memory }: Facts): boolean {
  const isKnown = beforeOf(state) !== undefined || memory.inForce !== undefined;
  return memory.rollsOut && !isKnown && !hasTrailer(revision, nowTrailer);
}

function serve(turn: Turn, to: Partial<Serving>): Turn {
  const { now, isNews } = withServing(turn.state, to);
  if (now === turn.state) return turn;
  const { inForce, trial } = now;
  const served = become(turn, { inForce, trial, turns: turn.state.turns + 1 });
  return isNews ? become(served, {}, { kind: 'refresh' }) : served;
}

function beginTrial(turn: Turn, revision: Revision, built: BuiltSnapshots, facts: Facts): Turn {
  const { withdrawn } = turn.state;
  const earlierVerdict = facts.memory.verdictOf(revision.id, built.content);
  // If the revision is put on trial again before the end of its earlier trial is on record, that end no longer applies.
  const begun = withdrawn?.revision === revision.id ? become(turn, { withdrawn: undefined }) : turn;
  const trial = { revision, sinceMs: facts.wallMs, built, earlierVerdict, isOffered: () => false };
  // Workers that have other rules keep them.
  const isFirst = turn.state.inForce?.isFirst && turn.state.inForce.built.content === built.content;
  return serve(begun, { trial, ...(isFirst && { inForce: undefined }) });
}

function bringIntoForce(
  turn: Turn,
  revision: Revision,
  built: BuiltSnapshots,
  {
    trial,
    isAnswer,
    ...how
  }: Pick<InForce, 'isAtOnce' | 'isFirst'> &
    Pick<Serving, 'trial'> & {
      /** Logged at the default level if it answers a question: what is served, and whether a repair worked. */
      readonly isAnswer: boolean;
    },
  { wallMs }: Facts,
): Turn {
  const { state } = turn;
  const { counts } = state;
  const isNews = state.trial !== undefined || state.inForce?.built.content !== built.content;
  const info = toRevisionInfo(revision);
  const counted = become(turn, { counts: { ...counts, accepted: counts.accepted + 1 } });
  return become(
    serve(counted, { inForce: { revision: info, sinceMs: wallMs, built, ...how }, trial }),
    {},
    { kind: 'keep', revision: revision },
    describeInForce(info, built, isNews, isAnswer),
  );
}

/** The revision on trial is withdrawn from all nodes and refused for this reason. */
function takeBackTrial(turn: Turn, reason: string, facts: Facts): Turn {
  const { trial, counts, newest, way } = turn.state;
  if (trial === undefined) return turn;
  const { revision } = trial;
  const problem = toTakenBackProblem(reason);
  const isNewest = newest?.revision.id === revision.id;
  const refused = isNewest && {
    newest: { ...newest, problems: [...newest.problems, problem], invalidSinceMs: facts.wallMs },
    // The end of an approval that allowed another try is no reason to judge the revision again.
    way: toWay(revision, way.steps, facts),
  };
  const counted = become(turn, {
    counts: { ...counts, takenBack: counts.takenBack + 1 },
    ...refused,
  });
  return startWaiting(refuse(serve(counted, { trial: undefined }), revision, [problem]), facts);
}

/** Marks the newest revision as accepted, because the other control planes have judged it so. */
function letThrough(turn: Turn, { id }: Revision, problems: readonly Problem[]): Turn {
  const { newest, options } = turn.state;
  if (newest?.revision.id !== id) return turn;
  const now = {
    problems: toNamed(problems, options),
    invalidSinceMs: undefined,
    isHeldBack: false,
  };
  return become(turn, { newest: { ...newest, ...now } });
}

function restore(
  turn: Turn,
  { revision, outcome, why }: Extract<ServingEvent, { kind: 'restored' }>,
  { wallMs }: Facts,
): Turn {
  const info = toRevisionInfo(revision);
  if (!outcome.ok) return refuse(turn, info, toNamed(outcome.problems, turn.state.options));
  const { built } = outcome;
  const inForce = { revision: info, sinceMs: wallMs, built, ...followed };
  return become(serve(turn, { inForce }), {}, describeRestored(info, built, why, wallMs));
}

function refuse(turn: Turn, revision: RevisionInfo, problems: readonly Problem[]): Turn {
  const { inForce, options } = turn.state;
  const lines = describeRefused(revision, problems, inForce?.revision.id, options.store);
  return become(turn, {}, ...lines);
}

/** Names each file the same in status, log, history and notifications. */
function toNamed(problems: readonly Problem[], { folder }: ServingOptions): readonly Problem[] {
  return problems.map((each) => inRepository(each, folder));
}

/** Removes the oldest text beyond the limit. */
function withBounded(texts: ReadonlySet<string>, text: string): ReadonlySet<string> {
  const now = new Set(texts).add(text);
  const [oldest = ''] = now;
  if (now.size > maxRemembered) now.delete(oldest);
  return now;
}
