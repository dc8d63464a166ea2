// Compares this host's clock with the store's, at the start and every minute (behaviour: worker-clock): this clock
// determines the windows, so workers whose clocks differ count in different windows.
import type { Clock } from '../../../shared/clock.ts';
import { errorText } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import { createRepeatedLog } from '../../../shared/repeated-log.ts';
import type { Gauge } from '../../metrics.ts';
import { type Connection, toCommandText } from './connection.ts';

const intervalMs = 60_000;
/** A larger difference is logged as a warning. */
const toleratedMs = 250;
const warningIntervalMs = 600_000;

export interface ClockComparisonDeps {
  /** The name of the store in texts. */
  readonly name: string;
  /** Opens a separate connection: a proxy may close it on an unknown command. */
  readonly open: (signal: AbortSignal) => Promise<Connection>;
  /** Set to the absolute difference in milliseconds. */
  readonly offset: Gauge;
  readonly clock: Clock;
  readonly log: Log;
}

export interface ClockComparison {
  start(): void;
  /** A line for the store's state; '' while nothing is known. */
  describe(): string;
  /** Idempotent. */
  close(): void;
}

export function createClockComparison(deps: ClockComparisonDeps): ClockComparison {
  const { name, clock, log } = deps;
  const closing = new AbortController();
  const warnings = createRepeatedLog({
    clock,
    intervalMs: warningIntervalMs,
    write: (text) => log.warning(text),
  });
  let description = '';
  let cancelNext: (() => void) | undefined;

  async function compare(): Promise<void> {
    try {
      judge(await measure());
    } catch (error) {
      description = `its clock is not known: ${errorText(error)}`;
    }
    if (!closing.signal.aborted) cancelNext = clock.after(intervalMs, () => void compare());
  }

  /** How far this clock is ahead, and the error of this difference: half the round trip. */
  async function measure(): Promise<{ aheadMs: number; errorMs: number }> {
    const connection = await deps.open(closing.signal);
    try {
      const sentMs = clock.wallMs();
      const storeMs = parseTime(await connection.ask(toCommandText('TIME')));
      const answeredMs = clock.wallMs();
      const aheadMs = (sentMs + answeredMs) / 2 - storeMs;
      return { aheadMs, errorMs: Math.abs(answeredMs - sentMs) / 2 };
    } finally {
      connection.destroy();
    }
  }

  function judge({ aheadMs, errorMs }: { aheadMs: number; errorMs: number }): void {
    const apartMs = Math.round(Math.abs(aheadMs));
    deps.offset.set(apartMs);
    const direction = aheadMs > 0 ? 'ahead of' : 'behind';
    description = `this clock is ${apartMs} ms ${direction} the store's`;
    if (apartMs - errorMs > toleratedMs) {
      warnings.report(`${name}: ${description}; windows begin and end by this clock: correct it`);
    } else {
      const lasted = warnings.recover();
      if (lasted !== undefined) log.notice(`${name}: the clocks agree again`);
    }
  }

  return {
    start: () => void compare(),
    describe: () => description,
    close() {
      closing.abort();
      cancelNext?.();
    },
  };
}

/** Seconds and microseconds to milliseconds. */
function parseTime(reply: unknown): number {
  if (Array.isArray(reply)) {
    const [seconds, microseconds] = reply.map(Number);
    const ms = Number(seconds) * 1000 + Number(microseconds) / 1000;
    if (Number.isFinite(ms)) return ms;
  }
  throw new Error('the reply to TIME is not a time');
}
