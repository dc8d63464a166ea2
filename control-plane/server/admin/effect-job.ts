// Runs estimates and replays in the thread: each decides thousands of requests, under rules that may take a second to
// build.
import type { RuleDocument } from '../../../shared/rules/rule-document.ts';
import {
  type DocumentPiece,
  toDocumentPieces,
} from '../../../shared/rules/thread/document-pieces.ts';
import type { JobThread, Next, Steps } from '../../../shared/thread/job-thread.ts';
import type { EstimatedValue, SeenValue } from '../../authoring/rehearsal/effect/estimate.ts';
import type { ReplayTally, ValueRefusals } from '../../authoring/rehearsal/replay/tally.ts';
import type { WorkHead } from '../work-thread.ts';

/** The documents of one domain: those in force, and the changed ones. */
export interface BothRules {
  readonly domain: string;
  readonly before: readonly RuleDocument[];
  readonly after: readonly RuleDocument[];
}

export interface EstimateQuestion {
  readonly values: readonly SeenValue[];
  /** Wall time in milliseconds. */
  readonly nowMs: number;
}

export interface ReplayQuestion {
  /** The directory with the recordings. */
  readonly directory: string;
  /** The most values that are listed. */
  readonly mostListed: number;
}

export interface ReplayedEffect {
  readonly firstMs: number;
  readonly lastMs: number;
  readonly decisions: number;
  readonly requests: ReplayTally['requests'];
  /** The first refused values. */
  readonly values: readonly ValueRefusals[];
  readonly valuesInAll: number;
  /** The reasons why the figures may be incomplete. */
  readonly doubts: readonly string[];
}

/** The effect, or why there is nothing to report, without a final full stop. */
export type ReplayAnswer = ReplayedEffect | { readonly message: string };

export type EffectQuestion = { readonly domain: string } & (
  | { readonly estimate: EstimateQuestion }
  | { readonly replay: ReplayQuestion }
);
export type EffectPiece = { readonly side: 'before' | 'after' } | DocumentPiece;

const subject = 'the effect of the change';
/** In characters of a file: assumes the largest file, whose rules may take as long. */
const size = 4 * 1024 * 1024;

/** Like estimateEffect. Rejects like JobThread.run. */
export function estimateApart(
  thread: JobThread,
  both: BothRules,
  estimate: EstimateQuestion,
  signal: AbortSignal,
): Promise<readonly EstimatedValue[]> {
  const send = toPieces({ domain: both.domain, estimate }, both);
  return thread.run({ subject, size, signal, send, receive: receive<readonly EstimatedValue[]> });
}

/** Like replayRecordings. Rejects like JobThread.run. */
export function replayApart(
  thread: JobThread,
  both: BothRules,
  replay: ReplayQuestion,
  signal: AbortSignal,
): Promise<ReplayAnswer> {
  const send = toPieces({ domain: both.domain, replay }, both);
  return thread.run({ subject, size, signal, send, receive: receive<ReplayAnswer> });
}

function* toPieces(
  question: EffectQuestion,
  { before, after }: BothRules,
): Generator<object, void> {
  yield { work: 'effect' } satisfies WorkHead;
  yield question;
  for (const [side, documents] of Object.entries({ before, after })) {
    for (const document of documents) {
      yield { side };
      yield* toDocumentPieces(document);
    }
  }
}

function* receive<Answer>(next: Next): Steps<Answer> {
  yield;
  return next() as Answer;
}
