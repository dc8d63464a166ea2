// Composes the recording of decisions from the settings. Loaded only where it is on.
import type { Clock } from '../../shared/clock.ts';
import { decisionRecordVersion, type RecordHeader } from '../../shared/decision-record.ts';
import type { Log } from '../../shared/log.ts';
import type { DecisionRecorder } from '../decision/should-rate-limit.ts';
import type { Metrics } from '../metrics.ts';
import { toDecisionOptions } from '../settings/decision-options.ts';
import type { WorkerSettings } from '../settings.ts';
import { createRecordFile, type RecordFile } from './record-file.ts';
import { createRecorder, type RecordSink } from './recorder.ts';

interface RecordingDeps {
  readonly settings: WorkerSettings;
  readonly log: Log;
  readonly clock: Clock;
}

export interface RecordFileForDeps extends RecordingDeps {
  /** Identifies this start of the worker. */
  readonly instance: string;
  readonly metrics: Pick<Metrics, 'counter'>;
}

/** The file of the worker; it has one, however many processes decide. */
export function createRecordFileFor(deps: RecordFileForDeps): RecordFile {
  const { settings, instance, metrics, log, clock } = deps;
  const { path, fileBytes, files } = settings.recording;
  return createRecordFile({
    options: { path, maxBytes: fileBytes, files },
    header: () => `${JSON.stringify(toHeader(settings, instance, clock.wallMs()))}\n`,
    metrics,
    log,
    clock,
  });
}

/** The recorder of a process. The processes of a worker share its bound. */
export function createRecorderFor(
  { settings, log, clock }: RecordingDeps,
  sink: RecordSink,
): DecisionRecorder {
  const { rate, maxPerSecond, hashedKeys, hashKey } = settings.recording;
  return createRecorder({
    options: {
      rate,
      maxPerSecond: Math.ceil(maxPerSecond / settings.processes.count),
      hashedKeys,
      secret: hashKey,
    },
    sink,
    log,
    clock,
  });
}

function toHeader(settings: WorkerSettings, instance: string, timeMs: number): RecordHeader {
  const { rate, hashedKeys } = settings.recording;
  const options = toDecisionOptions(settings);
  return {
    decisions: decisionRecordVersion,
    time: timeMs,
    instance,
    rate,
    hashed_keys: hashedKeys,
    settings: {
      week_reset_day: options.weekResetDay,
      calendar_months: options.calendarMonths,
      shadow_mode: options.shadowMode,
      quota_mode: options.quotaMode,
      stop_increment_when_over_limit: options.stopIncrementWhenOver,
    },
  };
}
