// Numbers, times and foreign texts for people.

const precise = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

/** `0.25`, `12.3`, `1,204`. */
export function toRate(perSecond: number): string {
  if (perSecond > 0 && perSecond < 0.01) return '<0.01';
  return perSecond < 1_000 ? precise.format(perSecond) : whole.format(perSecond);
}

export function toNumber(value: number): string {
  return whole.format(value);
}

/** `1 worker`, `3 workers`. */
export function toCount(count: number, noun: string): string {
  return `${whole.format(count)} ${noun}${count === 1 ? '' : 's'}`;
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

/** `2026-03-01 14:05:09`, of this place. */
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

/** Characters that would not be seen, or would move others, are written out. */
export function toShown(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u{115f}\u{3164}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}

/** A text of others as a sentence: begun with a capital letter, and shown as it is. */
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

/** As the page `try` reads them: `key=value`, each in a line. */
export function toLines(entries: readonly Pair[]): string {
  return entries.map(({ key, value }) => `${key}=${value}`).join('\n');
}

/** `1 worker reports`, `3 workers report`. */
export function toReporting(workers: number): string {
  return `${toCount(workers, 'worker')} ${workers === 1 ? 'reports' : 'report'}`;
}
