// Compares the workers that have a revision with those that do not. Pure.
import { toExcerpt } from '../../shared/text-excerpt.ts';

/** Counts of one or several workers. A failed request is no decision. */
export interface Traffic {
  readonly decisions: number;
  readonly overLimit: number;
  readonly errors: number;
  /** Descriptors that no rule is for; a request may have several. */
  readonly noMatch: number;
}

/** The counts of one instance of a worker. */
export interface CountedWorker extends Traffic {
  /** The name for people. */
  readonly name: string;
}

export type Judgement =
  | { readonly kind: 'good'; readonly text: string }
  /** Too few requests at all. */
  | { readonly kind: 'silent'; readonly text: string }
  /** One worker alone makes the difference, or those with it get no requests while the others do. */
  | { readonly kind: 'unclear'; readonly text: string }
  | { readonly kind: 'bad'; readonly text: string };

/** With fewer requests, differences may be chance. */
export const minRequests = 100;
/** With as many with it, none of them decides alone. */
const minWorkersOfSeveral = 3;

/** What is compared, with the bounds of the difference between both sides in points. */
interface Measure {
  readonly name: string;
  readonly count: keyof Traffic;
  /** Above these it is bad. */
  readonly mostPoints: number;
  /** Above these it is bad where it is half as much again, and not chance; none: never. */
  readonly fewPoints: number | undefined;
}

export const maxErrorPoints = 1;
export const fewPoints = 3;
export const halfAgain = 1.5;
/** Of the standard normal distribution: one in a hundred differences by chance is above. */
const chance = 2.326;

function toMeasures(mostPoints: number): readonly Measure[] {
  return [
    { name: 'errors', count: 'errors', mostPoints: maxErrorPoints, fewPoints: undefined },
    { name: 'over limit', count: 'overLimit', mostPoints, fewPoints },
    { name: 'without a rule', count: 'noMatch', mostPoints, fewPoints },
  ];
}

/**
 * Bad when errors are more than one point above those of the others, or when hits over limit, or descriptors without a
 * rule, are more than `mostPoints` above, or more than three points and half as many again, which is not chance.
 * Not where it is so because of a single worker of more than two with the revision.
 *
 * @param hadTime whether those with it had the time to report what they count
 */
export function judge(
  having: readonly CountedWorker[],
  others: readonly CountedWorker[],
  mostPoints: number,
  hadTime = true,
): Judgement {
  const sums = { having: sum(having), others: sum(weigh(others)) };
  const all = compare(sums.having, sums.others, mostPoints);
  if (all.kind === 'silent') {
    return (hadTime ? findStandstill(having, others, sums.others) : undefined) ?? all;
  }
  if (having.length < minWorkersOfSeveral) return all;
  for (const worker of having) {
    const rest = compare(without(sums.having, worker), sums.others, mostPoints);
    if (rest.kind === all.kind || (all.kind === 'good' && rest.kind === 'silent')) continue;
    const texts = [all, rest].map((each) => (each.kind === 'good' ? 'no difference' : each.text));
    const text = `worker ${worker.name} alone makes the difference: ${texts[0]}; without it ${texts[1]}`;
    return { kind: 'unclear', text };
  }
  return all;
}

/** With more than two, none counts as more than twice the one in the middle: what a single one says of itself does not
 * decide what is usual. */
function weigh(others: readonly CountedWorker[]): readonly CountedWorker[] {
  if (others.length < minWorkersOfSeveral) return others;
  const sorted = others.map(requestsOf).sort((a, b) => a - b);
  const most = 2 * (sorted[Math.floor(sorted.length / 2)] ?? 0);
  return others.map((worker) => {
    const part = Math.min(1, most / Math.max(1, requestsOf(worker)));
    return {
      name: worker.name,
      decisions: Math.round(worker.decisions * part),
      overLimit: Math.round(worker.overLimit * part),
      errors: Math.round(worker.errors * part),
      noMatch: Math.round(worker.noMatch * part),
    };
  });
}

/** Those with it would have enough requests if they had as many as the others: they stand still, or their callers have left
 * them. */
