// The name under which a descriptor's hits are counted in the statistics (behaviour: metric-keys). The
// statistics replace characters that outputs cannot carry.
import type { Entry } from '../rule.ts';

/** `sanitizeDots` is SANITIZE_DESCRIPTOR_METRIC_DOTS. The domain is never changed. */
export function toMetricKey(
  domain: string,
  segments: readonly string[],
  sanitizeDots: boolean,
): string {
  let key = domain;
  for (const segment of segments) {
    key += `.${sanitizeDots ? segment.replaceAll('.', '_') : segment}`;
  }
  return key;
}

/** One level's part of a metric key: the key, with `_` and the value part if there is one. */
export function toSegment(key: string, valuePart: string): string {
  return valuePart === '' ? key : `${key}_${valuePart}`;
}

/** The metric key of a limit in the request itself (behaviour: limit-in-the-request). */
export function overrideMetricKey(
  domain: string,
  entries: readonly Entry[],
  sanitizeDots: boolean,
): string {
  if (entries.length === 0) return `${domain}.`;
  const segments = entries.map((entry) => toSegment(entry.key, entry.value));
  return toMetricKey(domain, segments, sanitizeDots);
}

/**
 * `:`, `|` and line ends, which values of requests can contain, end a name on the wire, and others turn the lines of a
 * terminal around: they become `_`, as do the dots of IPv4 addresses (behaviour: metric-keys).
 */
export function sanitizeMetricName(name: string): string {
  return name
    .replace(/[:|\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, '_')
    .replace(/\d{1,3}(?:\.\d{1,3}){3}/g, (address) => address.replaceAll('.', '_'));
}

/** The part of a shared pattern in a metric key: up to the `*` (behaviour: shared-counters). */
export function toSharedPart(pattern: string): string {
  return pattern.slice(0, pattern.indexOf('*'));
}
