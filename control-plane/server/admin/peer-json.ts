// The common fields of all queries that control planes pass on to their peers. Pure.
import Type from 'typebox';
import type { PeerAnswer } from '../record/peers/peers.ts';

/** A query parameter. */
export const askingPeer = Type.Optional(
  Type.String({
    maxLength: 64,
    description: 'The id of the control plane that asks: speak of your own workers only',
  }),
);

/** Peers that did not answer. */
export const missingJson = Type.Array(Type.Object({ url: Type.String(), error: Type.String() }));

export interface PeerAnswers<Content> {
  readonly values: readonly Content[];
  readonly missing: Type.Static<typeof missingJson>;
}

export function toPeerAnswers<Content>(
  answers: readonly PeerAnswer<Content>[],
): PeerAnswers<Content> {
  return {
    values: answers.flatMap(({ value }) => value ?? []),
    missing: answers.flatMap(({ url, error }) => (error === undefined ? [] : { url, error })),
  };
}
