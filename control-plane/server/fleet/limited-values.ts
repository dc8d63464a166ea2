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
  const seconds = current.seconds + (previous?.seconds ?? 0);
  const first = toList(current, seconds, undefined);
  if (previous === undefined) return first;
  const sum = new LimitedSum();
  sum.add(first);
  sum.add(toList(previous, seconds, previous.seconds));
  const { values, unlistedAtMost } = sum.read(2 * maxValues);
  // These are values of one worker, however many periods list them.
  const told = values.map((value) => ({
    ...value,
    perSecondBefore: value.perSecondBefore ?? 0,
    workers: 1,
  }));
  return { values: told, unlistedAtMost };
}

/** `secondsBefore`: of a period that is over. */
function toList(
  { values, unlistedAtMost }: LimitedPeriod,
  seconds: number,
  secondsBefore: number | undefined,
): LimitedList {
  const shown = values.map(({ text, count, error }) => ({
    text,
    atLeast: count - error,
    atMost: count,
    perSecond: count / Math.max(1, seconds),
    perSecondBefore: secondsBefore === undefined ? undefined : count / Math.max(1, secondsBefore),
    workers: 1,
  }));
  return { values: shown, unlistedAtMost };
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

/** Of several lists, with its bounds. */
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
      if (value.perSecondBefore !== undefined) {
        sum.perSecondBefore = (sum.perSecondBefore ?? 0) + value.perSecondBefore;
      }
      // Texts that were cut may be equal, and a worker may report any list.
      if (sum.list === this.#lists) continue;
      sum.list = this.#lists;
      sum.workers += value.workers;
      sum.unlistedThere += unlistedAtMost;
    }
  }

  /** All that was added, cut to the first ones. */
  read(most: number): LimitedList {
    const all = [...this.#sums.values()].sort((a, b) => b.atMost - a.atMost);
    // A list that does not have a value may have left it out.
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
