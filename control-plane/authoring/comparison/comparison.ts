// Sends the same requests to two services, at the pace of the recording, and compares their answers.
import type { Clock } from '../../../shared/clock.ts';
import type { RecordedDecision } from '../../../shared/decision-record.ts';
import { type AnswerDifference, compareAnswers, type DifferenceKind } from './answer-difference.ts';
import { type AskedService, toRequestMessage } from './asked-service.ts';

export interface ComparisonDeps {
  readonly reference: AskedService;
  readonly candidate: AskedService;
  /** The decisions in chronological order. */
  readonly batches: AsyncIterable<readonly RecordedDecision[]>;
  /** A multiple of the recorded pace; 0: as fast as both answer. */
  readonly speed: number;
  readonly clock: Clock;
  /** Called for each request that is answered differently. */
  readonly onDifference: (
    asked: RecordedDecision,
    number: number,
    differences: readonly AnswerDifference[],
  ) => void;
  /** Ends the comparison early. */
  readonly signal: AbortSignal;
}

export interface Comparison {
  /** Requests that both answered. */
  readonly requests: number;
  /** Requests that were answered differently. */
  readonly different: number;
  readonly byKind: ReadonlyMap<DifferenceKind, number>;
  readonly seconds: number;
  /** How far the comparison was behind the pace at its end. */
  readonly lateSeconds: number;
  /** The service that failed and ended the comparison, and how. */
  readonly gone: { readonly service: 'reference' | 'candidate'; readonly how: string } | undefined;
}

/** Windows begin on whole seconds. Around such a moment, a request could be in the old window of one service and in the
 * new one of the other, and all later answers would differ: no request is sent then. */
const quietBeforeMs = 50;
const quietAfterMs = 20;

export async function compareServices(deps: ComparisonDeps): Promise<Comparison> {
  const { reference, candidate, speed, clock, signal } = deps;
  const byKind = new Map<DifferenceKind, number>();
  const startedMs = clock.monotonicMs();
  let requests = 0;
  let different = 0;
  let lateMs = 0;
  let firstMs: number | undefined;
  let gone: Comparison['gone'];

  const result = (): Comparison => ({
    requests,
    different,
    byKind,
    seconds: (clock.monotonicMs() - startedMs) / 1000,
    lateSeconds: lateMs / 1000,
    gone,
  });

  for await (const batch of deps.batches) {
    for (const asked of batch) {
      firstMs ??= asked.time;
      if (speed > 0) {
        const dueMs = startedMs + (asked.time - firstMs) / speed;
        await pause(dueMs - clock.monotonicMs(), deps);
        lateMs = Math.max(0, clock.monotonicMs() - dueMs);
      }
      await pause(toQuietMs(clock.wallMs()), deps);
      if (signal.aborted) return result();
      const message = toRequestMessage(asked);
      const [one, other] = await Promise.all([reference.ask(message), candidate.ask(message)]);
      if (typeof one === 'string') gone = { service: 'reference', how: one };
      else if (typeof other === 'string') gone = { service: 'candidate', how: other };
      else {
        requests++;
        const differences = compareAnswers(one, other);
        if (differences.length === 0) continue;
        different++;
        for (const { kind } of differences) byKind.set(kind, (byKind.get(kind) ?? 0) + 1);
        deps.onDifference(asked, requests, differences);
        continue;
      }
      return result();
    }
  }
  return result();
}

/** How long to wait until no window is about to begin. */
function toQuietMs(wallMs: number): number {
  const intoSecondMs = wallMs % 1000;
  if (intoSecondMs < quietAfterMs) return quietAfterMs - intoSecondMs;
  const leftMs = 1000 - intoSecondMs;
  return leftMs < quietBeforeMs ? leftMs + quietAfterMs : 0;
}

/** Ends early with the signal. */
function pause(ms: number, { clock, signal }: Pick<ComparisonDeps, 'clock' | 'signal'>) {
  if (ms <= 0 || signal.aborted) return Promise.resolve();
  return new Promise<void>((resolve) => {
    const end = () => {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const cancel = clock.after(ms, end);
    signal.addEventListener('abort', end);
  });
}
