// The only place that decides on a rollout: derives the next change, if any, from the known facts. Pure. rollout.ts
// puts the change on record, and every control plane follows the record.
import { toCountText } from '../../../shared/count-text.ts';
import { formatDuration } from '../../../shared/duration.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import {
  maxChosen,
  openRolloutOf,
  type RolloutOnRecord,
  type RolloutRecord,
  verdictOf,
} from '../record/record.ts';
import { toReplaced } from '../snapshot/admission.ts';
import { toShortId } from '../store/revision.ts';
import type { RolloutPlan } from './plan.ts';
import {
  chooseShare,
  createIsWithin,
  isGiven,
  isOfStep,
  type PoolStep,
  type Pools,
  type Share,
} from './pools.ts';
import { type Member, reportedMs, type View } from './view.ts';

export type RolloutChange =
  /** No worker has the revision yet. */
  | { readonly kind: 'begin' }
  /** Takes over from a leader that has stopped. */
  | { readonly kind: 'lead' }
  | { readonly kind: 'take_back'; readonly reason: string }
  /** `share`: the new share; undefined if it stays the same. */
  | { readonly kind: 'pause'; readonly reason: string; readonly share?: Share }
  | { readonly kind: 'give'; readonly step: number; readonly share: Share; readonly text: string }
  /** All workers get the revision. */
  | { readonly kind: 'complete'; readonly text: string };

/** `gathering`: workers are still connecting. `spreading`: some workers of the step do not have the revision yet.
 * `holding`: all of them have it and are being watched. `silent`: there is too little traffic to judge, so they are
 * watched for a second hold. `indivisible`: no share of the workers can be made, so the rollout waits for an approval.
 * `taking_back`: the revision has left all workers of this control plane, which is being put on record. */
export type Phase =
  | 'gathering'
  | 'spreading'
  | 'holding'
  | 'silent'
  | 'paused'
  | 'indivisible'
  | 'taking_back';

export interface Decision {
  readonly change: RolloutChange | undefined;
  readonly phase: Phase;
  /** One sentence for operators: what the rollout waits for; '' if it waits for nothing. */
  readonly text: string;
}

export interface DecideOptions {
  readonly plan: RolloutPlan;
  readonly pools: Pools;
}

/** How long a refusal waits for the answers of the other workers that were given the revision. */
const answersMs = 3_000;
/** The divisor for a large part of the workers: one third. */
const manyOf = 3;
/** The time within which workers answer an offer. */
const offerMs = 10_000;
/** The fewest silent or gone workers, out of those that were offered the revision, that rule out chance. */
const fewestLost = 2;

export function decide(view: View, record: RolloutRecord, options: DecideOptions): Decision {
  const open = openRolloutOf(record);
  if (open?.revision !== view.trial.revision.id) return decideToBegin(view, open);
  const evidence = findEvidence(view, open);
  if (!view.leads) {
    if (view.isVacant) return { change: { kind: 'lead' }, phase: 'gathering', text: '' };
    // A control plane that is cut off from the leader also takes back a bad revision.
    const change = !view.isLed && evidence?.kind === 'take_back' ? evidence : undefined;
    return { change, phase: toFollowerPhase(view, open), text: open.reason };
  }
  const isPaused = open.outcome === 'paused';
  if (evidence?.kind === 'take_back') {
    return { change: evidence, phase: 'taking_back', text: evidence.reason };
  }
  if (evidence?.kind === 'pause' && !isPaused) return toPause(view, open, evidence);
  if (isPaused) {
    const smaller = isAllKnown(view) ? findSmaller(view, open, options.pools) : undefined;
    return smaller ?? toWaiting('paused', open.reason);
  }
  const { revision, content } = view.trial;
  const isApproved = verdictOf(record, revision.id, content)?.outcome === 'approved';
  return decideToGoOn(view, open, { ...options, isApproved });
}

/** `other`: the rollout of another revision that is under way, if any. */
function decideToBegin(view: View, other: RolloutOnRecord | undefined): Decision {
  if (other !== undefined && !view.trial.supersedes) {
    return toWaiting('gathering', `waits for the rollout of ${toShortId(other.revision)}`);
  }
  if (other === undefined && !view.leads && !view.isVacant) return toWaiting('gathering', '');
  return { change: { kind: 'begin' }, phase: 'gathering', text: '' };
}

type Evidence = Extract<RolloutChange, { kind: 'take_back' | 'pause' }>;

/** Finds evidence against the revision at any time, also while workers are still receiving it, are silent or are
 * unknown. */
