// Counts refusals under two sets of rules, in total, by rule and by value, in bounded memory.
import type { Entry } from '../../../../shared/rules/rule.ts';
import { toExcerpt } from '../../../../shared/text-excerpt.ts';

export interface Refusals {
  readonly before: number;
  readonly after: number;
}

export interface RuleRefusals extends Refusals {
  readonly rule: string;
  /** Descriptors that the rule applied to. */
  readonly asked: number;
}

export interface ValueRefusals extends Refusals {
  readonly rule: string;
  /** Such as `plan=free customer=ada`. */
  readonly value: string;
  readonly entries: readonly Entry[];
}

export interface ReplayTally {
  readonly requests: Refusals & {
    /** Requests that were answered but would be refused. */
    readonly newlyLimited: number;
    /** Requests that were refused but would be answered. */
    readonly freed: number;
  };
  /** Each rule that applied to a descriptor, the largest difference first. */
  readonly rules: readonly RuleRefusals[];
  /** Values whose number of refusals changes, the largest difference first. */
  readonly values: readonly ValueRefusals[];
  /** Refusals of values for which the lists had no room. */
  readonly untold: Refusals;
}

export interface Tally {
  countRequest(isOverBefore: boolean, isOverAfter: boolean): void;
  countDescriptor(
    rule: string,
    entries: readonly Entry[],
    isOverBefore: boolean,
    isOverAfter: boolean,
  ): void;
  read(): ReplayTally;
}

/** Rule names can contain values, where a request brings its own limit. */
const mostRules = 20_000;
/** Values that were refused at least once; about 500 bytes each. */
const mostValues = 100_000;
const otherRules = '(further rules)';

interface Count {
  asked: number;
  before: number;
  after: number;
}

interface ValueCount extends Count {
  readonly rule: string;
  readonly value: string;
  readonly entries: readonly Entry[];
}

export function createTally(): Tally {
  const requests = { before: 0, after: 0, newlyLimited: 0, freed: 0 };
  const rules = new Map<string, Count>();
  const values = new Map<string, ValueCount>();
  const untold = { asked: 0, before: 0, after: 0 };

  function ruleCount(rule: string): Count {
    const name = rules.has(rule) || rules.size < mostRules ? rule : otherRules;
    const count = rules.get(name) ?? { asked: 0, before: 0, after: 0 };
    rules.set(name, count);
    return count;
  }

  function valueCount(rule: string, entries: readonly Entry[]): Count {
    const value = toExcerpt(entries.map((entry) => `${entry.key}=${entry.value}`).join(' '), 200);
    const key = `${rule}\0${value}`;
    const known = values.get(key);
    if (known !== undefined) return known;
    if (values.size >= mostValues) return untold;
    const count = { rule, value, entries, asked: 0, before: 0, after: 0 };
    values.set(key, count);
    return count;
  }

  return {
    countRequest(isOverBefore, isOverAfter) {
      if (isOverBefore) requests.before++;
      if (isOverAfter) requests.after++;
      if (isOverAfter && !isOverBefore) requests.newlyLimited++;
      if (isOverBefore && !isOverAfter) requests.freed++;
    },
    countDescriptor(rule, entries, isOverBefore, isOverAfter) {
      const ofRule = ruleCount(rule);
      ofRule.asked++;
      if (!isOverBefore && !isOverAfter) return;
      for (const count of [ofRule, valueCount(rule, entries)]) {
        if (isOverBefore) count.before++;
        if (isOverAfter) count.after++;
      }
    },
    read: () => ({
      requests,
      rules: [...rules].map(([rule, count]) => ({ rule, ...count })).sort(byDifference),
      values: [...values.values()]
        .filter(({ before, after }) => before !== after)
        .map(({ rule, value, entries, before, after }) => ({ rule, value, entries, before, after }))
        .sort(byDifference),
      untold: { before: untold.before, after: untold.after },
    }),
  };
}

function byDifference(a: Refusals, b: Refusals): number {
  return Math.abs(b.after - b.before) - Math.abs(a.after - a.before) || b.after - a.after;
}
