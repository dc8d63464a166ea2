// The hits per rule that all workers of the fleet count, as rates over the last minute, and per minute over a quarter
// of an hour. Memory depends on the number of rules, not of workers. If there are too many rules, those of the link
// that reports the most are omitted.
import type { Clock } from '../../../shared/clock.ts';
import type { RuleTrafficMessage } from '../../../shared/wire/fleet-messages.ts';
import { toTime } from '../api-shape.ts';
import { maxNameLength } from './limits.ts';
import { SharedTable } from './shared-table.ts';
import { openSlots, Slots, slotMs } from './slots.ts';
import { toCount } from './worker-figures.ts';

export interface RuleRate {
  /** The metric key. */
  readonly rule: string;
  readonly hitsPerSecond: number;
  readonly overLimitPerSecond: number;
  readonly nearLimitPerSecond: number;
}

/** `minute`: in slots of five seconds. `quarter`: a quarter of an hour, in slots of a minute. */
export type SeriesSpan = 'minute' | 'quarter';

/** Hits per second in each slot of a span, or since the start, oldest first, without the slots that reports may still
 * add to. */
export interface RuleSeries {
  /** The metric key. */
  readonly rule: string;
  readonly hits: readonly number[];
  readonly overLimit: readonly number[];
  readonly nearLimit: readonly number[];
}

/** The series of the rules of one domain. */
export interface DomainSeries {
  readonly rules: readonly RuleSeries[];
  /** The end of the newest slot. */
  readonly until: string;
  /** For each slot of the span, oldest first: whether reports cover all of it. Other slots are unknown, which differs
   * from having no hits. */
  readonly known: readonly boolean[];
}

/** A minute. */
const shownSlots = 60_000 / slotMs;
/** A ring of counts; each of its slots spans several of the slots to which reports are assigned. */
interface Ring {
  readonly per: number;
  readonly shown: number;
  readonly retained: number;
}
const rings: Readonly<Record<SeriesSpan, Ring>> = {
  minute: { per: 1, shown: shownSlots, retained: shownSlots + openSlots },
  quarter: { per: shownSlots, shown: 15, retained: 17 },
};
const spans = ['minute', 'quarter'] as const;
const retainedSlots = rings.minute.retained;
/** The time after which a rule without hits is removed. */
const rememberedSlots = rings.quarter.retained * shownSlots;
const fields = 3;
const maxRules = 20_000;
const maxRulesPerReport = 2_000;
/** Deltas over a longer time do not belong to the last minute: the worker was without a link. */
const longestSeconds = 30;

interface Row {
  /** Three numbers per slot, precise to seven digits. */
  readonly counts: Readonly<Record<SeriesSpan, Float32Array>>;
  /** Number of the last slot with hits. */
  last: number;
}