function findEvidence(view: View, open: RolloutOnRecord): Evidence | undefined {
  const bad = findBad(view, open);
  const { newer, isLacked } = view;
  if (bad?.kind === 'take_back' || newer === undefined || !isLacked) return bad;
  if (newer.isWaiting) return { kind: 'take_back', reason: toReplaced(newer.revision) };
  const id = toShortId(open.revision);
  return {
    kind: 'pause',
    reason: `another control plane cannot follow, as its store no longer has revision ${id}`,
  };
}

function findBad(view: View, open: RolloutOnRecord): Evidence | undefined {
  const shares = toShares(view);
  const refusals = shares.flatMap((share) => findRefusal(share) ?? []);
  const { mayBeElsewhere, having } = view.gone;
  const known = mayBeElsewhere ? shares.map((share) => ({ ...share, lost: 0 })) : shares;
  const lost = findLost(view, open, known);
  const { kind, text } = view.judgement;
  const isJudged = isGiven(open);
  const refusal = refusals.find((each) => each.kind === 'take_back')?.reason;
  const bad = refusal ?? lost ?? (isJudged && kind === 'bad' ? text : undefined);
  if (bad !== undefined) {
    const had = view.members.filter(({ isChosen }) => isChosen).length + having;
    return { kind: 'take_back', reason: `${bad}; ${toCountText(had, 'worker')} had it` };
  }
  const isStore = isJudged && kind === 'store';
  const store = { kind: 'pause', reason: `${text}; 'rollout retry' tries it again` } as const;
  return refusals[0] ?? (isStore ? store : undefined);
}

/** The workers of one pool that are given the revision, and the number of them that are gone without a goodbye. */
interface PoolShare {
  readonly chosen: readonly Member[];
  readonly lost: number;
}

function toShares({ members, gone }: View): readonly PoolShare[] {
  const byPool = Map.groupBy(
    members.filter(({ isChosen }) => isChosen),
    ({ pool }) => pool,
  );
  return [...new Set([...byPool.keys(), ...gone.havingOf.keys()])].map((pool) => ({
    chosen: byPool.get(pool) ?? [],
    lost: gone.havingOf.get(pool) ?? 0,
  }));
}

function findRefusal({ chosen }: PoolShare): Evidence | undefined {
  const refused = chosen.filter(({ refusal }) => refusal !== undefined);
  const [first] = refused;
  if (first === undefined) return undefined;
  const reason = `worker ${first.name} refuses it: ${first.refusal?.text}`;
  const accepted = chosen.filter(({ state }) => state === 'in_force').length;
  const isMany = refused.length * manyOf >= chosen.length;
  if (!isMany && accepted > 0) {
    const others = `${toCountText(accepted, 'other worker')} accepted it`;
    return { kind: 'pause', reason: `${reason}; ${others}` };
  }
  const isLong = refused.some(({ refusal }) => refusal !== undefined && refusal.forMs >= answersMs);
  return isMany || isLong ? { kind: 'take_back', reason } : undefined;
}

/** Finds workers that were offered the revision and are gone without a goodbye, do not answer or do not use it: at
 * least two, or a third of the share if that is more, together with those that refuse it. Or more than a third of the
 * workers that have it are gone. Either must exceed the loss elsewhere. While a peer is unknown, its workers of the share
 * may have the revision. */
function findLost(
  view: View,
  open: RolloutOnRecord,
  shares: readonly PoolShare[],
): string | undefined {
  return shares.map((share) => describeLost(view, open, share)).find((text) => text !== undefined);
}

function describeLost(
  { members, gone, unknown }: View,
  open: RolloutOnRecord,
  { chosen, lost }: PoolShare,
): string | undefined {
  const isSilent = ({ silentForMs, isUnused }: Member) => isUnused || silentForMs >= offerMs;
  const silent = chosen.filter(isSilent);
  const least = unknown === undefined ? 0 : open.chosen.length;
  const offered = Math.max(chosen.length + lost, least);
  const having = Math.max(chosen.filter(({ state }) => state === 'in_force').length + lost, least);
  // Refusals alone are judged by findRefusal.
  const refused = chosen.filter(({ refusal }) => refusal !== undefined).length;
  const bad = silent.length + lost === 0 ? 0 : silent.length + lost + refused;
  const isGone = lost * manyOf > having;
  if (!isGone && bad < Math.max(fewestLost, offered / manyOf)) return undefined;
  const others = members.filter(({ isChosen }) => !isChosen);
  const elsewhere = others.filter(isSilent).length + gone.others;
  const share = isGone ? lost / having : bad / offered;
  if (share <= elsewhere / Math.max(1, others.length + gone.others)) return undefined;
  const more = refused === 0 ? '' : `, and ${refused} ${refused === 1 ? 'refuses' : 'refuse'} it`;
  if (silent.length === 0) {
    const are = lost === 1 ? 'is' : 'are';
    return `${lost} of ${toCountText(having, 'worker')} with it ${are} gone${more}`;
  }
  const rest = `${lost === 0 ? '' : `, and ${lost} ${lost === 1 ? 'is' : 'are'} gone`}${more}`;
  const unused = silent.filter(({ isUnused }) => isUnused).length;
  const what = unused === 0 ? 'do not answer' : `have acknowledged it and do not use it`;
  const how = unused === 0 || unused === silent.length ? what : `do not answer, or ${what}`;
  return `${silent.length} of ${toCountText(offered, 'worker')} that were offered it ${how}, such as ${silent[0]?.name}${rest}`;
}

