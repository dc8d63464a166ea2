// Compares the workers that have a revision with those that do not. Pure.
import { toExcerpt } from '../../shared/text-excerpt.ts';

/** Counts of one or several workers. A failed request is no decision. */
export interface Traffic {
  readonly decisions: number;
  readonly overLimit: number;
  readonly errors: number;
}

/** The counts of one instance of a worker. */
export interface CountedWorker extends Traffic {
  /** The name for people. */
  readonly name: string;
}

export type Judgement =
  | { readonly kind: 'good'; readonly text: string }
  /** Too few decisions on either side. */
  | { readonly kind: 'silent'; readonly text: string }
  /** One worker alone makes the difference. */
  | { readonly kind: 'unclear'; readonly text: string }
  | { readonly kind: 'bad'; readonly text: string };

/** With fewer decisions, differences may be chance. */
const minDecisions = 100;
export const maxErrorPoints = 1;
export const maxOverLimitFactor = 3;
/** With as many on a side, none of them decides alone. */
const minWorkersOfSeveral = 3;

/**
 * Bad when errors are more than one point above those of the others, or hits over limit more than
 * `overLimitPoints` above and more than three times as many; and this without each single worker, too, on each
 * side with more than two.
 */
export function judge(
  having: readonly CountedWorker[],
  others: readonly CountedWorker[],
  overLimitPoints: number,
): Judgement {
  const sums = { having: sum(having), others: sum(others) };
  const all = compare(sums.having, sums.others, overLimitPoints);
  for (const side of ['having', 'others'] as const) {
    const workers = side === 'having' ? having : others;
    if (workers.length < minWorkersOfSeveral) continue;
    for (const worker of workers) {
      const left = { ...sums, [side]: without(sums[side], worker) };
      const rest = compare(left.having, left.others, overLimitPoints);
      if (rest.kind === all.kind || (all.kind === 'good' && rest.kind === 'silent')) continue;
      const texts = [all, rest].map((each) => (each.kind === 'good' ? 'no difference' : each.text));
      const text = `worker ${worker.name} alone makes the difference: ${texts[0]}; without it ${texts[1]}`;
      return { kind: 'unclear', text };
    }
  }
  return all;
}

function compare(having: Traffic, others: Traffic, overLimitPoints: number) {
  const counts = `${having.decisions} decisions with it, ${others.decisions} without`;
  if (
    having.decisions + having.errors < minDecisions ||
    others.decisions + others.errors < minDecisions
  ) {
    return { kind: 'silent', text: `${counts}: fewer than ${minDecisions}` } as const;
  }
  const errors = [share(having.errors, having), share(others.errors, others)] as const;
  if (errors[0] - errors[1] > maxErrorPoints / 100) {
    return { kind: 'bad', text: `${describe('errors', errors)} (${counts})` } as const;
  }
  const over = [share(having.overLimit, having), share(others.overLimit, others)] as const;
  const isFarAbove = over[0] - over[1] > overLimitPoints / 100;
  if (isFarAbove && over[0] > maxOverLimitFactor * over[1]) {
    return { kind: 'bad', text: `${describe('over limit', over)} (${counts})` } as const;
  }
  const text = `${describe('errors', errors)}; ${describe('over limit', over)} (${counts})`;
  return { kind: 'good', text } as const;
}

export interface Compared {
  /** Of the node group; undefined for workers outside of those with steps of their own. */
  readonly name: string | undefined;
  readonly having: readonly CountedWorker[];
  readonly others: readonly CountedWorker[];
}

/** Each group by itself, as groups differ in their traffic; where none has workers on both sides, all together. */
export function judgeAll(groups: readonly Compared[], overLimitPoints: number): Judgement {
  const divided = groups.filter(({ having, others }) => having.length > 0 && others.length > 0);
  const together = {
    name: undefined,
    having: groups.flatMap(({ having }) => having),
    others: groups.flatMap(({ others }) => others),
  };
  const judgements = (divided.length > 0 ? divided : [together]).map(({ name, having, others }) => {
    const judgement = judge(having, others, overLimitPoints);
    if (name === undefined) return judgement;
    return { ...judgement, text: `node group '${toExcerpt(name)}': ${judgement.text}` };
  });
  const good = judgements.map(({ text }) => text).join('; ');
  const worst = (kind: Judgement['kind']) => judgements.find((each) => each.kind === kind);
  return worst('bad') ?? worst('unclear') ?? worst('silent') ?? { kind: 'good', text: good };
}

function sum(all: readonly Traffic[]): Traffic {
  let decisions = 0;
  let overLimit = 0;
  let errors = 0;
  for (const each of all) {
    decisions += each.decisions;
    overLimit += each.overLimit;
    errors += each.errors;
  }
  return { decisions, overLimit, errors };
}

function without(all: Traffic, one: Traffic): Traffic {
  return {
    decisions: all.decisions - one.decisions,
    overLimit: all.overLimit - one.overLimit,
    errors: all.errors - one.errors,
  };
}

function share(count: number, { decisions, errors }: Traffic): number {
  return count / (decisions + errors);
}

function describe(what: string, [having, others]: readonly [number, number]): string {
  return `${what} ${toPercent(having)} where it is, ${toPercent(others)} elsewhere`;
}

function toPercent(value: number): string {
  return `${(value * 100).toFixed(1)} %`;
}
