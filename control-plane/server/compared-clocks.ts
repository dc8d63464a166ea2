// Whether the clock of this machine is that of the others which a control plane calls: its peers, and the engine of the
// record. Their answers have the time in the header Date.
import type { Clock } from '../../shared/clock.ts';
import { formatDuration } from '../../shared/duration.ts';
import type { Log } from '../../shared/log.ts';

/** Above it new lifts are refused: they would end too early or too late. */
const mostOffsetMs = 30_000;
/** What was compared longer ago is ignored. */
const rememberedMs = 300_000;
/** Places that are remembered; those above are of names that change. */
const mostOrigins = 64;
/** Date has whole seconds. */
const dateStepMs = 1_000;

interface Compared {
  /** Positive: this machine is ahead. */
  readonly aheadMs: number;
  /** Monotonic time in milliseconds. */
  readonly atMs: number;
}

export class ComparedClocks {
  readonly #clock: Clock;
  readonly #log: Log;
  /** Clocks that differ too much, by the name of their control plane. */
  readonly #off = new Map<string, Compared>();

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Call it when something is asked, and the result with the header Date of the answer. */
  start(): (origin: string, date: string | undefined) => void {
    const askedMs = this.#clock.wallMs();
    return (origin, date) => this.#note(origin, date, askedMs);
  }

  #note(origin: string, date: string | undefined, askedMs: number): void {
    const theirsMs = Date.parse(date ?? '');
    if (Number.isNaN(theirsMs)) return;
    const aheadAtMost = this.#clock.wallMs() - theirsMs;
    const aheadAtLeast = askedMs - theirsMs - dateStepMs;
    const isOff = aheadAtLeast > mostOffsetMs || aheadAtMost < -mostOffsetMs;
    const wasOff = this.#off.delete(origin);
    if (isOff && this.#off.size < mostOrigins) {
      const aheadMs = aheadAtLeast > 0 ? aheadAtLeast : aheadAtMost;
      const compared = { aheadMs, atMs: this.#clock.monotonicMs() };
      this.#off.set(origin, compared);
      if (!wasOff)
        this.#log.warning(
          `${toText(origin, compared)}: new lifts are refused until the clocks agree`,
        );
    } else if (wasOff) {
      this.#log.notice(`The clock of this control plane agrees with that of ${origin} again`);
    }
  }

  /** Human-readable, without an end; undefined where no clock is known to be off. */
  get problem(): string | undefined {
    const sinceMs = this.#clock.monotonicMs() - rememberedMs;
    for (const [origin, compared] of this.#off) {
      if (compared.atMs >= sinceMs) return toText(origin, compared);
      this.#off.delete(origin);
    }
    return undefined;
  }
}

function toText(origin: string, { aheadMs }: Compared): string {
  const by = formatDuration(Math.round(Math.abs(aheadMs) / 1000) * 1000);
  return `the clock of this control plane is ${by} ${aheadMs > 0 ? 'ahead of' : 'behind'} that of ${origin}`;
}
