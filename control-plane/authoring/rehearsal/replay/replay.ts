// Replays recorded decisions under other rules: finds values that would be refused but were not, and the reverse.
// tally.ts counts.
import type { RecordedDecision, RecordHeader } from '../../../../shared/decision-record.ts';
import type { Entry } from '../../../../shared/rules/rule.ts';
import { codes, type RateLimitRequest } from '../../../../worker/decision/message.ts';
import { parseWorkerSettings, type WorkerSettings } from '../../../../worker/settings.ts';
import { createRehearsal, type Rehearsal } from '../rehearsal.ts';
import type { RulesInTime } from '../rules-in-time.ts';
import { createTally, type ReplayTally } from './tally.ts';

export interface ReplayOptions {
  readonly rules: RulesInTime;
  /** Undefined: compares with the recorded answers. */
  readonly against: RulesInTime | undefined;
  /** The settings of the worker that made the recording; undefined for the defaults. */
  readonly recordedBy: RecordHeader['settings'] | undefined;
  /** Wall time of the first decision. The rules must be valid then. */
  readonly startMs: number;
}

export interface ReplaySummary extends ReplayTally {
  /** Wall time in milliseconds. */
  readonly firstMs: number;
  readonly lastMs: number;
  /** Decisions that were replayed. */
  readonly decisions: number;
  /** The decisions whose overall code is the recorded one: under the rules to compare with, if any. */
  readonly asRecorded: number;
  /** Decisions that were recorded as an error: what they counted is unknown, so they are omitted. */
  readonly failed: number;
  /** Decisions that were answered without the store: the replay counts hits that were not counted. */
  readonly withoutStore: number;
  /** Decisions for which no counter was free, or whose request carried an invalid limit. */
  readonly undecided: number;
}

/** `after`: under the rules; `before`: under the rules to compare with, or as recorded. */
export class Replay {
  readonly #after: Rehearsal;
  readonly #before: Rehearsal | undefined;
  readonly #tally = createTally();
  readonly #counts;

  constructor({ rules, against, recordedBy, startMs }: ReplayOptions) {
    const settings = toSettings(recordedBy);
    this.#after = createRehearsal({ rules, settings, startMs });
    this.#before = against && createRehearsal({ rules: against, settings, startMs });
    const none = { decisions: 0, asRecorded: 0, failed: 0, withoutStore: 0, undecided: 0 };
    this.#counts = { firstMs: startMs, lastMs: startMs, ...none };
  }

  /** Accepts decisions in chronological order; a few seconds late is fine. */
  receive(recorded: RecordedDecision): void {
    const counts = this.#counts;
    const { time, statuses } = recorded;
    if (statuses === undefined) {
      counts.failed++;
      return;
    }
    counts.firstMs = Math.min(counts.firstMs, time);
    counts.lastMs = Math.max(counts.lastMs, time);
    if (statuses.some(({ fallback }) => fallback !== undefined && fallback !== 'cache')) {
      counts.withoutStore++;
    }
    const request = toRequest(recorded);
    const after = decide(this.#after, request, recorded);
    const before = this.#before ? decide(this.#before, request, recorded) : toAnswer(recorded);
    if (after === undefined || before === undefined) {
      counts.undecided++;
      return;
    }
    counts.decisions++;
    const replayed = this.#before ? before : after;
    if (replayed.isOver === (recorded.code === 'OVER_LIMIT')) counts.asRecorded++;
    this.#tally.countRequest(before.isOver, after.isOver);
    for (const [index, { entries }] of request.descriptors.entries()) {
      if (statuses[index]?.sampled === false) continue;
      const rule = after.ruleOf(index) ?? before.ruleOf(index);
      if (rule === undefined) continue;
      const isOverBefore = before.overs[index] === true;
      const isOverAfter = after.overs[index] === true;
      this.#tally.countDescriptor(rule, entries, isOverBefore, isOverAfter);
    }
  }

  summary(): ReplaySummary {
    return { ...this.#tally.read(), ...this.#counts };
  }
}

/** One side's answer to a request. */
interface Answer {
  readonly isOver: boolean;
  /** Whether each descriptor is over its limit. */
  readonly overs: readonly boolean[];
  /** The name of the rule whose limit applied; undefined without one. */
  ruleOf(descriptor: number): string | undefined;
}

function toAnswer({ code, statuses = [] }: RecordedDecision): Answer {
  return {
    isOver: code === 'OVER_LIMIT',
    overs: statuses.map((status) => status.code === 'OVER_LIMIT'),
    ruleOf: (descriptor) => statuses[descriptor]?.rule,
  };
}

/** Undefined where there is no answer. A descriptor outside the sample keeps its recorded code: other requests with its
 * counter may be missing. */
function decide(
  rehearsal: Rehearsal,
  request: RateLimitRequest,
  { time, statuses = [] }: RecordedDecision,
): Answer | undefined {
  const { outcome, matches } = rehearsal.decide(request, time);
  if (!outcome.ok) return undefined;
  const { response } = outcome;
  let isComplete = true;
  const overs = response.statuses.map(({ code }, index) => {
    const recorded = statuses[index];
    if (recorded?.sampled !== false) return code === codes.overLimit;
    isComplete = false;
    return recorded.code === 'OVER_LIMIT';
  });
  return {
    isOver: isComplete ? response.overallCode === codes.overLimit : overs.includes(true),
    overs,
    ruleOf(descriptor) {
      const match = matches[descriptor];
      const entries = request.descriptors[descriptor]?.entries ?? [];
      return match && (rehearsal.find(request.domain, entries, match)?.name ?? match.metricKey);
    },
  };
}

function toRequest({ domain, descriptors, hits_addend = 0 }: RecordedDecision): RateLimitRequest {
  return {
    domain,
    hitsAddend: hits_addend,
    descriptors: descriptors.map(({ entries, limit, hits_addend, is_negative_hits }) => ({
      entries: entries as readonly Entry[],
      limit: limit && { requestsPerUnit: limit.requests_per_unit, unit: limit.unit },
      hitsAddend: typeof hits_addend === 'string' ? BigInt(hits_addend) : hits_addend,
      isNegativeHits: is_negative_hits === true,
    })),
  };
}

const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];

function toSettings(recordedBy: RecordHeader['settings'] | undefined): WorkerSettings {
  const read = parseWorkerSettings({
    BACKEND_TYPE: 'memory',
    ...(recordedBy && {
      WEEK_RATE_LIMIT_RESET_DAY: days[recordedBy.week_reset_day],
      USE_CALENDAR_MONTH_RATE_LIMIT: String(recordedBy.calendar_months === true),
      SHADOW_MODE: String(recordedBy.shadow_mode === true),
      QUOTA_MODE: String(recordedBy.quota_mode === true),
      STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT:
        recordedBy.stop_increment_when_over_limit === 'enforced'
          ? 'enforced'
          : String(recordedBy.stop_increment_when_over_limit === true),
    }),
  });
  if (!read.ok) throw new Error(read.problems.join('; '));
  return read.settings;
}
