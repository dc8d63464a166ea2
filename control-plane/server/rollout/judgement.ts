// Compares the workers that have a revision with the others, and each with itself before it was offered it. Pure.
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import { addTraffic, noTraffic, type Traffic } from '../fleet/tally.ts';

/** Of one domain. */
export interface DomainTraffic {
  readonly hits: number;
  readonly overLimit: number;
  /** This and `noMatch` are left out where the worker does not report them. */
  readonly errors?: number;
  readonly noMatch?: number;
  readonly gone?: number;
}

export interface Figures extends Traffic {
  /** Hits of rules that are intended to go: with the revision they are without a rule. */
  readonly gone?: number;
  readonly domains: ReadonlyMap<string, DomainTraffic>;
}

const noHits: DomainTraffic = { hits: 0, overLimit: 0, errors: 0, noMatch: 0 };

/** The counts of one instance of a worker. */
export interface CountedWorker extends Figures {
  /** The name for people. */
  readonly name: string;
  /** Before the revision was offered to any of these workers; undefined where that is not known. */
  readonly before: Figures | undefined;
  /** The kind of its store, which it cannot reach; undefined where it can. */
  readonly storeAway?: string | undefined;
}

export type Judgement =
  | { readonly kind: 'good'; readonly text: string }
  /** Too few requests. `isQuiet`: of the whole fleet. */
  | { readonly kind: 'silent'; readonly text: string; readonly isQuiet?: boolean }
  /** Those with it get no requests while the others do. */
  | { readonly kind: 'stalled'; readonly text: string }
  /** One worker alone makes the difference, or there is nothing to compare with. */
  | { readonly kind: 'unclear'; readonly text: string }
  /** It would be bad, while workers cannot reach their store. */
  | { readonly kind: 'store'; readonly text: string }
  /** `by`: what is above its bounds. */
  | { readonly kind: 'bad'; readonly text: string; readonly by: keyof Traffic };

/** With fewer requests, differences may be chance. */
export const minRequests = 100;
/** With as many with it, none of them decides alone. */
const minWorkersOfSeveral = 3;

type Counted = Exclude<keyof Traffic, 'decisions'>;

/** What is compared, with the bounds of the difference between both sides in points. */
interface Measure {
  readonly name: string;
  readonly count: Counted;
  /** Above these it is bad. */
  readonly mostPoints: number;
  /** Above these it is bad where it is half as much again, and not chance; none: never. */
  readonly fewPoints: number | undefined;
}

export const maxErrorPoints = 1;
export const fewPoints = 3;
export const halfAgain = 1.5;
/** Of a share, between what was usual and what the others have. */
const leastShown = 0.005;
/** Of the standard normal distribution: one in a hundred differences by chance is above. */
const chance = 2.326;

/** Of one domain. */
function toDomainMeasures(mostPoints: number): readonly Measure[] {
  return [
    { name: 'errors', count: 'errors', mostPoints, fewPoints },
    { name: 'over limit', count: 'overLimit', mostPoints, fewPoints },
    { name: 'without a rule', count: 'noMatch', mostPoints, fewPoints },
  ];
}

/** Of all requests, of which fewer errors are enough. */
function toMeasures(mostPoints: number): readonly Measure[] {
  const ofErrors = { mostPoints: maxErrorPoints, fewPoints: undefined };
  return toDomainMeasures(mostPoints).map((measure) =>
    measure.count === 'errors' ? { ...measure, ...ofErrors } : measure,
  );
}

/** Counts of all requests, or of those for one domain. */
type Counts = Traffic & Pick<Figures, 'gone'>;

/** Those of one worker. */
interface Side extends Counts {
  readonly name: string;
  readonly before: Counts | undefined;
}

export interface Compared {
  /** Of the node group; undefined for workers outside of those with steps of their own. */
  readonly name: string | undefined;
  readonly having: readonly CountedWorker[];
  readonly others: readonly CountedWorker[];
}

/** Each group by itself, as groups differ in their traffic. `hadTime`: whether those with it had the time to report what
 * they count. */
export function judgeAll(
  groups: readonly Compared[],
  mostPoints: number,
  hadTime: boolean,
): Judgement {
  const judgement = judgeGroups(groups, mostPoints, hadTime);
  const having = groups.flatMap((group) => group.having);
  const all = [...having, ...groups.flatMap(({ others }) => others)];
  if (judgement.kind === 'bad' && judgement.by !== 'noMatch') {
    // What the store of another worker does explains errors alone.
    const store = nameStore(judgement.by === 'errors' ? all : having);
    if (store !== undefined) return { kind: 'store', text: `${judgement.text}, while ${store}` };
  }
  if (judgement.kind !== 'silent') return judgement;
  const own = nameStore(having);
  if (own !== undefined) return { kind: 'unclear', text: `${judgement.text}; ${own}` };
  return { ...judgement, isQuiet: requestsOf(sum(all)) < minRequests };
}

