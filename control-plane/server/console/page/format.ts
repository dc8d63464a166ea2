// Formats numbers, times and foreign texts for display.
import type { TrafficJson } from '../../admin/traffic-json.ts';

const precise = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });
const byNumbers = new Intl.Collator('en', { numeric: true });
const integer = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

/** `0.25`, `12.3`, `1,200`: three significant digits at most. */
export function toRate(perSecond: number): string {
  return perSecond > 0 && perSecond < 0.01 ? '<0.01' : precise.format(perSecond);
}

/** A rate in a table, where idle rows are inconspicuous: `–`, `0.8/s`. */
export function toRateCell(perSecond: number): string {
  return perSecond === 0 ? '–' : `${toRate(perSecond)}/s`;
}

/** Orders names by the numbers in them: `w-2` before `w-10`. */
export function compareNames(a: string, b: string): number {
  return byNumbers.compare(a, b);
}

export function toNumber(value: number): string {
  return integer.format(value);
}

/** A percentile is the edge of a bucket: the value is at most that, or above it. Undefined without decisions. */
export function toP99({
  p99Ms,
  p99AboveMs,
}: Pick<TrafficJson, 'p99Ms' | 'p99AboveMs'>): readonly [bound: string, text: string] | undefined {
  if (p99AboveMs !== null) return ['above', `${integer.format(p99AboveMs)} ms`];
  return p99Ms === null ? undefined : ['at most', `${precise.format(p99Ms)} ms`];
}

/** `1 worker`, `3 workers`. */
export function toCount(count: number, noun: string): string {
  return `${integer.format(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** `just now`, `12 s`, `5 min`, `3 h`, `4 d`. */
export function toAge(time: string, nowMs = Date.now()): string {
  const seconds = Math.max(0, Math.round((nowMs - Date.parse(time)) / 1000));
  if (seconds < 5) return 'just now';
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

/** The time until an event: `39 s`, `12 min`, `13 h 10 min`, `3 d 4 h`; rounded up. */
export function toSpan(seconds: number): string {
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return withRest(`${hours} h`, minutes % 60, 'min');
  return withRest(`${Math.floor(hours / 24)} d`, hours % 24, 'h');
}

function withRest(text: string, rest: number, unit: string): string {
  return rest === 0 ? text : `${text} ${rest} ${unit}`;
}

/** `just now`, `2 min ago`. */
export function toAgo(time: string): string {
  const age = toAge(time);
  return age === 'just now' ? age : `${age} ago`;
}

/** `20:31`, in the local time zone; with the date if it is not today. */
export function toClock(timeMs: number, nowMs = Date.now()): string {
  const text = toTime(new Date(timeMs).toISOString());
  const isToday = new Date(timeMs).toDateString() === new Date(nowMs).toDateString();
  return isToday ? text.slice(11, 16) : text.slice(0, 16);
}

/** `2026-03-01 14:05:09`, in the local time zone. */
export function toTime(time: string): string {
  const date = new Date(time);
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** The beginning of a revision's id. */
export function toShortId(id: string): string {
  return id.slice(0, 12);
}

/** Writes out characters that would be invisible or would move others. */
export function toShown(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u{115f}\u{3164}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}

/** A foreign text as a sentence: capitalized, and otherwise as `toShown` returns it. */
export function toSentence(text: string): string {
  return toShown(`${text.charAt(0).toUpperCase()}${text.slice(1)}`);
}

export interface Pair {
  readonly key: string;
  readonly value: string;
}

/** `customer=ada, path=/reports`. */
export function toPairs(entries: readonly Pair[]): string {
  return entries
    .map(({ key, value }) => toShown(value === '' ? key : `${key}=${value}`))
    .join(', ');
}

/** The rule's name in the API: `shop.customer`, `shop.plan_free.user`. */
export function toRuleName(domain: string, entries: readonly Pair[]): string {
  const parts = entries.map(({ key, value }) => (value === '' ? key : `${key}_${value}`));
  return [domain, ...parts].join('.');
}

/** The format that the page `try` reads: `key=value`, one per line. */
export function toLines(entries: readonly Pair[]): string {
  return entries.map(({ key, value }) => `${key}=${value}`).join('\n');
}

/** `1 worker reports`, `3 workers report`. */
export function toReporting(workers: number): string {
  return `${toCount(workers, 'worker')} ${workers === 1 ? 'reports' : 'report'}`;
}
