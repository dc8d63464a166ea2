// Compares the workers that have a revision with the others, and each worker with itself before it was offered the
// revision. Pure.
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import { addTraffic, noTraffic, type Traffic } from '../fleet/tally.ts';

/** The traffic of one domain. */
export interface DomainTraffic {
  readonly hits: number;
  readonly overLimit: number;
  /** `errors` and `noMatch` are omitted if the worker does not report them. */
  readonly errors?: number;
  readonly noMatch?: number;
  readonly gone?: number;
}

export interface Figures extends Traffic {
  /** Hits of rules whose removal is intended: with the revision they match no rule. */
  readonly gone?: number;
  readonly domains: ReadonlyMap<string, DomainTraffic>;
}

const noHits: DomainTraffic = { hits: 0, overLimit: 0, errors: 0, noMatch: 0 };

/** The counts of one instance of a worker. */
export interface CountedWorker extends Figures {
  /** Human-readable. */
  readonly name: string;
  /** The figures before the revision was offered to any of these workers; undefined if they are not known. */
  readonly before: Figures | undefined;
  /** The kind of the worker's store if it is unreachable; otherwise undefined. */
  readonly storeAway?: string | undefined;
}

export type Judgement =
  | { readonly kind: 'good'; readonly text: string }
  /** There are too few requests. `isQuiet`: in the whole fleet. */
  | { readonly kind: 'silent'; readonly text: string; readonly isQuiet?: boolean }
  /** One worker alone makes the difference, there is nothing to compare with, or the workers with the revision get no
   * requests while the others do. */
  | { readonly kind: 'unclear'; readonly text: string }
  /** The revision would be bad, but workers cannot reach their store. */
  | { readonly kind: 'store'; readonly text: string }
  /** `by`: the count that exceeds its bounds. */
  | { readonly kind: 'bad'; readonly text: string; readonly by: keyof Traffic };

/** With fewer requests, differences may be due to chance. */
export const minRequests = 100;
/** In a quiet fleet, fewer requests that went wrong than this may be due to chance. */
const fewestWrong = 3;
/** With at least this many workers on a side, no single one of them decides. */
const minWorkersOfSeveral = 3;

type Counted = Exclude<keyof Traffic, 'decisions'>;

/** A count that is compared, with the bounds of the difference between both sides in percentage points. */
interface Measure {
  readonly name: string;
  readonly count: Counted;
  /** A greater difference is bad. */
  readonly mostPoints: number;
  /** A greater difference is bad if the share is also at least half as much again and chance is ruled out; undefined:
   * never. */
  readonly fewPoints: number | undefined;
}

export const maxErrorPoints = 1;
export const fewPoints = 3;
export const halfAgain = 1.5;
/** The smallest difference between the usual share and that of the others that is shown. */
const leastShown = 0.005;
/** The quantile of the standard normal distribution that one in a hundred differences exceeds by chance. */
const chance = 2.326;

/** The measures of one domain. */
function toDomainMeasures(mostPoints: number): readonly Measure[] {
  return [
    { name: 'errors', count: 'errors', mostPoints, fewPoints },
    { name: 'over limit', count: 'overLimit', mostPoints, fewPoints },
    { name: 'without a rule', count: 'noMatch', mostPoints, fewPoints },
  ];
}

/** The measures of all requests, for which fewer errors are enough. */
function toMeasures(mostPoints: number): readonly Measure[] {
  const ofErrors = { mostPoints: maxErrorPoints, fewPoints: undefined };
  return toDomainMeasures(mostPoints).map((measure) =>
    measure.count === 'errors' ? { ...measure, ...ofErrors } : measure,
  );
}

/** The counts of all requests, or of those for one domain. */
type Counts = Traffic & Pick<Figures, 'gone'>;

/** The counts of one worker. */
interface Side extends Counts {
  readonly name: string;
  readonly before: Counts | undefined;
}

export interface Compared {
  /** The name of the node group; undefined for workers outside of groups that have their own steps. */
  readonly name: string | undefined;
  readonly having: readonly CountedWorker[];
  readonly others: readonly CountedWorker[];
}

/** Judges each group by itself, as groups differ in their traffic. `hadTime`: whether the workers with the revision had
 * the time to report their counts. */
export function judgeAll(
  groups: readonly Compared[],
  mostPoints: number,
  hadTime: boolean,
): Judgement {
  const judgement = judgeGroups(groups, mostPoints, hadTime);
  const having = groups.flatMap((group) => group.having);
  const all = [...having, ...groups.flatMap(({ others }) => others)];
  if (judgement.kind === 'bad' && judgement.by !== 'noMatch') {
    // An unreachable store of a worker without the revision explains only errors.
    const store = nameStore(judgement.by === 'errors' ? all : having);
    if (store !== undefined) return { kind: 'store', text: `${judgement.text}, while ${store}` };
  }
  if (judgement.kind !== 'silent') return judgement;
  const own = nameStore(having);
  if (own !== undefined) return { kind: 'unclear', text: `${judgement.text}; ${own}` };
  if (requestsOf(sum(all)) >= minRequests) return judgement;
  const few = groups.map(findFewBad).find((text) => text !== undefined);
  if (few === undefined) return { ...judgement, isQuiet: true };
  return { kind: 'unclear', text: `${few}, of fewer than ${minRequests} requests in the fleet` };
}