function findStandstill(
  having: readonly CountedWorker[],
  others: readonly CountedWorker[],
  sums: Traffic,
): Judgement | undefined {
  if (having.length === 0 || others.length === 0) return undefined;
  const usual = Math.floor((requestsOf(sums) * having.length) / others.length);
  if (requestsOf(sum(having)) >= minRequests || usual < minRequests) return undefined;
  const text = `${requestsOf(sum(having))} requests with it, where the others had ${usual}: they stand still, or nobody asks them`;
  return { kind: 'unclear', text };
}

function compare(having: Traffic, others: Traffic, mostPoints: number) {
  const counts = `${having.decisions} decisions with it, ${others.decisions} without`;
  if (requestsOf(having) < minRequests || requestsOf(others) < minRequests) {
    return { kind: 'silent', text: `${counts}: fewer than ${minRequests}` } as const;
  }
  const measures = toMeasures(mostPoints);
  const bad = measures.find((measure) => isAbove(having, others, measure));
  if (bad !== undefined) {
    const [one, other] = [having, others].map((side) => toPercent(share(side, bad)));
    const text = `${bad.name} ${one} where it is, ${other} elsewhere (${counts})`;
    return { kind: 'bad', text } as const;
  }
  const texts = measures.map((measure) => {
    const [one, other] = [having, others].map((side) => toPercent(share(side, measure)));
    return `${measure.name} ${one} beside ${other}`;
  });
  return { kind: 'good', text: `within the bounds: ${texts.join('; ')} (${counts})` } as const;
}

function isAbove(having: Traffic, others: Traffic, measure: Measure): boolean {
  const [one, other] = [share(having, measure), share(others, measure)];
  // Rounded: 45 % is ten points above 35 %, not a little more.
  const points = Number(((one - other) * 100).toFixed(9));
  if (points > measure.mostPoints) return true;
  const { fewPoints } = measure;
  if (fewPoints === undefined || points < fewPoints || one < halfAgain * other) return false;
  const [ofHaving, ofOthers] = [requestsOf(having), requestsOf(others)];
  const both = (one * ofHaving + other * ofOthers) / (ofHaving + ofOthers);
  const deviation = Math.sqrt(both * Math.max(0, 1 - both) * (1 / ofHaving + 1 / ofOthers));
  return one - other > chance * deviation;
}

export interface Compared {
  /** Of the node group; undefined for workers outside of those with steps of their own. */
  readonly name: string | undefined;
  readonly having: readonly CountedWorker[];
  readonly others: readonly CountedWorker[];
}

/** Each group by itself, as groups differ in their traffic; where none has workers on both sides, all together. */
export function judgeAll(
  groups: readonly Compared[],
  mostPoints: number,
  hadTime = true,
): Judgement {
  const divided = groups.filter(({ having, others }) => having.length > 0 && others.length > 0);
  const together = {
    name: undefined,
    having: groups.flatMap(({ having }) => having),
    others: groups.flatMap(({ others }) => others),
  };
  const judgements = (divided.length > 0 ? divided : [together]).map(({ name, having, others }) => {
    const judgement = judge(having, others, mostPoints, hadTime);
    if (name === undefined) return judgement;
    return { ...judgement, text: `node group '${toExcerpt(name)}': ${judgement.text}` };
  });
  const good = judgements.map(({ text }) => text).join('; ');
  const worst = (kind: Judgement['kind']) => judgements.find((each) => each.kind === kind);
  return worst('bad') ?? worst('unclear') ?? worst('silent') ?? { kind: 'good', text: good };
}

function sum(all: readonly Traffic[]): Traffic {
  let [decisions, overLimit, errors, noMatch] = [0, 0, 0, 0];
  for (const each of all) {
    decisions += each.decisions;
    overLimit += each.overLimit;
    errors += each.errors;
    noMatch += each.noMatch;
  }
  return { decisions, overLimit, errors, noMatch };
}

function without(all: Traffic, one: Traffic): Traffic {
  return {
    decisions: all.decisions - one.decisions,
    overLimit: all.overLimit - one.overLimit,
    errors: all.errors - one.errors,
    noMatch: all.noMatch - one.noMatch,
  };
}

function requestsOf({ decisions, errors }: Traffic): number {
  return decisions + errors;
}

function share(side: Traffic, { count }: Measure): number {
  return side[count] / requestsOf(side);
}

function toPercent(value: number): string {
  return `${(value * 100).toFixed(1)} %`;
}
