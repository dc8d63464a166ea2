// The outcomes of revisions on record: which were in force since when, taken back, held back or invalid, by whom
// and why. Pure.
import Type from 'typebox';

const kindJson = Type.Union([
  Type.Literal('in_force'),
  Type.Literal('taken_back'),
  Type.Literal('held_back'),
  Type.Literal('invalid'),
]);

export const outcomeOnRecord = Type.Object({
  /** The newest first: with those that changed nothing for anybody after it. */
  revisions: Type.Array(Type.String({ maxLength: 128 }), { minItems: 1 }),
  /** Of a build (snapshot/build.ts); '' of one that is invalid. */
  content: Type.String({ maxLength: 64 }),
  kind: kindJson,
  /** Since when: wall time in milliseconds, of the control plane that wrote it. */
  atMs: Type.Number(),
  /** Human-readable, with the figures that it was decided by; '' where there is nothing to say. */
  reason: Type.String(),
  /** The person who decided; '' for a control plane. */
  by: Type.String(),
});
export type OutcomeOnRecord = Type.Static<typeof outcomeOnRecord>;

/** With all of them the record stays below the bound of a shared text. */
export const maxOutcomes = 50;
const maxRevisions = 5;
/** Characters. */
const maxReason = 300;
const maxBy = 100;

export type NewOutcome = Omit<OutcomeOnRecord, 'revisions'> & { readonly revision: string };
export type Outcomes = readonly OutcomeOnRecord[];

/** A revision comes to this. */
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
  // A revision stays in force until another one is; any other outcome belongs to the same try.
  const isAgain = last !== undefined && last.kind !== 'in_force' && last.revisions[0] === revision;
  const short = { reason: cutText(now.reason, maxReason), by: cutText(now.by, maxBy) };
  const said = { revisions: [revision], ...now, ...short };
  return [said, ...(isAgain ? older : outcomes)].slice(0, maxOutcomes);
}

/** The outcome of the revision that is in force, or was last. */
export function inForceOf(outcomes: Outcomes): OutcomeOnRecord | undefined {
  return outcomes.find(({ kind }) => kind === 'in_force');
}

/** Of a text for people. */
export function cutText(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`.toWellFormed();
}