function nameStore(workers: readonly CountedWorker[]): string | undefined {
  const away = workers.filter(({ storeAway }) => storeAway !== undefined);
  const [first] = away;
  if (first === undefined) return undefined;
  const many = away.length === 1 ? '' : `and ${away.length - 1} more `;
  return `worker ${first.name} ${many}cannot reach the store (${first.storeAway})`;
}

function judgeGroups(groups: readonly Compared[], mostPoints: number, hadTime: boolean): Judgement {
  const compared = groups.filter(({ having }) => having.length > 0);
  const elsewhere = groups.flatMap(({ others }) => others);
  const judgements = compared.map((group) => {
    const { name, having, others } = group;
    const found = judge(group, mostPoints);
    // Those that have no others in their group stand still where all others do not.
    const beside = others.length > 0 ? others : elsewhere;
    const stalled = hadTime && found.kind === 'silent' ? findStandstill(having, beside) : undefined;
    const judgement = stalled ?? found;
    if (name === undefined) return judgement;
    return { ...judgement, text: `node group '${toExcerpt(name)}': ${judgement.text}` };
  });
  const good = judgements.map(({ text }) => text).join('; ');
  const worst = (kind: Judgement['kind']) => judgements.find((each) => each.kind === kind);
  if (judgements.length === 0) {
    return compare(sumSide([]), sumSide(elsewhere), toMeasures(mostPoints));
  }
  const worse = worst('bad') ?? worst('unclear') ?? worst('stalled') ?? worst('silent');
  return worse ?? { kind: 'good', text: good };
}

/**
 * Bad when errors are more than one point above what is usual for these workers, or when hits over limit or descriptors
 * without a rule, of all or of one domain, or the errors of one domain, are more than `mostPoints` above, or more than
 * three points and half as many again, which is not chance. Not where it is so because of a single worker of more than two with the revision.
 */
function judge({ having, others }: Compared, mostPoints: number): Judgement {
  const all = judgeSides(having, weigh(others), toMeasures(mostPoints));
  if (all.kind !== 'good') return all;
  for (const head of new Set(having.flatMap(({ domains }) => [...domains.keys()]))) {
    for (const measure of toDomainMeasures(mostPoints)) {
      const { count } = measure;
      const of = (workers: readonly CountedWorker[]) =>
        workers.flatMap((worker) => toDomain(worker, head, count) ?? []);
      const ofHaving = of(having);
      if (ofHaving.every((side) => side[count] === 0)) continue;
      const judgement = judgeSides(ofHaving, weigh(of(others)), [measure]);
      if (judgement.kind !== 'bad' && judgement.kind !== 'unclear') continue;
      if (judgement.kind === 'unclear' && !judgement.isOfOne) continue;
      return { ...judgement, text: `domain '${toExcerpt(head)}': ${judgement.text}` };
    }
  }
  return all;
}

type SidesJudgement = Judgement & { readonly isOfOne?: boolean };

function judgeSides(
  having: readonly Side[],
  others: readonly Side[],
  measures: readonly Measure[],
): SidesJudgement {
  const [one, other] = [sumSide(having), sumSide(others)];
  const all = compare(one, other, measures);
  // Of two one may hide what the other one has; that it is bad, one alone is enough for.
  const isFew = having.length < minWorkersOfSeveral;
  if (all.kind === 'silent' || having.length < 2 || (isFew && all.kind !== 'good')) return all;
  for (const worker of having) {
    const rest = compare(without(one, worker), other, measures);
    if (rest.kind === all.kind || (all.kind === 'good' && rest.kind === 'silent')) continue;
    const texts = [all, rest].map((each) => (each.kind === 'good' ? 'no difference' : each.text));
    const text = `worker ${worker.name} alone makes the difference: ${texts[0]}; without it ${texts[1]}`;
    return { kind: 'unclear', text, isOfOne: true };
  }
  return all;
}

/** Of one domain, what its share of `count` is of; undefined of a worker that does not report it. */
function toDomain(
  { name, domains, before }: CountedWorker,
  head: string,
  count: Counted,
): Side | undefined {
  const now = toDomainTraffic(domains.get(head), count);
  const past = before && toDomainTraffic(before.domains.get(head), count);
  return now && { name, ...now, before: past };
}

function toDomainTraffic(traffic: DomainTraffic = noHits, count: Counted): Counts | undefined {
  const { hits, gone = 0, [count]: counted } = traffic;
  if (counted === undefined) return undefined;
  if (count !== 'noMatch') return { ...noTraffic, decisions: hits, [count]: counted };
  // Hits over limit are among the hits, the others are not.
  return { ...noTraffic, decisions: hits + counted + gone, noMatch: counted, gone };
}