/** Finds, in a fleet that is too quiet to be judged, that the few requests with the revision did worse than chance
 * allows. */
function findFewBad({ having, others }: Compared): string | undefined {
  const measures = toMeasures(Number.POSITIVE_INFINITY).flatMap((measure) => {
    const isChance = sum(having)[measure.count] < fewestWrong;
    return isChance ? [] : { ...measure, mostPoints: Number.POSITIVE_INFINITY, fewPoints: 0 };
  });
  const found = compare(sumSide(having), sumSide(others), measures, 1);
  return found.kind === 'bad' ? found.text : undefined;
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
    const found = judgeGroup(group, mostPoints);
    // Workers that have no others in their group are stalled if the workers of the other groups are not.
    const beside = others.length > 0 ? others : elsewhere;
    const stalled =
      found.kind === 'silent' ? findStandstill(having, beside) : findStalled(having, beside);
    const isStalled = hadTime && (found.kind === 'silent' || found.kind === 'good');
    const judgement = (isStalled ? stalled : undefined) ?? found;
    if (name === undefined) return judgement;
    return { ...judgement, text: `node group '${toExcerpt(name)}': ${judgement.text}` };
  });
  const good = judgements.map(({ text }) => text).join('; ');
  const worst = (kind: Judgement['kind']) => judgements.find((each) => each.kind === kind);
  if (judgements.length === 0) {
    return compare(sumSide([]), sumSide(elsewhere), toMeasures(mostPoints));
  }
  const worse =
    judgements.find(isBadByItself) ?? worst('bad') ?? worst('unclear') ?? worst('silent');
  return worse ?? { kind: 'good', text: good };
}

/** Bad if errors are more than one point above what is usual for these workers. Also bad if hits over the limit or
 * descriptors without a rule (of all domains or of one), or the errors of one domain, are more than `mostPoints` above,
 * or more than three points and half as much again with chance ruled out. Not bad if a single worker, of more than two
 * with the revision, makes the difference. */
function judgeGroup({ having, others }: Compared, mostPoints: number): Judgement {
  const all = judgeSides(having, weigh(others), toMeasures(mostPoints));
  if (all.kind === 'silent' || isBadByItself(all)) return all;
  let errors = all.kind === 'bad' ? all : undefined;
  let unclear: Judgement | undefined;
  for (const head of new Set(having.flatMap(({ domains }) => [...domains.keys()]))) {
    for (const measure of toDomainMeasures(mostPoints)) {
      const { count } = measure;
      const of = (workers: readonly CountedWorker[]) =>
        workers.flatMap((worker) => toDomain(worker, head, count) ?? []);
      const ofHaving = of(having);
      if (ofHaving.every((side) => side[count] === 0)) continue;
      const judgement = judgeSides(ofHaving, weigh(of(others)), [measure]);
      const found = { ...judgement, text: `domain '${toExcerpt(head)}': ${judgement.text}` };
      if (isBadByItself(judgement)) return found;
      if (found.kind === 'bad') errors ??= found;
      else if (judgement.isOfOne) unclear ??= found;
    }
  }
  return errors ?? (all.kind === 'good' ? unclear : undefined) ?? all;
}

/** Errors may be the store's: they hide no other evidence. */
function isBadByItself(judgement: Judgement): boolean {
  return judgement.kind === 'bad' && judgement.by !== 'errors';
}

type SidesJudgement = Judgement & { readonly isOfOne?: boolean };

function judgeSides(
  having: readonly Side[],
  others: readonly Side[],
  measures: readonly Measure[],
): SidesJudgement {
  const [one, other] = [sumSide(having), sumSide(others)];
  const all = compare(one, other, measures);
  // Of two workers one may hide what the other one has, but one alone is enough for a bad judgement.
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

/** Makes the side of one domain, with the total that its `count` is a share of; undefined if the worker does not report
 * it. */
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
  // Hits over the limit are among the hits; requests without a rule are not.
  return { ...noTraffic, decisions: hits + counted + gone, noMatch: counted, gone };
}

/** Limits each of three or more workers to twice the median number of requests: no single worker decides by its reports
 * what is usual. */
function weigh(others: readonly Side[]): readonly Side[] {
  if (others.length < minWorkersOfSeveral) return others;
  const sorted = others.map(requestsOf).sort((a, b) => a - b);
  const most = 2 * (sorted[Math.floor(sorted.length / 2)] ?? 0);
  return others.map((worker) => {
    return { ...worker, ...scale(worker, Math.min(1, most / Math.max(1, requestsOf(worker)))) };
  });
}