export class RuleRates {
  readonly #clock: Clock;
  readonly #rows = new SharedTable<Row>(maxRules);
  readonly #slots: Slots;
  readonly #startMs: number;
  /** The first slot that is observed from its start. */
  readonly #firstComplete: number;
  #current: number;
  /** The slots of which any report covers a part. */
  readonly #covered = new Set<number>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#slots = new Slots(clock);
    this.#startMs = clock.monotonicMs();
    this.#current = this.#slots.now();
    this.#firstComplete = this.#current + 1;
  }

  /** Adds the hits that a link's worker has counted in the last `seconds` seconds. */
  add(link: object, rules: readonly RuleTrafficMessage[], seconds: number): void {
    this.#moveOn();
    if (!(seconds <= longestSeconds)) return;
    const shares = this.#slots.share(seconds, retainedSlots);
    for (const { slot } of shares) this.#covered.add(slot);
    for (let index = 0; index < rules.length && index < maxRulesPerReport; index++) {
      const { rule, hits, overLimit, nearLimit } = rules[index] as RuleTrafficMessage;
      const row = this.#rowOf(link, rule);
      if (row === undefined) continue;
      row.last = this.#current;
      for (const span of spans) {
        const counts = row.counts[span];
        for (const { slot, share } of shares) {
          const at = indexOf(rings[span], toRing(rings[span], slot));
          counts[at] = (counts[at] ?? 0) + toCount(hits) * share;
          counts[at + 1] = (counts[at + 1] ?? 0) + toCount(overLimit) * share;
          counts[at + 2] = (counts[at + 2] ?? 0) + toCount(nearLimit) * share;
        }
      }
    }
  }

  /** Handles a closed link. */
  leave(link: object): void {
    this.#rows.leave(link);
  }

  /** The rates of the rules that had hits in the last minute. */
  read(): RuleRate[] {
    this.#moveOn();
    // The current slot is incomplete.
    const spanMs = shownSlots * slotMs - this.#slots.leftMs();
    const passedMs = this.#clock.monotonicMs() - this.#startMs;
    const seconds = Math.max(slotMs, Math.min(spanMs, passedMs)) / 1000;
    return this.#lately('minute').map(([rule, row]) => {
      const rate = (field: number) =>
        spanOf(row, 'minute', field, this.#current).reduce((sum, count) => sum + count, 0) /
        seconds;
      return {
        rule,
        hitsPerSecond: rate(0),
        overLimitPerSecond: rate(1),
        nearLimitPerSecond: rate(2),
      };
    });
  }

  readSeries(domain: string, span: SeriesSpan): DomainSeries {
    this.#moveOn();
    const start = `${domain}.`;
    const { per, shown } = rings[span];
    const last = this.#lastOf(rings[span]);
    const observed = Math.min(shown, Math.max(0, last - Math.ceil(this.#firstComplete / per) + 1));
    const seconds = (per * slotMs) / 1000;
    const isCovered = (ringSlot: number) =>
      Array.from({ length: per }, (_, index) => ringSlot * per + index).every((slot) =>
        this.#covered.has(slot),
      );
    return {
      rules: this.#lately(span)
        .filter(([rule]) => rule.startsWith(start))
        .map(([rule, row]) => {
          const series = (field: number) =>
            spanOf(row, span, field, last)
              .slice(shown - observed)
              .map((count) => count / seconds);
          return { rule, hits: series(0), overLimit: series(1), nearLimit: series(2) };
        }),
      until: toTime(this.#slots.toWallMs((last + 1) * per)),
      known: Array.from({ length: shown }, (_, index) => isCovered(last - shown + 1 + index)),
    };
  }

  #moveOn(): void {
    const [before, now] = [this.#current, this.#slots.now()];
    if (now <= before) return;
    for (const [rule, { counts, last }] of this.#rows.entries()) {
      if (now - last >= rememberedSlots) {
        this.#rows.remove(rule);
        continue;
      }
      for (const span of spans) {
        const ring = rings[span];
        const end = toRing(ring, now);
        const begin = Math.max(toRing(ring, before), end - ring.retained) + 1;
        for (let slot = begin; slot <= end; slot++) {
          counts[span].fill(0, indexOf(ring, slot), indexOf(ring, slot) + fields);
        }
      }
    }
    this.#current = now;
    for (const slot of this.#covered) {
      if (now - slot >= rememberedSlots) this.#covered.delete(slot);
    }
  }

  /** The newest complete slot of the ring. */
  #lastOf({ per }: Ring): number {
    return Math.floor((this.#current - openSlots + 1) / per) - 1;
  }

  #rowOf(link: object, rule: string): Row | undefined {
    const known = this.#rows.find(link, rule);
    if (known !== undefined || rule.length > maxNameLength) return known;
    const counts = {
      minute: new Float32Array(rings.minute.retained * fields),
      quarter: new Float32Array(rings.quarter.retained * fields),
    };
    const row = { counts, last: this.#current };
    return this.#rows.add(link, rule, row) ? row : undefined;
  }

  /** The rows with hits in the span. */
  #lately(span: SeriesSpan): (readonly [string, Row])[] {
    const most = span === 'minute' ? retainedSlots : rememberedSlots;
    return [...this.#rows.entries()].filter(([, { last }]) => this.#current - last < most);
  }
}

/** The index of a slot in this ring. */
function indexOf({ retained }: Ring, slot: number): number {
  return (slot % retained) * fields;
}

function toRing({ per }: Ring, slot: number): number {
  return Math.floor(slot / per);
}

/** The counts of one field, in the span that ends with this slot of its ring, oldest first. */
function spanOf({ counts }: Row, span: SeriesSpan, field: number, last: number): number[] {
  const ring = rings[span];
  return Array.from(
    { length: ring.shown },
    (_, index) => counts[span][indexOf(ring, last - ring.shown + 1 + index) + field] ?? 0,
  );
}
