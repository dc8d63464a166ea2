// `check --replay`: recorded decisions under the rules that are checked, and what becomes of them.

import type { RecordHeader } from '../../../shared/decision-record.ts';
import { type PlacedRule, placeRules } from '../../../shared/rules/placed-rule.ts';
import { isError } from '../../../shared/rules/problem.ts';
import { formatProblem, formatProblems } from '../../../shared/rules/problem-text.ts';
import type { RuleDocument } from '../../../shared/rules/rule-document.ts';
import { toTimeText } from '../../../shared/rules/rule-end.ts';
import { createReplay, type ReplaySummary } from '../../rehearsal/replay/replay.ts';
import { createRulesInTime, type RulesInTime } from '../../rehearsal/rules-in-time.ts';
import type { CommandIo } from '../command-frame.ts';
import { readPathInput } from '../input/path-input.ts';
import { openRecordedDecisions, type RecordReading } from '../input/recorded-decisions.ts';
import { loadRules } from '../input/rule-input.ts';
import { startProgress } from '../progress.ts';

export interface ReplayInput {
  /** Recorded decisions, of one worker or of several. */
  readonly files: readonly string[];
  /** A file or folder of the rules to compare with; undefined: the answers that were recorded. */
  readonly against: string | undefined;
  readonly documents: readonly RuleDocument[];
  readonly mergeDomains: boolean;
}

export interface ReplayReport {
  readonly summary: ReplaySummary;
  readonly reading: RecordReading;
  readonly against: string | undefined;
  /** The part of all descriptors that is recorded. */
  readonly rate: number;
  /** Rules that name values of keys whose values are hashed: they match nothing. */
  readonly blind: readonly string[];
  /** Whether the files are of workers with different settings; those of the first are taken. */
  readonly hasOtherSettings: boolean;
}

export type ReplayResult =
  | { readonly ok: true; readonly report: ReplayReport }
  /** Why there is no report, without a final full stop. */
  | { readonly ok: false; readonly message: string };

export async function replayDecisions(
  { files, against, documents, mergeDomains }: ReplayInput,
  io: Pick<CommandIo, 'clock' | 'writeError'>,
): Promise<ReplayResult> {
  const opened = await openRecordedDecisions(files);
  if (!opened.ok) return { ok: false, message: `--replay ${opened.message}` };
  const others = against === undefined ? undefined : await readOthers(against, mergeDomains);
  if (others !== undefined && 'message' in others) return { ok: false, message: others.message };
  const options = { mergeDomains, sanitizeMetricDots: false };
  const rules = createRulesInTime(documents, options);
  const otherRules = others && createRulesInTime(others.documents, options);
  const { batches, reading } = opened.recorded;
  const stopProgress = startProgress(io, () => describeProgress(reading));
  let replay: ReturnType<typeof createReplay> | undefined;
  try {
    for await (const batch of batches) {
      const startMs = batch[0]?.time ?? 0;
      if (replay === undefined) {
        const refusal =
          findRefusal(rules, startMs) ?? (otherRules && findRefusal(otherRules, startMs));
        if (refusal !== undefined) return { ok: false, message: refusal };
        const recordedBy = reading.headers[0]?.settings;
        replay = createReplay({ rules, against: otherRules, recordedBy, startMs });
      }
      for (const decision of batch) replay.take(decision);
    }
  } finally {
    stopProgress();
  }
  if (replay === undefined) {
    const first = reading.leftOut[0];
    const why =
      first === undefined
        ? ''
        : `; line ${first.line} of '${first.file}' is left out: ${first.reason}`;
    const message = reading.problem ?? `there is no recorded decision${why}`;
    return { ok: false, message: `--replay: ${message}` };
  }
  const all = [...documents, ...(others?.documents ?? [])];
  const [first, ...further] = reading.headers.map(({ settings }) => JSON.stringify(settings));
  return {
    ok: true,
    report: {
      summary: replay.summary(),
      reading,
      against,
      rate: Math.min(1, ...reading.headers.map((header) => header.rate)),
      blind: findBlindRules(all, reading.headers),
      hasOtherSettings: further.some((settings) => settings !== first),
    },
  };
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

/** Why a worker would not have taken the rules then. */
function findRefusal(rules: RulesInTime, startMs: number): string | undefined {
  const result = rules(startMs);
  const [problem] = result.ok ? [] : result.problems;
  const at = toTimeText(startMs);
  return problem && `--replay: a worker refuses the rules at ${at}: ${formatProblem(problem)}`;
}

function describeProgress({ bytes, totalBytes, decisions }: RecordReading): string {
  const percent = totalBytes === 0 ? 100 : Math.min(100, Math.floor((bytes / totalBytes) * 100));
  return `${percent} % of the recording is replayed, ${decisions} decisions`;
}

/** By their names. */
function findBlindRules(
  documents: readonly RuleDocument[],
  headers: readonly RecordHeader[],
): readonly string[] {
  const hashed = new Set(headers.flatMap(({ hashed_keys }) => hashed_keys));
  if (hashed.size === 0) return [];
  const found = new Set<string>();
  const visit = (rules: readonly PlacedRule[], prefix: string) => {
    for (const { descriptor, composite, children } of rules) {
      const name = `${prefix}.${composite}`;
      const isHashed = hashed.has('*') || hashed.has(descriptor.key);
      if (isHashed && descriptor.value !== '' && descriptor.value !== '*') found.add(name);
      visit(children, name);
    }
  };
  for (const [domain, rules] of placeRules(documents)) visit(rules, domain);
  return [...found];
}