interface GoOnOptions extends DecideOptions {
  /** Whether an operator has approved the revision without a share, in case none can be made. */
  readonly isApproved: boolean;
}

function decideToGoOn(view: View, open: RolloutOnRecord, options: GoOnOptions): Decision {
  const { pools } = options;
  const { members, unknown } = view;
  const chosen = members.filter(({ isChosen }) => isChosen);
  if (!isAllKnown(view)) {
    const none = view.connected === 0 ? 'no worker is connected' : 'workers are still connecting';
    return toWaiting(toFollowerPhase(view, open), unknown ?? none);
  }
  const lost = findLost(view, open, toShares(view));
  if (lost !== undefined) {
    const text = `waits: ${lost}, or at another control plane, which is not asked`;
    return toWaiting(toFollowerPhase(view, open), text);
  }
  if (view.isAwaited) {
    return toWaiting(
      'spreading',
      'waits for the workers that had it, which have left, to reconnect',
    );
  }
  if (!isOfStep(pools, open, chosen)) return giveAgain(view, open, options);
  const smaller = findSmaller(view, open, pools);
  if (smaller !== undefined) return smaller;
  const waiting = chosen.filter(({ state }) => state !== 'in_force');
  if (waiting[0] !== undefined) {
    const text = `waits for ${toCountText(waiting.length, 'worker')}, such as ${waiting[0].name}`;
    return toWaiting('spreading', text);
  }
  return hold(view, open, options);
}

function isAllKnown({ unknown, isGathered }: View): boolean {
  return unknown === undefined && isGathered;
}

/** More workers have the revision than the step allows: others have left, or new ones share a node id. */
function findSmaller({ members }: View, open: RolloutOnRecord, pools: Pools): Decision | undefined {
  const smaller = pools.shareAt(open.step, members, open);
  const isIn = createIsWithin(smaller);
  if (members.every((worker) => !worker.isChosen || isIn(worker))) return undefined;
  const share = {
    chosen: smaller.chosen.filter((position) => open.chosen.includes(position)),
    whole: open.whole,
  };
  return toGiven(open.step, share, '');
}

/** All workers of the step have the revision. If there is too little traffic, or one worker differs from the others,
 * they are watched for a second hold. */
function hold(view: View, open: RolloutOnRecord, options: GoOnOptions): Decision {
  const { judgement, heldMs } = view;
  const holdMs = options.pools.steps[open.step]?.holdMs ?? 0;
  const isFirst = heldMs < holdMs;
  const longestMs = Math.max(2 * holdMs, reportedMs);
  if (isFirst || (judgement.kind !== 'good' && heldMs < longestMs)) {
    const leftMs = (isFirst ? holdMs : longestMs) - heldMs;
    const left = formatDuration(Math.ceil(leftMs / 1000) * 1000);
    const why = judgement.kind === 'good' ? '' : ` (${judgement.text})`;
    return toWaiting(isFirst ? 'holding' : 'silent', `is watched for another ${left}${why}`);
  }
  const step = `step ${open.step + 1}`;
  if (judgement.kind === 'good') {
    const why = `${step}: ${judgement.text}`;
    return give(view, open, options, open.step + 1, why);
  }
  const isQuiet = judgement.kind === 'silent' && judgement.isQuiet === true;
  if (isQuiet && options.plan.onSilence === 'proceed') {
    const why = `${step} could not be judged: ${judgement.text}`;
    return give(view, open, options, open.step + 1, why);
  }
  const what = judgement.kind === 'silent' ? 'too little traffic to judge: ' : '';
  return toPause(view, open, { reason: `${what}${judgement.text}` });
}

/** No worker of the step has the revision: the step is new, or its workers have left, and replacing them would exceed
 * the number that the step allows. */
function giveAgain(view: View, open: RolloutOnRecord, options: GoOnOptions): Decision {
  const isLeft = open.chosen.length > 0 && isOfStep(options.pools, open, view.members);
  if (!isLeft) return give(view, open, options, open.step);
  const reason = `${toCountText(open.chosen.length, 'worker')} had it, and all of them have left: give it to others with 'rollout resume'`;
  const share = { chosen: [], whole: open.whole };
  return toPause(view, open, { reason, share });
}

