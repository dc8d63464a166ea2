// `check --replay`: replays recorded decisions under the checked rules.
import { isError } from '../../../shared/rules/problem/problem.ts';
import { formatProblems } from '../../../shared/rules/problem/problem-text.ts';
import type { RuleDocument } from '../../../shared/rules/rule-document.ts';
import {
  openRecordedDecisions,
  type RecordingReading,
} from '../../authoring/rehearsal/replay/recorded-decisions.ts';
import {
  type ReplayReport,
  replayRecording,
} from '../../authoring/rehearsal/replay/recording-replay.ts';
import type { CommandIo } from '../command-frame.ts';
import { readPathInput } from '../input/path-input.ts';
import { loadRules } from '../input/rule-input.ts';
import { startProgress } from '../progress.ts';

export interface ReplayInput {
  /** Recordings of one worker or of several. */
  readonly files: readonly string[];
  /** A file or folder with the rules to compare with; undefined: the recorded answers. */
  readonly against: string | undefined;
  readonly documents: readonly RuleDocument[];
  readonly mergeDomains: boolean;
}

export interface CheckedReplay extends ReplayReport {
  readonly against: string | undefined;
}

export type CheckedReplayResult =
  | { readonly ok: true; readonly report: CheckedReplay }
  /** Why there is no report, without a final full stop. */
  | { readonly ok: false; readonly message: string };

export async function replayDecisions(
  { files, against, documents, mergeDomains }: ReplayInput,
  io: Pick<CommandIo, 'clock' | 'writeError'>,
): Promise<CheckedReplayResult> {
  const opened = await openRecordedDecisions(files);
  if (!opened.ok) return { ok: false, message: `--replay ${opened.message}` };
  const { recorded } = opened;
  const others = against === undefined ? undefined : await readOthers(against, mergeDomains);
  if (others !== undefined && 'message' in others) return { ok: false, message: others.message };
  const stopProgress = startProgress(io, () => describeProgress(recorded.reading));
  try {
    const result = await replayRecording({
      recorded,
      documents,
      others: others?.documents,
      mergeDomains,
    });
    if (!result.ok) return { ok: false, message: `--replay: ${result.message}` };
    return { ok: true, report: { ...result.report, against } };
  } finally {
    stopProgress();
  }
}

async function readOthers(path: string, mergeDomains: boolean) {
  const read = await readPathInput([path]);
  if (!read.ok) return { message: `--against ${read.message}` };
  const { documents, ruleSet, problems } = loadRules(read.input, mergeDomains);
  if (ruleSet !== undefined) return { documents };
  return {
    message: `--against '${path}' has errors:\n${formatProblems(problems.filter(isError))}`,
  };
}

function describeProgress({ bytes, totalBytes, decisions }: RecordingReading): string {
  const percent = totalBytes === 0 ? 100 : Math.min(100, Math.floor((bytes / totalBytes) * 100));
  return `${percent} % of the recording is replayed, ${decisions} decisions`;
}
