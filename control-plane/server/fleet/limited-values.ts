// The values that are limited most, over several workers: what each reports of its own, and the sum of all
// with its bounds. Pure.
import type {
  LimitedValueMessage,
  LimitedValuesMessage,
} from '../../../shared/wire/fleet-messages.ts';
import { toCount } from './worker-figures.ts';

/** A value as one text: there may be very many of them (`fromText`). */
export type LimitedText = string;

export interface LimitedDescriptor {
  readonly domain: string;
  /** The metric key; '' where the worker does not tell it, since it has values. */
  readonly rule: string;
  readonly entries: readonly { readonly key: string; readonly value: string }[];
}

export interface LimitedValue {
  readonly text: LimitedText;
  /** Requests that were answered OVER_LIMIT because of it. */
  readonly atLeast: number;
  readonly atMost: number;
  readonly perSecond: number;
  /** In the minute before; undefined where nothing is known of that. */
  readonly perSecondBefore: number | undefined;
  /** That list it. */
  readonly workers: number;
}

export interface LimitedList {
  /** The values that are limited most, the first first. */
  readonly values: readonly LimitedValue[];
  /** No value that is not listed was limited more often. */
  readonly unlistedAtMost: number;
}

/** The part of one worker's report of a period that is kept. */
export interface LimitedPeriod {
  readonly startMs: number;
  readonly seconds: number;
  readonly values: readonly KeptValue[];
  readonly unlistedAtMost: number;
}

interface KeptValue {
  readonly text: LimitedText;
  readonly count: number;
  readonly error: number;
}

const maxValues = 100;
const maxEntries = 16;
/** The bounds at which workers cut them; a metric key has several. */
const maxLength = 128;
const maxRuleLength = 1_024;
/** The bytes of a value besides its characters, by estimate. */
const bytesPerValue = 150;

/** Keeps as many values as fit into `maxBytes`. */
export function toLimitedPeriod(given: LimitedValuesMessage, maxBytes: number): LimitedPeriod {
  const all = given.values.slice(0, maxValues).map(toValue);
  all.sort((a, b) => b.count - a.count);
  let bytes = 0;
  let kept = 0;
  for (const value of all) {
    bytes += bytesPerValue + 2 * value.text.length;
    if (bytes > maxBytes) break;
    kept++;
  }
  return {
    startMs: toCount(given.periodStart),
    seconds: toCount(given.seconds),
    values: all.slice(0, kept),
    unlistedAtMost: Math.max(toCount(given.unlistedAtMost), all[kept]?.count ?? 0),
  };
}

/** The period that is under way and the one before it, which may be missing. */
export function toLimitedList(
  current: LimitedPeriod,
  previous: LimitedPeriod | undefined,
): LimitedList {
  const periods = previous === undefined ? [current] : [current, previous];
  const lists = periods.map((period): LimitedList => {
    const seconds = periods.reduce((sum, each) => sum + each.seconds, 0);
    const isBefore = period === previous;
    const values = period.values.map(({ text, count, error }) => ({
      text,
      atLeast: count - error,
      atMost: count,
      perSecond: count / Math.max(1, seconds),
      perSecondBefore: isBefore ? count / Math.max(1, period.seconds) : undefined,
      workers: 1,
    }));
    return { values, unlistedAtMost: period.unlistedAtMost };
  });
  const [first, second] = lists as [LimitedList, LimitedList | undefined];
  if (second === undefined) return first;
  const sum = createLimitedSum();
  sum.add(first);
  sum.add(second);
  const { values, unlistedAtMost } = sum.read(2 * maxValues);
  // These are values of one worker, however many periods list them.
  const told = values.map((value) => ({
    ...value,
    perSecondBefore: value.perSecondBefore ?? 0,
    workers: 1,
  }));
  return { values: told, unlistedAtMost };
}

export interface LimitedSum {
  add(list: LimitedList): void;
  /** The sum of all that was added, cut to the first ones. */
  read(most: number): LimitedList;
}

interface Sum extends LimitedValue {
  atLeast: number;
  atMost: number;
  perSecond: number;
  perSecondBefore: number | undefined;
  workers: number;
  /** The sum over the lists that have it. */
  unlistedThere: number;
  /** The last of them. */
  list: number;
}

export function createLimitedSum(): LimitedSum {
  const sums = new Map<string, Sum>();
  let unlisted = 0;
  let lists = 0;
  return {
    add({ values, unlistedAtMost }) {
      unlisted += unlistedAtMost;
      lists++;
      for (const value of values) {
        const sum = sums.get(value.text);
        if (sum === undefined) {
          sums.set(value.text, { ...value, unlistedThere: unlistedAtMost, list: lists });
          continue;
        }
        sum.atLeast += value.atLeast;
        sum.atMost += value.atMost;
        sum.perSecond += value.perSecond;
        if (value.perSecondBefore !== undefined) {
          sum.perSecondBefore = (sum.perSecondBefore ?? 0) + value.perSecondBefore;
        }
        // Texts that were cut may be equal, and a worker may report any list.
        if (sum.list === lists) continue;
        sum.list = lists;
        sum.workers += value.workers;
        sum.unlistedThere += unlistedAtMost;
      }
    },
    read(most) {
      const all = [...sums.values()].sort((a, b) => b.atMost - a.atMost);
      // A list that does not have a value may have left it out.
      const boundOf = ({ atMost, unlistedThere }: Sum) => atMost + (unlisted - unlistedThere);
      const values = all.slice(0, most).map((sum) => {
        const { text, atLeast, perSecond, perSecondBefore, workers } = sum;
        return { text, atLeast, atMost: boundOf(sum), perSecond, perSecondBefore, workers };
      });
      let unlistedAtMost = unlisted;
      for (let index = most; index < all.length; index++) {
        unlistedAtMost = Math.max(unlistedAtMost, boundOf(all[index] as Sum));
      }
      return { values, unlistedAtMost };
    },
  };
}

export function toText({ domain, rule, entries }: LimitedDescriptor): LimitedText {
  return JSON.stringify([domain, rule, ...entries.flatMap(({ key, value }) => [key, value])]);
}

export function fromText(text: LimitedText): LimitedDescriptor {
  const [domain = '', rule = '', ...flat] = JSON.parse(text) as string[];
  const entries = [];
  for (let index = 0; index < flat.length; index += 2) {
    entries.push({ key: flat[index] ?? '', value: flat[index + 1] ?? '' });
  }
  return { domain, rule, entries };
}

/** Whether the domain, the rule, or an entry as people read it (`customer=ada`) contains the text, in any case. */
export function contains(text: LimitedText, sought: string): boolean {
  const { domain, rule, entries } = fromText(text);
  const lower = sought.toLowerCase();
  return [domain, rule, ...entries.map(({ key, value }) => `${key}=${value}`)].some((each) =>
    each.toLowerCase().includes(lower),
  );
}

/** How the texts of a domain's values begin. */
export function toTextStart(domain: string): string {
  return `[${JSON.stringify(domain)},`;
}

function toValue({ domain, rule, entries, count, error }: LimitedValueMessage): KeptValue {
  const most = toCount(count);
  return {
    text: toText({
      domain: domain.slice(0, maxLength),
      rule: rule.slice(0, maxRuleLength),
      entries: entries.slice(0, maxEntries).map(({ key, value }) => ({
        key: key.slice(0, maxLength),
        value: value.slice(0, maxLength),
      })),
    }),
    count: most,
    error: Math.min(most, toCount(error)),
  };
}