/** Gives the revision to the workers of this step, or of the next step that has any; after the last step, to all
 * workers. */
function give(
  view: View,
  open: RolloutOnRecord,
  { plan, pools, isApproved }: GoOnOptions,
  from: number,
  why = '',
): Decision {
  const { members, peopled } = view;
  const because = why === '' ? '' : `${why}; `;
  /** The step of a node group without workers waits until one connects. */
  const isAwaited = ({ pool }: PoolStep) => pools.nameOf(pool) !== undefined && !peopled.has(pool);
  for (const [step, at] of pools.steps.entries()) {
    if (step < from) continue;
    const name = pools.nameOf(at.pool);
    if (name !== undefined && isAwaited(at)) {
      const text = `${because}waits for a worker of node group '${toExcerpt(name)}', which has none; end it with 'rollout promote' or 'abort'`;
      return toWaiting('gathering', text);
    }
    const share = pools.shareAt(step, members, open);
    const within = members.filter(createIsWithin(share));
    const isLast = !pools.steps.slice(step).some(isAwaited);
    if (within.length === members.length && isLast) continue;
    if (!within.some(({ pool }) => pool === at.pool)) continue;
    if (share.chosen.length > maxChosen) {
      const reason = `step ${step + 1} has ${share.chosen.length} workers, and the record holds ${maxChosen} of them: make the steps smaller, or promote it`;
      return toPause(view, open, { reason });
    }
    const whose = name === undefined ? '' : ` (node group '${toExcerpt(name)}')`;
    const reach = `${within.length} of ${toCountText(members.length, 'worker')}`;
    const text = `${because}step ${step + 1} of ${pools.steps.length + 1}${whose}, ${reach}`;
    return toGiven(step, share, text);
  }
  const complete = (text: string): Decision => ({
    change: { kind: 'complete', text: `${because}${text}, so all workers get it` },
    phase: 'holding',
    text: '',
  });
  if (from > open.step) return complete('all steps are done');
  if (members.length === 0)
    return complete('it changes nothing for the workers that are connected');
  const isDivided = pools.steps.some(
    ({ pool, percent }, step) =>
      step >= from && percent < 100 && members.some((worker) => worker.pool === pool),
  );
  if (!isDivided) return complete('its steps leave no worker out');
  const reason = `no share of the workers can be made: ${whyIndivisible(members)}`;
  if (plan.onIndivisible === 'proceed' || isApproved) return complete(reason);
  const text = `cannot be rolled out in steps, as ${reason}; it waits until an operator approves it`;
  return toWaiting('indivisible', text);
}

/** Explains, before there is a revision, why it could not go to a share of these workers first; undefined if it
 * could. */
export function foreseeIndivisible(
  workers: readonly Pick<Member, 'name' | 'position'>[],
  { steps, onIndivisible }: RolloutPlan,
): string | undefined {
  if (workers.length === 0) return undefined;
  const positions = workers.map(({ position }) => position);
  if (steps.some(({ percent }) => chooseShare(positions, percent).length > 0)) return undefined;
  const what = onIndivisible === 'wait' ? 'have to be approved' : 'reach all workers at once';
  return `the next revision will ${what}, since no share of the workers can be made: ${whyIndivisible(workers)}`;
}

function whyIndivisible(members: readonly Pick<Member, 'name' | 'position'>[]): string {
  if (members.length === 1) return 'only one worker is connected';
  return `none of the ${members.length} workers, such as ${members[0]?.name}, names its instance`;
}

function toWaiting(phase: Phase, text: string): Decision {
  return { change: undefined, phase, text };
}

function toGiven(step: number, share: Share, text: string): Decision {
  return { change: { kind: 'give', step, share, text }, phase: 'spreading', text: '' };
}

/** The rollout is paused once that is on record, which may take long: until then it cannot be resumed. */
function toPause(
  view: View,
  open: RolloutOnRecord,
  pause: Omit<Extract<RolloutChange, { kind: 'pause' }>, 'kind'>,
): Decision {
  const change = { ...pause, kind: 'pause' } as const;
  return { change, phase: toFollowerPhase(view, open), text: pause.reason };
}

function toFollowerPhase({ members }: View, open: RolloutOnRecord): Phase {
  if (open.outcome === 'paused') return 'paused';
  const chosen = members.filter(({ isChosen }) => isChosen);
  if (!isGiven(open)) return 'gathering';
  return chosen.every(({ state }) => state === 'in_force') ? 'holding' : 'spreading';
}
