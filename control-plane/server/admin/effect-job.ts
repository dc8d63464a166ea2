// Runs estimates and replays in the thread: each decides thousands of requests, under rules that may take a second to
// build.
import { systemClock } from '../../../shared/clock.ts';
import { runAtOnce } from '../../../shared/in-slices.ts';
import type { RuleDocument } from '../../../shared/rules/rule-document.ts';
import {
  createDocumentJoiner,
  type DocumentJoiner,
  type DocumentPiece,
  toDocumentPieces,
} from '../../../shared/rules/thread/document-pieces.ts';
import type { JobThread, Next, Steps } from '../../../shared/thread/job-thread.ts';
import type { DoJob } from '../../../shared/thread/thread-side.ts';
import {
  type EstimatedValue,
  estimateEffect,
  type SeenValue,
} from '../../authoring/rehearsal/effect/estimate.ts';
import { replayRecordings } from '../../authoring/rehearsal/effect/recordings.ts';
import { describeDoubts } from '../../authoring/rehearsal/replay/recording-replay.ts';
import type { ReplayTally, ValueRefusals } from '../../authoring/rehearsal/replay/tally.ts';
import { createRulesInTime } from '../../authoring/rehearsal/rules-in-time.ts';
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

type Question = { readonly domain: string } & (
  | { readonly estimate: EstimateQuestion }
  | { readonly replay: ReplayQuestion }
);
type Piece = { readonly side: 'before' | 'after' } | DocumentPiece;

const subject = 'the effect of the change';
/** In characters of a file: assumes the largest file, whose rules may take as long. */
const size = 4 * 1024 * 1024;
const options = { mergeDomains: true, sanitizeMetricDots: false };

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

function* toPieces(question: Question, { before, after }: BothRules): Generator<object, void> {
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

export const doEffectJob: DoJob = async (next, send) => {
  const question = next() as Question;
  const both = receiveRules(next, question.domain);
  if ('estimate' in question) send(runAtOnce(estimating(both, question.estimate)));
  else send(await replay(both, question.replay));
};

function receiveRules(next: Next, domain: string): BothRules {
  const joiners: Record<'before' | 'after', DocumentJoiner[]> = { before: [], after: [] };
  let joiner: DocumentJoiner | undefined;
  for (let piece = next() as Piece | undefined; piece; piece = next() as Piece | undefined) {
    if ('side' in piece) {
      joiner = createDocumentJoiner();
      joiners[piece.side].push(joiner);
    } else joiner?.receive(piece);
  }
  const join = (all: readonly DocumentJoiner[]) => all.map((each) => each.toDocument());
  return { domain, before: join(joiners.before), after: join(joiners.after) };
}

function estimating(
  { domain, before, after }: BothRules,
  question: EstimateQuestion,
): Generator<void, EstimatedValue[]> {
  return estimateEffect({
    ...question,
    domain,
    before: createRulesInTime(before, options),
    after: createRulesInTime(after, options),
  });
}

async function replay(
  { domain, before, after }: BothRules,
  { directory, mostListed }: ReplayQuestion,
): Promise<ReplayAnswer> {
  const result = await replayRecordings({
    ...{ directory, domain, clock: systemClock },
    documents: after,
    others: before,
  });
  if (!result.ok) return result;
  const { requests, values, firstMs, lastMs, decisions } = result.report.summary;
  return {
    ...{ firstMs, lastMs, decisions, requests },
    values: values.slice(0, mostListed),
    valuesInAll: values.length,
    doubts: describeDoubts(result.report, 'the rules in force'),
  };
}
