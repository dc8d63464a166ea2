// The outcomes of revisions on record: which ones came into force, were taken back, held back or invalid, since when,
// by whom and why. Pure.
import Type from 'typebox';

const kindJson = Type.Union([
  Type.Literal('in_force'),
  Type.Literal('taken_back'),
  Type.Literal('held_back'),
  Type.Literal('invalid'),
]);

export const outcomeOnRecord = Type.Object({
  /** The newest first: includes later revisions that changed nothing for any worker. */
  revisions: Type.Array(Type.String({ maxLength: 128 }), { minItems: 1 }),
  /** The content of a build (snapshot/build.ts); '' for an invalid revision. */
  content: Type.String({ maxLength: 64 }),
  kind: kindJson,
  /** Since when: the wall time in milliseconds of the control plane that wrote it. */
  atMs: Type.Number(),
  /** Human-readable, with the figures behind the decision; '' if there is no reason to give. */
  reason: Type.String(),
  /** The person who decided; '' for a control plane. */
  by: Type.String(),
});
export type OutcomeOnRecord = Type.Static<typeof outcomeOnRecord>;

/** With this many outcomes the record stays below the limit of a shared text. */
export const maxOutcomes = 50;
const maxRevisions = 5;
/** The number of characters. */
const maxReason = 300;
const maxBy = 100;

export type NewOutcome = Omit<OutcomeOnRecord, 'revisions'> & { readonly revision: string };
export type Outcomes = readonly OutcomeOnRecord[];

/** Adds the outcome of a revision. */
export function withOutcome(
  outcomes: Outcomes,
  { revision, ...now }: NewOutcome,
): OutcomeOnRecord[] {
  const [last, ...older] = outcomes;
  const isSame =
    last?.kind === 'in_force' && now.kind === last.kind && now.content === last.content;
  if (isSame) {
    const others = last.revisions.filter((each) => each !== revision);
    return [{ ...last, revisions: [revision, ...others].slice(0, maxRevisions) }, ...older];
  }
  // A revision stays in force until another one comes into force; any other outcome belongs to the same try.
  const isAgain = last !== undefined && last.kind !== 'in_force' && last.revisions[0] === revision;
  const short = { reason: cutText(now.reason, maxReason), by: cutText(now.by, maxBy) };
  const reported = { revisions: [revision], ...now, ...short };
  return [reported, ...(isAgain ? older : outcomes)].slice(0, maxOutcomes);
}

/** The outcome of the revision that is, or was last, in force. */
export function inForceOf(outcomes: Outcomes): OutcomeOnRecord | undefined {
  return outcomes.find(({ kind }) => kind === 'in_force');
}

/** Shortens a human-readable text. */
export function cutText(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`.toWellFormed();
}
