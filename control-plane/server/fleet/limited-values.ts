// The most limited values over several workers: the report of each worker, and the sum of all reports with its bounds.
// Pure.
import type {
  LimitedValueMessage,
  LimitedValuesMessage,
} from '../../../shared/wire/fleet-messages.ts';
import { toCount } from './worker-figures.ts';

/** A value as one text, because there can be very many of them (`fromText`). */
export type LimitedText = string;

export interface LimitedDescriptor {
  readonly domain: string;
  /** The metric key; '' if the worker omits it because it contains values. */
  readonly rule: string;
  readonly entries: readonly { readonly key: string; readonly value: string }[];
}

export interface LimitedValue {
  readonly text: LimitedText;
  /** Number of requests answered OVER_LIMIT because of it. */
  readonly atLeast: number;
  readonly atMost: number;
  readonly perSecond: number;
  /** The rate in the previous minute; null if that is unknown. */
  readonly perSecondBefore: number | null;
  /** Number of workers that list it. */
  readonly workers: number;
}

export interface LimitedList {
  /** The most limited values, in descending order. */
  readonly values: readonly LimitedValue[];
  /** Upper bound on the hits over the limit of any value that is not listed. */
  readonly unlistedAtMost: number;
}

/** The retained part of one worker's report of a period. */
export interface LimitedPeriod {
  readonly startMs: number;
  readonly seconds: number;
  readonly values: readonly RetainedValue[];
  readonly unlistedAtMost: number;
}

interface RetainedValue {
  readonly text: LimitedText;
  readonly count: number;
  readonly error: number;
}

const maxValues = 100;
const maxEntries = 16;
/** The lengths to which workers cut values; a metric key contains several. */
const maxLength = 128;
const maxRuleLength = 1_024;
/** Estimated bytes of a value besides its characters. */
const bytesPerValue = 150;

/** Retains as many values as fit into `maxBytes`. */
export function toLimitedPeriod(given: LimitedValuesMessage, maxBytes: number): LimitedPeriod {
  const all = given.values.slice(0, maxValues).map(toValue);
  all.sort((a, b) => b.count - a.count);
  let bytes = 0;
  let retained = 0;
  for (const value of all) {
    bytes += bytesPerValue + 2 * value.text.length;
    if (bytes > maxBytes) break;
    retained++;
  }
  return {
    startMs: toCount(given.periodStart),
    seconds: toCount(given.seconds),
    values: all.slice(0, retained),
    unlistedAtMost: Math.max(toCount(given.unlistedAtMost), all[retained]?.count ?? 0),
  };
}

/** Merges the current period and the previous one, if there is one. */
export function toLimitedList(
  current: LimitedPeriod,
  previous: LimitedPeriod | undefined,
): LimitedList {
  const seconds = current.seconds + (previous?.seconds ?? 0);
  const first = toList(current, seconds, null);
  if (previous === undefined) return first;
  const sum = new LimitedSum();
  sum.add(first);
  sum.add(toList(previous, seconds, previous.seconds));
  const { values, unlistedAtMost } = sum.read(2 * maxValues);
  // All values are of one worker, however many periods list them.
  const reported = values.map((value) => ({
    ...value,
    perSecondBefore: value.perSecondBefore ?? 0,
    workers: 1,
  }));
  return { values: reported, unlistedAtMost };
}

/** `secondsBefore`: the length of the completed period. */
function toList(
  { values, unlistedAtMost }: LimitedPeriod,
  seconds: number,
  secondsBefore: number | null,
): LimitedList {
  const shown = values.map(({ text, count, error }) => ({
    text,
    atLeast: count - error,
    atMost: count,
    perSecond: count / Math.max(1, seconds),
    perSecondBefore: secondsBefore === null ? null : count / Math.max(1, secondsBefore),
    workers: 1,
  }));
  return { values: shown, unlistedAtMost };
}

interface Sum extends LimitedValue {
  atLeast: number;
  atMost: number;
  perSecond: number;
  perSecondBefore: number | null;
  workers: number;
  /** The sum over the lists that include the value. */
  unlistedThere: number;
  /** The last list that includes the value. */
  list: number;
}

/** Merges several lists, with their bounds. */
export class LimitedSum {
  readonly #sums = new Map<string, Sum>();
  #unlisted = 0;
  #lists = 0;

  add({ values, unlistedAtMost }: LimitedList): void {
    this.#unlisted += unlistedAtMost;
    this.#lists++;
    for (const value of values) {
      const sum = this.#sums.get(value.text);
      if (sum === undefined) {
        const first = { ...value, unlistedThere: unlistedAtMost, list: this.#lists };
        this.#sums.set(value.text, first);
        continue;
      }
      sum.atLeast += value.atLeast;
      sum.atMost += value.atMost;
      sum.perSecond += value.perSecond;
      if (value.perSecondBefore !== null) {
        sum.perSecondBefore = (sum.perSecondBefore ?? 0) + value.perSecondBefore;
      }
      // Different texts can be equal after they were cut, and a worker can report any list.
      if (sum.list === this.#lists) continue;
      sum.list = this.#lists;
      sum.workers += value.workers;
      sum.unlistedThere += unlistedAtMost;
    }
  }

  /** The sums of all added lists, cut to the largest values. */
  read(most: number): LimitedList {
    const all = [...this.#sums.values()].sort((a, b) => b.atMost - a.atMost);
    // A list without the value may have omitted it.
    const boundOf = ({ atMost, unlistedThere }: Sum) => atMost + (this.#unlisted - unlistedThere);
    const values = all.slice(0, most).map((sum) => {
      const { text, atLeast, perSecond, perSecondBefore, workers } = sum;
      return { text, atLeast, atMost: boundOf(sum), perSecond, perSecondBefore, workers };
    });
    let unlistedAtMost = this.#unlisted;
    for (const sum of all.slice(most)) unlistedAtMost = Math.max(unlistedAtMost, boundOf(sum));
    return { values, unlistedAtMost };
  }
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

/** Whether the domain, the rule, or an entry in its displayed form (`customer=ada`) contains the text, ignoring
 * case. */
export function contains(text: LimitedText, sought: string): boolean {
  const { domain, rule, entries } = fromText(text);
  const lower = sought.toLowerCase();
  return [domain, rule, ...entries.map(({ key, value }) => `${key}=${value}`)].some((each) =>
    each.toLowerCase().includes(lower),
  );
}

/** The prefix of the texts of a domain's values. */
export function toTextStart(domain: string): string {
  return `[${JSON.stringify(domain)},`;
}

function toValue({ domain, rule, entries, count, error }: LimitedValueMessage): RetainedValue {
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
