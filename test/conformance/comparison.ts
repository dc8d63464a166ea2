// Compares an observation with what a case expects. Default values of proto JSON may be present or absent; `"*"` is any
// value; `"<=60s"` is any number above 0 and up to 60.
import type { Json } from './case-file.ts';

const unitSeconds = {
  second: 1,
  minute: 60,
  hour: 3600,
  day: 86_400,
  week: 604_800,
  month: 30 * 86_400,
  year: 365 * 86_400,
} as const;

/** Every difference, human-readable, with its position; none when the observation is as expected. */
export function compare(expected: Json, actual: Json, path = ''): string[] {
  if (isSame(expected, actual)) return [];
  if (Array.isArray(expected) && Array.isArray(actual) && expected.length === actual.length) {
    return expected.flatMap((item, index) =>
      compare(item, actual[index] ?? null, `${path}[${index}]`),
    );
  }
  if (isObject(expected) && isObject(actual)) {
    const names = [...new Set([...Object.keys(expected), ...Object.keys(actual)])].sort();
    return names.flatMap((name) => {
      const where = path === '' ? name : `${path}.${name}`;
      const [wanted, got] = [expected[name], actual[name]];
      if (got === undefined) return [`${where}: missing, expected ${JSON.stringify(wanted)}`];
      if (wanted === undefined) return [`${where}: unexpected ${JSON.stringify(got)}`];
      return compare(wanted, got, where);
    });
  }
  const where = path === '' ? 'value' : path;
  return [`${where}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`];
}

function isSame(expected: Json, actual: Json): boolean {
  if (expected === '*') return actual !== null;
  if (typeof expected === 'string' && expected.startsWith('<=')) {
    const seconds = /^(\d+(?:\.\d+)?)s?$/.exec(String(actual))?.[1];
    const most = Number.parseFloat(expected.slice(2));
    return seconds !== undefined && Number(seconds) > 0 && Number(seconds) <= most;
  }
  if (Array.isArray(expected)) {
    return (
      Array.isArray(actual) &&
      expected.length === actual.length &&
      expected.every((item, index) => isSame(item, actual[index] ?? null))
    );
  }
  if (isObject(expected)) {
    return (
      isObject(actual) &&
      Object.keys(expected).length === Object.keys(actual).length &&
      Object.entries(expected).every(([name, item]) => {
        const got = actual[name];
        return got !== undefined && isSame(item, got);
      })
    );
  }
  return expected === actual;
}

/** A message in proto JSON without the fields that have their default value. */
export function withoutDefaults(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutDefaults);
  if (!isObject(value)) return value;
  const compared = Object.entries(value)
    .map(([name, item]) => [name, withoutDefaults(item)] as const)
    .filter(([, item]) => !isDefault(item));
  return Object.fromEntries(compared);
}

function isDefault(value: Json): boolean {
  return (
    value === null ||
    value === 0 ||
    value === '' ||
    value === false ||
    (typeof value === 'object' && Object.keys(value).length === 0)
  );
}

/** Replaces `{minute}`, `{hour}` and so on with the start of the current window, in seconds. */
export function fillWindowStarts(text: string, nowMs: number): string {
  return text.replaceAll(/\{(second|minute|hour|day|week|month|year)\}/g, (_, unit: string) => {
    const seconds = unitSeconds[unit as keyof typeof unitSeconds];
    return String(Math.floor(nowMs / 1000 / seconds) * seconds);
  });
}

/** How many milliseconds to wait before a case, so that no window that it counts in ends during the case. `text` is the
 * case's rules and steps. */
export function waitForRoomMs(text: string, nowMs: number, minuteRoomSeconds: number): number {
  const units = new Set(
    [
      ...text
        .toLowerCase()
        .matchAll(/(?:unit\W{1,6}|\{)(second|minute|hour|day|week|month|year)\b/g),
    ].map((match) => match[1] ?? ''),
  );
  const leftOf = (windowMs: number): number => windowMs - (nowMs % windowMs);
  const hourLeftMs = leftOf(3_600_000);
  if ([...units].some((unit) => unit !== 'second' && unit !== 'minute') && hourLeftMs < 8_000)
    return hourLeftMs + 100;
  const minuteLeftMs = leftOf(60_000);
  if (units.has('minute') && minuteLeftMs < minuteRoomSeconds * 1000) return minuteLeftMs + 100;
  return units.has('second') ? leftOf(1000) + 20 : 0;
}

function isObject(value: Json): value is { [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
