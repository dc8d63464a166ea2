// The JSON lines for standard output, used when no other output is on (behaviour: independent-outputs).

import type { Tags } from '../metrics.ts';
import type { LineFormat } from './line-sink.ts';
import { createNameTagger } from './metric-name.ts';

/** `tags` are those of every metric; `wallMs` returns the time since the epoch for the lines. */
export function createJsonFormat(tags: Tags, wallMs: () => number): LineFormat {
  const withTags = createNameTagger(tags);
  const toLine = (type: string, name: string, value: number): string => {
    const timestamp = (wallMs() / 1000).toFixed(6);
    const json = JSON.stringify({ name, type, value: value.toFixed(6) });
    return `${toStart(timestamp, `flushing ${type}`)},"json":${json}}\n`;
  };
  return {
    counter: (name, delta, own) => toLine('counter', withTags(name, own), delta),
    gauge: (name, value) => toLine('gauge', withTags(name), value),
    timer: (name, ms) => toLine('timer', withTags(name), ms),
    flushed: () => toLine('all stats', '', 0),
  };
}

/** The logger's name is part of the format: readers recognise these lines by it. */
function toStart(timestamp: string, message: string): string {
  return `{"level":"debug","ts":${timestamp},"logger":"gostats.loggingsink","msg":"${message}"`;
}
