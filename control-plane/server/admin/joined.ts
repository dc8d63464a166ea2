// What answers of several control planes have in common: the query that one sends to the others, those that gave no
// answer, and how values of several workers or control planes are combined. Pure.
import Type from 'typebox';
import type { PeerAnswer } from '../record/peers/peers.ts';

/** The query parameter of a control plane that asks its peers. */
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

type Values<Value> = readonly [Value, ...Value[]];

/** One value for each key, in the order of the keys' first appearance. */
export function joinBy<Value, Key, Joined>(
  all: readonly Value[],
  toKey: (value: Value) => Key,
  join: (same: Values<Value>) => Joined,
): Joined[] {
  return [...Map.groupBy(all, toKey).values()].map((same) => join(same as [Value, ...Value[]]));
}

/** The sum of each field. A field that is missing counts as zero. */
export function sumFields<Field extends string>(
  all: readonly { readonly [Name in Field]?: number | undefined }[],
  fields: readonly Field[],
): Record<Field, number> {
  const sums = fields.map((field) => [
    field,
    all.reduce((sum, each) => sum + (each[field] ?? 0), 0),
  ]);
  return Object.fromEntries(sums) as Record<Field, number>;
}

/** Each field rounded to a tenth; below one, to a hundredth. */
export function roundFields<Field extends string>(
  rates: Readonly<Record<Field, number>>,
): Record<Field, number> {
  const rounded = Object.entries<number>(rates).map(([field, rate]) => [field, round(rate)]);
  return Object.fromEntries(rounded) as Record<Field, number>;
}

/** Rounds to a tenth; below one, to a hundredth. */
export function round(rate: number): number {
  const parts = rate < 1 ? 100 : 10;
  return Math.round(rate * parts) / parts;
}