/** With more than two, none counts as more than twice the one in the middle: what a single one says of itself does not
 * decide what is usual. */
function weigh(others: readonly Side[]): readonly Side[] {
  if (others.length < minWorkersOfSeveral) return others;
  const sorted = others.map(requestsOf).sort((a, b) => a - b);
  const most = 2 * (sorted[Math.floor(sorted.length / 2)] ?? 0);
  return others.map((worker) => {
    return { ...worker, ...scale(worker, Math.min(1, most / Math.max(1, requestsOf(worker)))) };
  });
}

/** Those with it would have enough requests if they had as many as the others: they stand still, or their callers have left
 * them. */
function findStandstill(
  having: readonly Counts[],
  others: readonly CountedWorker[],
): Judgement | undefined {
  if (having.length === 0 || others.length === 0) return undefined;
  const sums = { having: sum(having), others: sum(weigh(others)) };
  const usual = Math.floor((requestsOf(sums.others) * having.length) / others.length);
  if (requestsOf(sums.having) >= minRequests || usual < minRequests) return undefined;
  const text = `${requestsOf(sums.having)} requests with it, where the others had ${usual}: they stand still, or nobody asks them`;
  return { kind: 'stalled', text };
}

/** What is usual: of those with it before it, and of the others now and before. Undefined where that is not known. */
interface Usual {
  readonly before: Counts | undefined;
  readonly others: Counts | undefined;
  readonly othersBefore: Counts | undefined;
}

function compare(having: SideSums, others: SideSums, measures: readonly Measure[]): Judgement {
  const { now: one } = having;
  const { now: other } = others;
  const isElsewhere = requestsOf(other) >= minRequests;
  const usual = {
    before: toBefore(having),
    others: isElsewhere ? other : undefined,
    othersBefore: isElsewhere ? toBefore(others) : undefined,
  };
  const isAlone = having.workers > 0 && others.workers === 0;
  const earlier = isElsewhere || !usual.before ? '' : `, ${usual.before.decisions} before it`;
  const counts = isAlone
    ? `${one.decisions} decisions with it, which all have${earlier}`
    : `${one.decisions} decisions with it, ${other.decisions} without${earlier}`;
  const isNothing = !isElsewhere && usual.before === undefined;
  if (requestsOf(one) < minRequests || (isNothing && !isAlone)) {
    return { kind: 'silent', text: `${counts}: fewer than ${minRequests}` };
  }
  if (isNothing) {
    const text = `${counts}: there are no figures of these workers from before to compare with`;
    return { kind: 'unclear', text };
  }
  const bad = measures.find((measure) => isAbove(one, usual, measure));
  if (bad !== undefined) {
    const text = describe(one, usual, bad, [' where it is', ', ', ' elsewhere']);
    return { kind: 'bad', text: `${bad.name} ${text} (${counts})`, by: bad.count };
  }
  const texts = measures.map(
    (measure) => `${measure.name} ${describe(one, usual, measure, ['', ' beside ', ''])}`,
  );
  return { kind: 'good', text: `within the bounds: ${texts.join('; ')} (${counts})` };
}

/** Such as `5.0 % where it is (0.1 % before), 0.2 % elsewhere`; without what was before where that is all the same. */
function describe(
  having: Counts,
  usual: Usual,
  measure: Measure,
  names: readonly [string, string, string],
): string {
  const [here, between, elsewhere] = names;
  const { before, others, othersBefore } = usual;
  const isSame =
    others !== undefined &&
    Math.abs(toUsualShare(usual, measure) - share(others, measure)) < leastShown;
  const percentOf = (side: Counts) => {
    const gone = goneOf(side, measure.count) / requestsOf(side);
    const rest = gone === 0 ? '' : ` and ${toPercent(gone)} of rules that go`;
    return `${toPercent(share(side, measure) - gone)}${rest}`;
  };
  const past = (side: Counts | undefined) =>
    side === undefined || isSame ? '' : ` (${percentOf(side)} before)`;
  const own = `${percentOf(having)}${here}${past(before)}`;
  if (others === undefined) return own;
  return `${own}${between}${percentOf(others)}${elsewhere}${past(before && othersBefore)}`;
}

/** Of one side, from which a worker can be taken: each is left out once, also where there are thousands. */
interface SideSums {
  readonly workers: number;
  readonly now: Counts;
  /** What those had before of whom that is known, each with as many requests as it has now: that some have more of them
   * than before is no difference. */
  readonly past: Counts;
  /** What they had of requests before. */
  readonly pastRequests: number;
  /** Requests of those of whom it is not known, the two that have most. */
  readonly unknown: readonly number[];
}

