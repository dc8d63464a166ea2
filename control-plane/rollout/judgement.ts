// Compares the workers that have a revision with those that do not. Pure.
import { toExcerpt } from '../../shared/text-excerpt.ts';

/** Counts of one or several workers, over the same time. */
export interface Traffic {
  readonly decisions: number;
  readonly overLimit: number;
  readonly errors: number;
}

export type Judgement =
  | { readonly kind: 'good' }
  /** Too few decisions on either side. */
  | { readonly kind: 'silent'; readonly text: string }
  | { readonly kind: 'bad'; readonly text: string };

/** With fewer, differences may be chance. */
const minDecisions = 100;
const maxErrorPoints = 1;
const maxOverLimitFactor = 3;

/**
 * Bad when errors are more than one point above those of the others, or hits over limit more than
 * `overLimitPoints` above and more than three times as many.
 */
export function judge(having: Traffic, others: Traffic, overLimitPoints: number): Judgement {
  const counts = `${having.decisions} decisions with it, ${others.decisions} without`;
  if (having.decisions < minDecisions || others.decisions < minDecisions) {
    return { kind: 'silent', text: `${counts}: fewer than ${minDecisions}` };
  }
  const errors = [share(having.errors, having), share(others.errors, others)] as const;
  if (errors[0] - errors[1] > maxErrorPoints / 100) {
    return { kind: 'bad', text: `${compare('errors', errors)} (${counts})` };
  }
  const over = [share(having.overLimit, having), share(others.overLimit, others)] as const;
  const isFarAbove = over[0] - over[1] > overLimitPoints / 100;
  if (isFarAbove && over[0] > maxOverLimitFactor * over[1]) {
    return { kind: 'bad', text: `${compare('over limit', over)} (${counts})` };
  }
  return { kind: 'good' };
}

export interface Compared {
  /** Of the node group; undefined for workers outside of those with steps of their own. */
  readonly name: string | undefined;
  readonly having: Traffic;
  readonly others: Traffic;
  /** Whether there are workers on both sides. */
  readonly isDivided: boolean;
}

/** Each group by itself, as groups differ in their traffic; where none is divided, all together. */
export function judgeAll(groups: readonly Compared[], overLimitPoints: number): Judgement {
  const divided = groups.filter(({ isDivided }) => isDivided);
  const together = {
    name: undefined,
    having: sum(groups.map(({ having }) => having)),
    others: sum(groups.map(({ others }) => others)),
  };
  const judgements = (divided.length > 0 ? divided : [together]).map(({ name, having, others }) => {
    const judgement = judge(having, others, overLimitPoints);
    if (judgement.kind === 'good' || name === undefined) return judgement;
    return { ...judgement, text: `node group '${toExcerpt(name)}': ${judgement.text}` };
  });
  const worst = (kind: Judgement['kind']) => judgements.find((each) => each.kind === kind);
  return worst('bad') ?? worst('silent') ?? { kind: 'good' };
}

/** The increase between two readings; a restarted worker counts from 0. */
export function since(before: Traffic | undefined, now: Traffic): Traffic {
  if (before === undefined || now.decisions < before.decisions) return now;
  return {
    decisions: now.decisions - before.decisions,
    overLimit: Math.max(0, now.overLimit - before.overLimit),
    errors: Math.max(0, now.errors - before.errors),
  };
}

export function sum(all: Iterable<Traffic>): Traffic {
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

function share(count: number, { decisions, errors }: Traffic): number {
  // A failed request is not a decision.
  const all = decisions + errors;
  return all === 0 ? 0 : count / all;
}

function compare(what: string, [having, others]: readonly [number, number]): string {
  return `${what} ${toPercent(having)} where it is, ${toPercent(others)} elsewhere`;
}

function toPercent(value: number): string {
  return `${(value * 100).toFixed(1)} %`;
}
