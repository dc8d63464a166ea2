// The thread's side of effect-job.ts. It alone loads the worker's decisions.
import { systemClock } from '../../../shared/clock.ts';
import { runAtOnce } from '../../../shared/in-slices.ts';
import {
  createDocumentJoiner,
  type DocumentJoiner,
} from '../../../shared/rules/thread/document-pieces.ts';
import type { Next } from '../../../shared/thread/job-thread.ts';
import type { DoJob } from '../../../shared/thread/thread-side.ts';
import { type EstimatedValue, estimateEffect } from '../../authoring/rehearsal/effect/estimate.ts';
import { replayRecordings } from '../../authoring/rehearsal/effect/recordings.ts';
import { describeDoubts } from '../../authoring/rehearsal/replay/recording-replay.ts';
import { createRulesInTime } from '../../authoring/rehearsal/rules-in-time.ts';
import type {
  BothRules,
  EffectPiece,
  EffectQuestion,
  EstimateQuestion,
  ReplayAnswer,
  ReplayQuestion,
} from './effect-job.ts';

const options = { mergeDomains: true, sanitizeMetricDots: false };

export const doEffectJob: DoJob = async (next, send) => {
  const question = next() as EffectQuestion;
  const both = receiveRules(next, question.domain);
  if ('estimate' in question) send(runAtOnce(estimating(both, question.estimate)));
  else send(await replay(both, question.replay));
};

function receiveRules(next: Next, domain: string): BothRules {
  const joiners: Record<'before' | 'after', DocumentJoiner[]> = { before: [], after: [] };
  let joiner: DocumentJoiner | undefined;
  for (
    let piece = next() as EffectPiece | undefined;
    piece;
    piece = next() as EffectPiece | undefined
  ) {
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
