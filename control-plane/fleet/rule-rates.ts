// What the workers count by rule, as rates over the last minute of the whole fleet. Memory goes by the number
// of rules, not of workers. When there are too many, those of the link that tells the most are left out.
import type { RuleTrafficMessage } from '../../shared/wire/fleet-messages.ts';
import { maxNameLength } from './limits.ts';
import { createSharedTable } from './shared-table.ts';
import { toCount } from './worker-figures.ts';

export interface RuleRate {
  /** The metric key. */
  readonly rule: string;
  readonly hitsPerSecond: number;
  readonly overLimitPerSecond: number;
  readonly nearLimitPerSecond: number;
}

/** Hits per second in each slot of five seconds of the last minute, the oldest first. */
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

const slotMs = 5_000;
const slots = 12;
const fields = 3;
const maxRules = 20_000;
const maxRulesPerReport = 2_000;
/** Deltas over a longer time are no matter of the last minute: the worker was without a link. */
const longestSeconds = 30;

interface Row {
  /** Three numbers for each slot. */
  readonly counts: Float64Array;
  /** Number of the last slot with hits. */
  last: number;
}

export function createRuleRates(monotonicMs: () => number): RuleRates {
  const rows = createSharedTable<Row>(maxRules);
  const startMs = monotonicMs();
  let current = Math.floor(startMs / slotMs);

  function moveOn(): void {
    const now = Math.floor(monotonicMs() / slotMs);
    const passed = Math.min(now - current, slots);
    if (passed <= 0) return;
    for (const [rule, { counts, last }] of rows.entries()) {
      if (now - last >= slots) {
        rows.remove(rule);
        continue;
      }
      for (let slot = now - passed + 1; slot <= now; slot++) {
        const at = (slot % slots) * fields;
        counts.fill(0, at, at + fields);
      }
    }
    current = now;
  }

  function rowOf(link: object, rule: string): Row | undefined {
    const known = rows.find(link, rule);
    if (known !== undefined || rule.length > maxNameLength) return known;
    const row = { counts: new Float64Array(slots * fields), last: current };
    return rows.add(link, rule, row) ? row : undefined;
  }

  return {
    take(link, rules, seconds) {
      moveOn();
      if (!(seconds <= longestSeconds)) return;
      const at = (current % slots) * fields;
      for (let index = 0; index < rules.length && index < maxRulesPerReport; index++) {
        const { rule, hits, overLimit, nearLimit } = rules[index] as RuleTrafficMessage;
        const row = rowOf(link, rule);
        if (row === undefined) continue;
        const { counts } = row;
        row.last = current;
        counts[at] = (counts[at] ?? 0) + toCount(hits);
        counts[at + 1] = (counts[at + 1] ?? 0) + toCount(overLimit);
        counts[at + 2] = (counts[at + 2] ?? 0) + toCount(nearLimit);
      }
    },
    leave: rows.leave,
    read() {
      moveOn();
      const nowMs = monotonicMs();
      // The slot of now is not over.
      const spanMs = (slots - 1) * slotMs + (nowMs - current * slotMs);
      const seconds = Math.max(slotMs, Math.min(spanMs, nowMs - startMs)) / 1000;
      return [...rows.entries()].map(([rule, { counts }]) => {
        const sums = [0, 0, 0];
        counts.forEach((count, index) => {
          sums[index % fields] = (sums[index % fields] ?? 0) + count / seconds;
        });
        const [hitsPerSecond = 0, overLimitPerSecond = 0, nearLimitPerSecond = 0] = sums;
        return { rule, hitsPerSecond, overLimitPerSecond, nearLimitPerSecond };
      });
    },
    readSeries(domain) {
      moveOn();
      const start = `${domain}.`;
      return [...rows.entries()]
        .filter(([rule]) => rule.startsWith(start))
        .map(([rule, { counts }]) => {
          // Without the slot of now, which is not over.
          const series = (field: number) =>
            Array.from({ length: slots - 1 }, (_, index) => {
              const slot = (current + 1 + index) % slots;
              return (counts[slot * fields + field] ?? 0) / (slotMs / 1000);
            });
          return { rule, hits: series(0), overLimit: series(1), nearLimit: series(2) };
        });
    },
  };
}