function sumSide(side: readonly Side[]): SideSums {
  const known = side.flatMap((worker) => pastOf(worker) ?? []);
  const unknown = side.filter((worker) => pastOf(worker) === undefined).map(requestsOf);
  return {
    workers: side.length,
    now: sum(side),
    past: sum(known.map(({ past }) => past)),
    pastRequests: known.reduce((all, { requests }) => all + requests, 0),
    unknown: unknown.sort((a, b) => b - a).slice(0, 2),
  };
}

function without(sums: SideSums, worker: Side): SideSums {
  const { past, requests } = pastOf(worker) ?? { past: noTraffic, requests: 0 };
  const isHeaviest = requests === 0 && requestsOf(worker) === sums.unknown[0];
  return {
    workers: sums.workers - 1,
    now: addCounts(sums.now, worker, -1),
    past: addCounts(sums.past, past, -1),
    pastRequests: sums.pastRequests - requests,
    unknown: isHeaviest ? sums.unknown.slice(1) : sums.unknown,
  };
}

/** Undefined where it had too few requests, or that is not known. */
function pastOf(worker: Side): { readonly past: Counts; readonly requests: number } | undefined {
  const { before } = worker;
  if (before === undefined || requestsOf(before) < minRequests) return undefined;
  const requests = requestsOf(before);
  return { past: scale(before, (100 * requestsOf(worker)) / requests), requests };
}

/** Undefined where it is not known of one that has more than next to nothing now, which makes no difference. */
function toBefore({ workers, now, past, pastRequests, unknown }: SideSums): Counts | undefined {
  const [heaviest] = unknown;
  const isUnknown =
    heaviest !== undefined && heaviest * workers * minWorkersOfSeveral >= requestsOf(now);
  if (isUnknown || requestsOf(past) === 0) return undefined;
  return scale(past, pastRequests / requestsOf(past));
}

function scale({ gone = 0, ...counts }: Counts, factor: number): Counts {
  const { decisions, overLimit, errors, noMatch } = counts;
  return {
    gone: Math.round(gone * factor),
    decisions: Math.round(decisions * factor),
    overLimit: Math.round(overLimit * factor),
    errors: Math.round(errors * factor),
    noMatch: Math.round(noMatch * factor),
  };
}

/** Of those with it, had they changed as the others did: not below what they had where the others have no less now. */
function toUsualShare({ before, others, othersBefore }: Usual, measure: Measure): number {
  const now = others && share(others, measure);
  if (before === undefined) return now ?? 0;
  const own = share(before, measure);
  if (now === undefined) return own;
  if (othersBefore === undefined) return Math.max(own, now);
  return Math.max(own + now - share(othersBefore, measure), Math.min(own, now));
}

function isAbove(having: Counts, usual: Usual, measure: Measure): boolean {
  const [one, other] = [share(having, measure), toUsualShare(usual, measure)];
  // 45 % is ten points above 35 %, and 15 % half as many again as 10 %: neither a little more nor a little less.
  const toPoints = (share: number) => Number((share * 100).toFixed(9));
  const points = toPoints(one - other);
  if (points > measure.mostPoints) return true;
  const { fewPoints } = measure;
  const isFew = fewPoints === undefined || points < fewPoints;
  if (isFew || toPoints(one - halfAgain * other) < 0) return false;
  const sides = [having, usual.before, usual.others, usual.othersBefore].flatMap((side) =>
    side === undefined ? [] : requestsOf(side),
  );
  const ofHaving = requestsOf(having);
  const ofOthers = requestsOf(usual.others ?? usual.before ?? having);
  const both = (one * ofHaving + other * ofOthers) / (ofHaving + ofOthers);
  const variance = both * Math.max(0, 1 - both) * sides.reduce((all, count) => all + 1 / count, 0);
  return one - other > chance * Math.sqrt(variance);
}

function sum(all: readonly Counts[]): Counts {
  return all.reduce((total, each) => addCounts(total, each), noTraffic);
}

function addCounts(all: Counts, more: Counts, times = 1): Counts {
  return { ...addTraffic(all, more, times), gone: (all.gone ?? 0) + times * (more.gone ?? 0) };
}

function requestsOf({ decisions, errors }: Counts): number {
  return decisions + errors;
}

function share(side: Counts, { count }: Measure): number {
  return (side[count] + goneOf(side, count)) / requestsOf(side);
}

function goneOf({ gone = 0 }: Counts, count: Counted): number {
  return count === 'noMatch' ? gone : 0;
}

function toPercent(value: number): string {
  return `${(value * 100).toFixed(1)} %`;
}
