// Converts the registry's numbers to lines for a transport: changes since the last time, and each observation of a
// timer. Formats write the lines, transports send them, statistics.ts sets the intervals.

import type { Clock } from '../../shared/clock.ts';
import type { Tags } from '../metrics.ts';
import { createObservationBuffer, type ObservationBuffer } from './observation-buffer.ts';
import type { MetricsRegistry, NamedCounter } from './registry.ts';

/**
 * Methods return one line each, including its line break. `name` is clean and without tags; formats have the common
 * tags.
 */
export interface LineFormat {
  /** `tags` are the counter's own. */
  counter(name: string, delta: number, tags?: Tags): string;
  gauge(name: string, value: number): string;
  timer(name: string, ms: number): string;
  /** Text after each flush; may be empty. */
  flushed(): string;
}

/** The address of the receiver, and callbacks for failures. */
export interface LineReceiverDeps {
  readonly host: string;
  readonly port: number;
  /** 4 or 6 for only that family of addresses, 0 for either. */
  readonly family: 0 | 4 | 6;
  readonly clock: Clock;
  /** `reason` is one clause without a final full stop. */
  readonly onLost: (reason: string) => void;
  readonly onBack: () => void;
  /** Called when this many lines were accepted but not sent. */
  readonly onDropped: (lines: number) => void;
}

export interface LineTransport {
  /** False while lines would be lost or accumulate; try again later. */
  readonly ready: boolean;
  /** Sends complete lines. Never blocks and never throws. */
  send(lines: string): void;
  /** Waits until the lines are sent, `graceMs` at most, then closes. Idempotent. */
  close(graceMs: number): Promise<void>;
}

export interface MetricsSink {
  /**
   * Sends the counters' changes, and all gauges; when there are many, in pieces over the next turns of the event loop.
   * While the transport is not ready nothing is lost: changes add up and are sent later.
   */
  flush(): void;
  /** Sends the observations of timers since the last call. */
  flushTimers(): void;
  /** Sends the rest of a flush, waits for it, `graceMs` at most, and closes. */
  close(graceMs: number): Promise<void>;
}

export interface LineSinkDeps {
  readonly registry: MetricsRegistry;
  readonly format: LineFormat;
  readonly transport: LineTransport;
}

/** Lines that could not be sent: without a receiver, or because there were too many observations. */
export const droppedLinesName = 'ratelimit.node.dropped_metric_lines';

const newline = 0x0a;
const chunkLength = 64 * 1024;
/** Counters per turn, so that decisions do not wait for a flush. */
const countersPerTurn = 20_000;
/** Limit of the text sent at once, with one line per observation: receivers accept no more. */
const maxTimerText = 4 * 1024 * 1024;

export function countLines(text: Uint8Array): number {
  let lines = 0;
  for (let at = text.indexOf(newline); at !== -1; at = text.indexOf(newline, at + 1)) lines++;
  return lines;
}

export function createLineSink(deps: LineSinkDeps): MetricsSink {
  const { registry, format, transport } = deps;
  const { counters, gauges } = registry;
  /** The value of each counter that was sent so far, by its index in the registry. */
  const sent: number[] = [];
  const observations: { readonly name: string; readonly buffer: ObservationBuffer }[] = [];
  const dropped = registry.counter(droppedLinesName);

  registry.listenToTimers((name) => {
    const buffer = createObservationBuffer();
    observations.push({ name, buffer });
    return buffer.observe;
  });

  /** The counter at which the running flush continues; undefined without one. */
  let next: number | undefined;
  let isScheduled = false;
  /** Whether another flush was requested during a flush, which may have missed some changes. */
  let isAskedAgain = false;

  /** Sends at most one chunk; false when the rest of the flush must wait. */
  function flushSome(): boolean {
    if (next === undefined || !transport.ready) return false;
    let chunk = '';
    const end = Math.min(counters.length, next + countersPerTurn);
    while (next < end && chunk.length < chunkLength) {
      const counter = counters[next];
      if (counter !== undefined) chunk += toLine(counter, next);
      next++;
    }
    if (next === counters.length) {
      next = undefined;
      for (const { name, value } of gauges) chunk += format.gauge(name, value);
      chunk += format.flushed();
    }
    if (chunk !== '') transport.send(chunk);
    return next !== undefined;
  }

  function toLine(counter: NamedCounter, index: number): string {
    const { value } = counter;
    const delta = value - (sent[index] ?? 0);
    sent[index] = value;
    if (delta === 0) return '';
    const { tagged } = counter;
    return tagged === undefined
      ? format.counter(counter.name, delta)
      : format.counter(tagged.name, delta, tagged.tags);
  }

  function flushOn(): void {
    if (!flushSome() || isScheduled) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      flushOn();
    });
  }

  return {
    flush() {
      isAskedAgain = next !== undefined;
      next ??= 0;
      flushOn();
    },
    flushTimers() {
      if (!transport.ready) return;
      let room = maxTimerText;
      for (const { name, buffer } of observations) {
        for (const [ms, count] of buffer.entries()) {
          const line = format.timer(name, ms);
          const fitting = Math.min(count, Math.floor(room / line.length));
          dropped.add(count - fitting);
          room -= fitting * line.length;
          const perChunk = Math.ceil(chunkLength / line.length);
          for (let left = fitting; left > 0; left -= perChunk) {
            transport.send(line.repeat(Math.min(left, perChunk)));
          }
        }
        dropped.add(buffer.dropped);
        buffer.clear();
      }
    },
    close(graceMs) {
      while (flushSome());
      if (isAskedAgain) next ??= 0;
      while (flushSome());
      return transport.close(graceMs);
    },
  };
}
