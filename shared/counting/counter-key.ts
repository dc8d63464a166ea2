// Which counter hits go to: the window that a moment falls into (behaviour: windows), and the key. Other services on
// the same store count together with us because they form the same keys (behaviour: counter-keys).
import type { Entry, Limit } from '../rules/rule.ts';
import { type Unit, unitNumbers } from '../rules/unit.ts';

/** A fixed window: `start` in Unix seconds, `seconds` long. */
export interface Window {
  readonly start: number;
  readonly seconds: number;
}

export interface WindowOptions {
  /** 0 is Sunday, 6 is Saturday. Thursday (4) is the weekday of the Unix epoch. */
  readonly weekResetDay: number;
  /** Calendar months (UTC) instead of periods of 30 days from the epoch. */
  readonly calendarMonths: boolean;
}

/** How many kinds of windows are cached, the latest of each. */
const maxLatest = 10_000;
const daySeconds = 86_400;
const epochWeekday = 4;

const fixedSeconds: Readonly<Record<Unit, number>> = {
  second: 1,
  minute: 60,
  hour: 3_600,
  day: daySeconds,
  week: 7 * daySeconds,
  month: 30 * daySeconds,
  year: 365 * daySeconds,
};

/** Months are counted from the year 0. */
function calendarMonthsAt(nowSeconds: number, count: number): Window {
  const now = new Date(nowSeconds * 1000);
  const month = now.getUTCFullYear() * 12 + now.getUTCMonth();
  const first = Math.floor(month / count) * count;
  const start = startOfMonth(first);
  return { start, seconds: startOfMonth(first + count) - start };
}

function startOfMonth(month: number): number {
  // Date.UTC reads years below 100 as 1900 to 1999.
  return new Date(0).setUTCFullYear(Math.floor(month / 12), month % 12) / 1000;
}

/** Returns the window of `multiplier` units that `nowSeconds` (whole Unix seconds) falls into. */
export type WindowAt = (unit: Unit, multiplier: number, nowSeconds: number) => Window;

/**
 * A window of several units begins at a multiple of its length, counted from where windows of one unit begin.
 *
 * The same object is returned while the window lasts: nearly every call falls into the window of the
 * previous one.
 */
export function createWindows(options: WindowOptions): WindowAt {
  const weekOffset = ((options.weekResetDay - epochWeekday + 7) % 7) * daySeconds;
  /** The latest window of each unit and multiplier. */
  const latest = new Map<number, Window>();

  const windowAt: WindowAt = (unit, multiplier, nowSeconds) => {
    if (unit === 'month' && options.calendarMonths) return calendarMonthsAt(nowSeconds, multiplier);
    const seconds = fixedSeconds[unit] * multiplier;
    const offset = unit === 'week' ? weekOffset : 0;
    return { start: Math.floor((nowSeconds - offset) / seconds) * seconds + offset, seconds };
  };

  return (unit, multiplier, nowSeconds) => {
    const kind = multiplier * 8 + unitNumbers[unit];
    const known = latest.get(kind);
    if (known && nowSeconds >= known.start && nowSeconds < known.start + known.seconds) {
      return known;
    }
    const window = windowAt(unit, multiplier, nowSeconds);
    if (latest.size >= maxLatest) latest.clear();
    latest.set(kind, window);
    return window;
  };
}

/**
 * `<prefix><domain>_<key>_<value>_..._<window start>`, nothing escaped; an empty value leaves two
 * underscores. Other limits than plain fixed windows add a tag, which never ends in a digit.
 * `sharedValues` has the pattern that replaces a shared value.
 */
export function toCounterKey(
  prefix: string,
  domain: string,
  entries: readonly Entry[],
  sharedValues: readonly (string | undefined)[] | undefined,
  ending: number | string,
): string {
  let key = `${prefix}${domain}_`;
  for (let index = 0; index < entries.length; index++) {
    const entry = entries[index] as Entry;
    key += `${entry.key}_${sharedValues?.[index] ?? entry.value}_`;
  }
  return key + ending;
}

/** How the keys of a limit's counters end (behaviour: counter-keys). */
export function toKeyEnding(
  { limiter, counterTag }: Pick<Limit, 'limiter' | 'counterTag'>,
  window: Window,
): number | string {
  if (counterTag === '') return window.start;
  return limiter === undefined ? `${window.start}_${counterTag}` : counterTag;
}
