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

export interface Replay {
  /** Accepts decisions in chronological order; a few seconds late is fine. */
  receive(decision: RecordedDecision): void;
  summary(): ReplaySummary;
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

export function createReplay(options: ReplayOptions): Replay {
  const settings = toSettings(options.recordedBy);
  const { startMs } = options;
  const after = createRehearsal({ rules: options.rules, settings, startMs });
  const before = options.against && createRehearsal({ rules: options.against, settings, startMs });
  const tally = createTally();
  let firstMs = startMs;
  let lastMs = startMs;
  let [decisions, asRecorded, failed, withoutStore, undecided] = [0, 0, 0, 0, 0];

  return {
    receive(recorded) {
      const { time, statuses } = recorded;
      if (statuses === undefined) {
        failed++;
        return;
      }
      firstMs = Math.min(firstMs, time);
      lastMs = Math.max(lastMs, time);
      if (statuses.some(({ fallback }) => fallback !== undefined && fallback !== 'cache')) {
        withoutStore++;
      }
      const request = toRequest(recorded);
      const now = decide(after, request, recorded);
      const then = before === undefined ? toAnswer(recorded) : decide(before, request, recorded);
      if (now === undefined || then === undefined) {
        undecided++;
        return;
      }
      decisions++;
      const shown = before === undefined ? now : then;
      if (shown.isOver === (recorded.code === 'OVER_LIMIT')) asRecorded++;
      tally.countRequest(then.isOver, now.isOver);
      for (const [index, { entries }] of request.descriptors.entries()) {
        if (statuses[index]?.sampled === false) continue;
        const rule = now.ruleOf(index) ?? then.ruleOf(index);
        if (rule === undefined) continue;
        const isOverThen = then.overs[index] === true;
        const isOverNow = now.overs[index] === true;
        tally.countDescriptor(rule, entries, isOverThen, isOverNow);
      }
    },
    summary: () => ({
      ...tally.read(),
      ...{ firstMs, lastMs, decisions, asRecorded, failed, withoutStore, undecided },
    }),
  };
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
