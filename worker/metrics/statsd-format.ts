// The push output's lines: `name:value|type` (reference-behaviour 6.3).
import { toDecimal } from './decimal.ts';
import type { LineFormat } from './line-sink.ts';

export const statsdFormat: LineFormat = {
  counter: (name, delta) => `${name}:${toDecimal(delta)}|c\n`,
  gauge: (name, value) => `${name}:${toDecimal(value)}|g\n`,
  timer: (name, ms) => `${name}:${Number.isInteger(ms) ? toDecimal(ms) : ms.toFixed(6)}|ms\n`,
  flushed: () => '',
};
