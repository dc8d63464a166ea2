// What the peers told of their workers, asked again and again by the control plane that leads a rollout. Pure.
import type { PeerAnswer } from '../peers/peers.ts';
import { noPeers, type PeerFacts, type RolloutFacts, toPeerFacts } from './facts.ts';

export interface PeerWatch {
  /** The number of the last question. */
  readonly last: number;
  /** The question that is under way: answers to those of before count no more. */
  readonly asking: number | undefined;
  /** `askedAtMs`: on the monotonic clock. */
  readonly known: { readonly askedAtMs: number; readonly answers: Answers } | undefined;
}

type Answers = readonly PeerAnswer<RolloutFacts>[];

export const noAnswers: PeerWatch = { last: 0, asking: undefined, known: undefined };

/** The last facts of the peers about the record with this content. */
export function readAnswers({ known }: PeerWatch, contentId: string): PeerFacts {
  if (known !== undefined) return toPeerFacts(known.answers, contentId, known.askedAtMs);
  const unknown = 'waits for the answers of its peers';
  return { ...noPeers, unknown, askedAtMs: Number.NEGATIVE_INFINITY };
}

export function askNow({ last, known }: PeerWatch): PeerWatch {
  return { last: last + 1, asking: last + 1, known };
}

export function forgetAnswers({ last }: PeerWatch): PeerWatch {
  return { ...noAnswers, last };
}

/** `contentId`: of the record when they were asked. `news`: the other records that peers know. */
export function noteAnswers(
  before: PeerWatch,
  {
    question,
    askedAtMs,
    contentId,
    answers,
  }: {
    readonly question: number;
    readonly askedAtMs: number;
    readonly contentId: string;
    readonly answers: Answers;
  },
): { readonly peers: PeerWatch; readonly news: readonly string[] } {
  if (question !== before.asking) return { peers: before, news: [] };
  const records = answers.flatMap(({ value }) => value?.record ?? []);
  return {
    peers: { last: before.last, asking: undefined, known: { askedAtMs, answers } },
    news: records.filter((record) => record !== contentId),
  };
}
