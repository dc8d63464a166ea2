// Composes the recording of decisions from the settings. Loaded only if it is on.
import type { Clock } from '../../shared/clock.ts';
import { decisionRecordVersion, type RecordHeader } from '../../shared/decision-record.ts';
import type { Log } from '../../shared/log.ts';
import type { DecisionOptions, DecisionRecorder } from '../decision/should-rate-limit.ts';
import type { Metrics } from '../metrics.ts';
import { createRecordFile, type RecordFile } from './record-file.ts';
import { Recorder, type RecordSink } from './recorder.ts';
import type { RecordingSettings } from './recording-settings.ts';

interface RecordingDeps {
  readonly settings: RecordingSettings;
  readonly log: Log;
  readonly clock: Clock;
}

export interface RecordFileForDeps extends RecordingDeps {
  readonly decisionOptions: DecisionOptions;
  /** Identifies this start of the worker. */
  readonly instance: string;
  readonly metrics: Pick<Metrics, 'counter'>;
}

/** The file of the worker, which has one however many processes decide. */
export function createRecordFileFor(deps: RecordFileForDeps): RecordFile {
  const { metrics, log, clock } = deps;
  const { path, fileBytes, files } = deps.settings.recording;
  return createRecordFile({
    options: { path, maxBytes: fileBytes, files },
    header: () => `${JSON.stringify(toHeader(deps))}\n`,
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
  return new Recorder({
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

function toHeader({ settings, decisionOptions, instance, clock }: RecordFileForDeps): RecordHeader {
  const { rate, hashedKeys } = settings.recording;
  return {
    decisions: decisionRecordVersion,
    time: clock.wallMs(),
    instance,
    rate,
    hashed_keys: hashedKeys,
    settings: {
      week_reset_day: decisionOptions.weekResetDay,
      calendar_months: decisionOptions.calendarMonths,
      shadow_mode: decisionOptions.shadowMode,
      quota_mode: decisionOptions.quotaMode,
      stop_increment_when_over_limit:
        decisionOptions.stopIncrementWhenOver === 'enforced'
          ? 'enforced'
          : decisionOptions.stopIncrementWhenOver === 'true',
    },
  };
}
