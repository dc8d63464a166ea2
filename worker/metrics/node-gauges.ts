// Gauges of the process itself: memory, uptime, and how busy and how delayed its event loop was.
import { type Clock, repeatAfter } from '../../shared/clock.ts';
import { pausedMs } from '../fine-pause.ts';
import type { Metrics } from '../metrics.ts';
import { readMemory } from './process-memory.ts';

/** How often the event loop is sampled. Each sample wakes the process up. */
const checkIntervalMs = 50;
/**
 * The period that the gauges of the event loop cover for every reader: if each reading began a new period, several
 * readers would hide the peaks from each other. Few scrape less often than once a minute.
 */
const spanMs = 60_000;

export interface NodeGaugesDeps {
  readonly metrics: Metrics;
  readonly clock: Clock;
}

/** The event loop since the previous sample. */
interface Sample {
  /** A time on the monotonic clock. */
  readonly atMs: number;
  readonly lateUs: number;
  readonly busyMs: number;
  readonly allMs: number;
}

/** Sets the gauges below `ratelimit.node.` before each reading, until the returned function is called. */
export function measureNode({ metrics, clock }: NodeGaugesDeps): () => void {
  const gauge = (name: string) => metrics.gauge(`ratelimit.node.${name}`);
  const rss = gauge('rss_bytes');
  const heapUsed = gauge('heap_used_bytes');
  const heapTotal = gauge('heap_total_bytes');
  const external = gauge('external_bytes');
  const uptime = gauge('uptime_seconds');
  const busy = gauge('event_loop_busy_percent');
  const delayP99 = gauge('event_loop_delay_p99_us');
  const delayMax = gauge('event_loop_delay_max_us');
  /** The samples of the period, the oldest first. */
  const samples: Sample[] = [];
  let last = readLoopTimes();
  let dueMs = clock.monotonicMs() + checkIntervalMs;

  const stopChecking = repeatAfter(clock, checkIntervalMs, () => {
    const atMs = clock.monotonicMs();
    const now = readLoopTimes();
    samples.push({
      atMs,
      lateUs: Math.max(0, Math.round((atMs - dueMs) * 1000)),
      busyMs: now.busyMs - last.busyMs,
      allMs: now.allMs - last.allMs,
    });
    last = now;
    dueMs = atMs + checkIntervalMs;
    while (samples[0] !== undefined && samples[0].atMs <= atMs - spanMs) samples.shift();
  });

  metrics.beforeReading(() => {
    const memory = readMemory();
    if (memory !== undefined) {
      rss.set(memory.rss);
      heapUsed.set(memory.heapUsed);
      heapTotal.set(memory.heapTotal);
      external.set(memory.external);
    }
    uptime.set(Math.floor(process.uptime()));
    busy.set(toBusyPercent(samples));
    const lateUs = Float64Array.from(samples, (sample) => sample.lateUs).sort();
    delayP99.set(lateUs[Math.ceil(lateUs.length * 0.99) - 1] ?? 0);
    delayMax.set(lateUs.at(-1) ?? 0);
  });
  return stopChecking;
}

/** Totals since the process began. Node counts our own pauses as work. */
function readLoopTimes(): Pick<Sample, 'busyMs' | 'allMs'> {
  const { active, idle } = performance.eventLoopUtilization();
  return { busyMs: active - pausedMs(), allMs: active + idle };
}

export function toBusyPercent(samples: readonly Pick<Sample, 'busyMs' | 'allMs'>[]): number {
  let busyMs = 0;
  let allMs = 0;
  for (const sample of samples) {
    busyMs += sample.busyMs;
    allMs += sample.allMs;
  }
  return allMs > 0 ? Math.max(0, Math.round((busyMs / allMs) * 100)) : 0;
}
