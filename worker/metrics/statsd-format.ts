// The lines of the push output: `name:value|type` (behaviour: pushed-lines).

import type { Tags } from '../metrics.ts';
import type { LineFormat } from './line-sink.ts';
import { createNameTagger } from './metric-name.ts';

/** `tags` are those of every metric. */
export function createStatsdFormat(tags: Tags): LineFormat {
  const withTags = createNameTagger(tags);
  return {
    counter: (name, delta, own) => `${withTags(name, own)}:${toDecimal(delta)}|c\n`,
    gauge(name, value) {
      const label = withTags(name);
      const line = `${label}:${toDecimal(value)}|g\n`;
      // The receiver interprets a number with a sign as a change.
      return value < 0 ? `${label}:0|g\n${line}` : line;
    },
    timer: (name, ms) =>
      `${withTags(name)}:${Number.isInteger(ms) ? toDecimal(ms) : ms.toFixed(6)}|ms\n`,
    flushed: () => '',
  };
}

/**
 * A whole number without an exponent or a fraction; receivers do not parse the exponents with which large numbers are
 * otherwise written.
 */
export function toDecimal(value: number): string {
  const full = Math.trunc(value);
  if (Number.isSafeInteger(full)) return String(full);
  return Number.isFinite(full) ? BigInt(full).toString() : '0';
}
