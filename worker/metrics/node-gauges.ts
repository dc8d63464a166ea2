// Gauges of the process itself: memory, uptime, and event loop delay.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { pausedMs } from '../../shared/fine-pause.ts';
import type { Metrics } from '../metrics.ts';

/** Sampling interval of the event loop delay; each sample is a wake-up. */
const resolutionMs = 50;

/** Sets the gauges below `ratelimit.node.` before each reading, until the returned function is
 * called. Delays are those since the last reading. */
export function measureNode(metrics: Metrics): () => void {
  const gauge = (name: string) => metrics.gauge(`ratelimit.node.${name}`);
  const rss = gauge('rss_bytes');
  const heapUsed = gauge('heap_used_bytes');
  const heapTotal = gauge('heap_total_bytes');
  const external = gauge('external_bytes');
  const uptime = gauge('uptime_seconds');
  const busy = gauge('event_loop_busy_percent');
  const delayP99 = gauge('event_loop_delay_p99_us');
  const delayMax = gauge('event_loop_delay_max_us');
  const delay = monitorEventLoopDelay({ resolution: resolutionMs });
  delay.enable();
  let lastUse = performance.eventLoopUtilization();
  let lastPausedMs = pausedMs();

  /** The measured delay includes the sampling interval. */
  const toLateUs = (nanoseconds: number) =>
    Math.max(0, Math.round(nanoseconds / 1000 - resolutionMs * 1000));

  function takeBusyPercent(): number {
    const { active, idle } = performance.eventLoopUtilization(lastUse);
    const busyMs = active - (pausedMs() - lastPausedMs);
    lastUse = performance.eventLoopUtilization();
    lastPausedMs = pausedMs();
    // No time has passed where the loop has not started yet.
    return Math.max(0, Math.round((busyMs / (active + idle || 1)) * 100));
  }

  metrics.beforeReading(() => {
    const memory = process.memoryUsage();
    rss.set(memory.rss);
    heapUsed.set(memory.heapUsed);
    heapTotal.set(memory.heapTotal);
    external.set(memory.external);
    uptime.set(Math.floor(process.uptime()));
    busy.set(takeBusyPercent());
    if (delay.count === 0) return;
    delayP99.set(toLateUs(delay.percentile(99)));
    delayMax.set(toLateUs(delay.max));
    delay.reset();
  });
  return () => delay.disable();
}
