// What the workers count by rule, as rates over the last minute of the whole fleet. Memory goes by the number
// of rules, not of workers. When there are too many, those of the link that tells the most are left out.
import type { Clock } from '../../shared/clock.ts';
import type { RuleTrafficMessage } from '../../shared/wire/fleet-messages.ts';
import { maxNameLength } from './limits.ts';
import { createSharedTable } from './shared-table.ts';
import { createSlots, openSlots, slotMs } from './slots.ts';
import { toCount } from './worker-figures.ts';

export interface RuleRate {
  /** The metric key. */
  readonly rule: string;
  readonly hitsPerSecond: number;
  readonly overLimitPerSecond: number;
  readonly nearLimitPerSecond: number;
}

/** Hits per second in each slot of five seconds of a minute, or since the start, the oldest first, without those that
 * reports may still add to. */
export interface RuleSeries {
  /** The metric key. */
  readonly rule: string;
  readonly hits: readonly number[];
  readonly overLimit: readonly number[];
  readonly nearLimit: readonly number[];
}

export interface RuleRates {
  /** What the worker of a link has counted in that many seconds until now. */
  take(link: object, rules: readonly RuleTrafficMessage[], seconds: number): void;
  /** The link is gone. */
  leave(link: object): void;
  /** Of the rules that had hits in the last minute. */
  read(): RuleRate[];
  /** Of one domain. */
  readSeries(domain: string): RuleSeries[];
}

/** A minute. */
const shownSlots = 60_000 / slotMs;
const keptSlots = shownSlots + openSlots;
const fields = 3;
const maxRules = 20_000;
const maxRulesPerReport = 2_000;
/** Deltas over a longer time are no matter of the last minute: the worker was without a link. */
const longestSeconds = 30;

interface Row {
  /** Three numbers for each slot, to seven digits. */
  readonly counts: Float32Array;
  /** Number of the last slot with hits. */
  last: number;
}

export function createRuleRates(clock: Clock): RuleRates {
  const rows = createSharedTable<Row>(maxRules);
  const slots = createSlots(clock);
  const startMs = clock.monotonicMs();
  let current = slots.now();
  const firstWhole = current + 1;

  function placeOf(slot: number): number {
    return (slot % keptSlots) * fields;
  }

  function moveOn(): void {
    const now = slots.now();
    const passed = Math.min(now - current, keptSlots);
    if (passed <= 0) return;
    for (const [rule, { counts, last }] of rows.entries()) {
      if (now - last >= keptSlots) {
        rows.remove(rule);
        continue;
      }
      for (let slot = now - passed + 1; slot <= now; slot++) {
        counts.fill(0, placeOf(slot), placeOf(slot) + fields);
      }
    }
    current = now;
  }

  function rowOf(link: object, rule: string): Row | undefined {
    const known = rows.find(link, rule);
    if (known !== undefined || rule.length > maxNameLength) return known;
    const row = { counts: new Float32Array(keptSlots * fields), last: current };
    return rows.add(link, rule, row) ? row : undefined;
  }

  /** Of one field, in the minute that ends with this slot, the oldest first. */
  function minuteOf({ counts }: Row, field: number, last: number): number[] {
    return Array.from(
      { length: shownSlots },
      (_, index) => counts[placeOf(last - shownSlots + 1 + index) + field] ?? 0,
    );
  }

  return {
    take(link, rules, seconds) {
      moveOn();
      if (!(seconds <= longestSeconds)) return;
      const shares = slots.share(seconds, keptSlots);
      for (let index = 0; index < rules.length && index < maxRulesPerReport; index++) {
        const { rule, hits, overLimit, nearLimit } = rules[index] as RuleTrafficMessage;
        const row = rowOf(link, rule);
        if (row === undefined) continue;
        const { counts } = row;
        row.last = current;
        for (const { slot, share } of shares) {
          const at = placeOf(slot);
          counts[at] = (counts[at] ?? 0) + toCount(hits) * share;
          counts[at + 1] = (counts[at + 1] ?? 0) + toCount(overLimit) * share;
          counts[at + 2] = (counts[at + 2] ?? 0) + toCount(nearLimit) * share;
        }
      }
    },
    leave: rows.leave,
    read() {
      moveOn();
      // The slot of now is not over.
      const spanMs = shownSlots * slotMs - slots.leftMs();
      const seconds = Math.max(slotMs, Math.min(spanMs, clock.monotonicMs() - startMs)) / 1000;
      return [...rows.entries()].map(([rule, row]) => {
        const rate = (field: number) =>
          minuteOf(row, field, current).reduce((sum, count) => sum + count, 0) / seconds;
        return {
          rule,
          hitsPerSecond: rate(0),
          overLimitPerSecond: rate(1),
          nearLimitPerSecond: rate(2),
        };
      });
    },
    readSeries(domain) {
      moveOn();
      const start = `${domain}.`;
      return [...rows.entries()]
        .filter(([rule]) => rule.startsWith(start))
        .map(([rule, row]) => {
          const known = Math.min(shownSlots, Math.max(0, current - openSlots - firstWhole + 1));
          const series = (field: number) =>
            minuteOf(row, field, current - openSlots)
              .slice(shownSlots - known)
              .map((count) => count / (slotMs / 1000));
          return { rule, hits: series(0), overLimit: series(1), nearLimit: series(2) };
        });
    },
  };
}