/** Finds that the workers with the revision are stalled or that their callers have left: at the rate of the others they
 * would have enough requests. */
function findStandstill(
  having: readonly Counts[],
  others: readonly CountedWorker[],
): Judgement | undefined {
  if (having.length === 0 || others.length === 0) return undefined;
  const sums = { having: sum(having), others: sum(weigh(others)) };
  const usual = Math.floor((requestsOf(sums.others) * having.length) / others.length);
  if (requestsOf(sums.having) >= minRequests || usual < minRequests) return undefined;
  const text = `${requestsOf(sums.having)} requests with it, where the others had ${usual}: they are stalled, or no caller asks them`;
  return { kind: 'unclear', text };
}

/** Finds that two or more workers with the revision, and a third of them, have lost nearly all of the requests that they
 * had before, which the others have not: the requests of the rest do not prove that these are well. */
function findStalled(
  having: readonly CountedWorker[],
  others: readonly CountedWorker[],
): Judgement | undefined {
  const known = others.filter(({ before }) => before !== undefined);
  const past = sum(known.flatMap(({ before }) => before ?? []));
  const now = requestsOf(sum(weigh(known)));
  const [pace, average] = [now / Math.max(1, requestsOf(past)), now / Math.max(1, known.length)];
  const isStalled = (worker: CountedWorker) => {
    // The earlier counts of a worker that has reconnected may be of another span than those of the others.
    const usual = Math.min(average, pace * requestsOf(worker.before ?? noTraffic));
    return usual >= minRequests && 10 * requestsOf(worker) < usual;
  };
  const stalled = having.filter(isStalled);
  const [first, second] = stalled;
  const isMany = second !== undefined && 3 * stalled.length >= having.length;
  const elsewhere = known.filter(isStalled).length / Math.max(1, known.length);
  if (first === undefined || !isMany || elsewhere * having.length >= stalled.length)
    return undefined;
  const text = `${stalled.length} of ${having.length} workers with it, such as ${first.name}, get hardly any requests, unlike before: they are stalled, or no caller asks them`;
  return { kind: 'unclear', text };
}

/** The usual counts: of the workers with the revision before they had it, and of the others now and before. Undefined
 * if not known. */
interface Usual {
  readonly before: Counts | undefined;
  readonly others: Counts | undefined;
  readonly othersBefore: Counts | undefined;
}

/** With fewer requests than `least` nothing is compared. If there is nothing to compare with, no errors are usual. */
function compare(
  having: SideSums,
  others: SideSums,
  measures: readonly Measure[],
  least = minRequests,
): Judgement {
  const { now: one } = having;
  const { now: other } = others;
  const isElsewhere = requestsOf(other) >= least;
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
  const isUnknown = isNothing && least === minRequests;
  if (requestsOf(one) < least || (isUnknown && !isAlone)) {
    return { kind: 'silent', text: `${counts}: fewer than ${minRequests}` };
  }
  if (isUnknown) {
    const text = `${counts}: there are no figures of these workers from before to compare with`;
    return { kind: 'unclear', text };
  }
  const bad = measures.findLast(
    (measure) => (!isNothing || measure.count === 'errors') && isAbove(one, usual, measure),
  );
  if (bad !== undefined) {
    const text = describe(one, usual, bad, [' where it is', ', ', ' elsewhere']);
    return { kind: 'bad', text: `${bad.name} ${text} (${counts})`, by: bad.count };
  }
  const texts = measures.map(
    (measure) => `${measure.name} ${describe(one, usual, measure, ['', ' beside ', ''])}`,
  );
  return { kind: 'good', text: `within the bounds: ${texts.join('; ')} (${counts})` };
}

/** Formats as `5.0 % where it is (0.1 % before), 0.2 % elsewhere`; without the earlier shares if they are all the
 * same. */
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

/** The sums of one side, from which single workers can be subtracted: each is left out once, even if there are
 * thousands. */
interface SideSums {
  readonly workers: number;
  readonly now: Counts;
  /** The earlier counts of the workers for which they are known, each scaled to its present number of requests: a shift
   * of traffic between workers is no difference. */
  readonly past: Counts;
  /** The number of requests in these earlier counts. */
  readonly pastRequests: number;
  /** The requests of workers whose earlier counts are not known: the two largest numbers. */
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

/** Undefined if the worker had too few requests before, or that is not known. */
function pastOf(worker: Side): { readonly past: Counts; readonly requests: number } | undefined {
  const { before } = worker;
  if (before === undefined || requestsOf(before) < minRequests) return undefined;
  const requests = requestsOf(before);
  return { past: scale(before, (100 * requestsOf(worker)) / requests), requests };
}

/** Undefined if the earlier counts of a worker with a considerable part of the requests are not known. */
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

/** The share that the workers with the revision would have, had it changed as that of the others did; not below their
 * earlier share unless the others have a smaller one now. */
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
  // Rounds, so that 45 % is exactly ten points above 35 %, and 15 % is exactly half as much again as 10 %.
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
