// Questions about workers' counters, and the answers of one control plane or of all. Pure.
import Type from 'typebox';
import { toCountText } from '../../../shared/count-text.ts';
import { orNull } from '../api-shape.ts';

const entry = Type.Object({
  key: Type.String({ minLength: 1, maxLength: 2048 }),
  value: Type.String({ maxLength: 2048, default: '' }),
});

/** The most descriptors in one query. */
export const mostDescriptors = 20;

/** The fields of both queries. */
export const countersAsked = {
  domain: Type.String({ minLength: 1, maxLength: 1024 }),
  descriptors: Type.Array(Type.Array(entry, { minItems: 1, maxItems: 32 }), {
    minItems: 1,
    maxItems: mostDescriptors,
  }),
  worker: Type.Optional(
    Type.String({
      maxLength: 1024,
      description:
        'The node id of the workers to ask; without it all that count separately, and two of those that share counters',
    }),
  ),
};

export const countersPeer = Type.Object({
  peer: Type.Optional(
    Type.String({
      maxLength: 64,
      description: 'The id of the control plane that asks: ask your own workers only',
    }),
  ),
});

const counterJson = Type.Object(
  {
    descriptor: Type.Integer({ description: 'Its index in the request' }),
    problem: orNull(Type.String({ description: 'Why it has no counter; then the rest is empty' })),
    rule: Type.String({ description: 'The metric key' }),
    used: Type.Number(),
    limit: Type.Number(),
    window: Type.String({ description: 'Such as minute or 5_minute' }),
    secondsUntilReset: Type.Number(),
    shadowMode: Type.Boolean({
      description: 'Nothing is refused because of it: the rule, or the worker, is in shadow mode',
    }),
  },
  { title: 'Counter' },
);

export const countersJson = Type.Object(
  {
    answers: Type.Array(
      Type.Object({
        worker: Type.String({ description: 'Its node id' }),
        address: Type.String(),
        group: Type.String({ description: 'Equal for workers that count together' }),
        together: Type.Integer({ description: 'How many workers count together with it' }),
        differs: Type.Boolean({
          description:
            'Whether another worker that counts together with it answers otherwise: another problem, rule, limit or window, or a `used` that is more than a tenth and more than two hits away, which is more than live traffic makes between two questions. Each is listed then, else one for all',
        }),
        problem: orNull(
          Type.String({ description: 'Why it does not answer, or why its reset is not confirmed' }),
        ),
        confirmedBy: orNull(
          Type.Union([Type.Literal('another'), Type.Literal('itself')], {
            description:
              'After a reset: whether another worker that counts together with it has read the counters as reset, or, where there is none, only itself. Null where no worker has',
          }),
        ),
        counters: Type.Array(counterJson),
      }),
    ),
    notAsked: Type.Integer({
      description:
        'Workers that count by themselves and were not asked, because there are too many',
    }),
    missing: Type.Array(Type.Object({ url: Type.String(), error: Type.String() }), {
      description: 'Peers that did not answer: whether their workers were asked is not known',
    }),
    lifted: Type.Optional(
      Type.Array(
        Type.Object({
          descriptor: Type.Integer({ description: 'Its index in the request' }),
          until: Type.String({ description: 'RFC 3339' }),
        }),
        {
          description:
            'Descriptors whose limit is lifted by a rule with an end: nothing is counted until then. Absent where a peer asks',
        },
      ),
    ),
  },
  { title: 'Counters' },
);
export type CountersJson = Type.Static<typeof countersJson>;
export type CounterJson = Type.Static<typeof counterJson>;
export type AnswerJson = CountersJson['answers'][number];
/** The answers of the workers of one control plane. */
export type OwnCounters = Pick<CountersJson, 'answers' | 'notAsked'>;

/** Joins the answers of control planes. For workers that count together, one answer represents all that agree with it. */
export function joinCounters(known: readonly OwnCounters[]): OwnCounters {
  const groups = new Map<string, AnswerJson[]>();
  const together = new Map<string, number>();
  for (const { answers } of known) {
    const counted = new Map(answers.map((answer) => [answer.group, answer.together]));
    for (const [group, count] of counted) together.set(group, (together.get(group) ?? 0) + count);
    for (const answer of answers) {
      const different = groups.get(answer.group) ?? [];
      groups.set(answer.group, different);
      const same = different.findIndex((each) => agree(each, answer));
      const first = different[same];
      if (first === undefined) different.push(answer);
      else different[same] = { ...first, confirmedBy: confirm(first, answer) };
    }
  }
  return {
    answers: [...groups].flatMap(([group, different]) =>
      different.map((answer) => ({
        ...answer,
        together: together.get(group) ?? answer.together,
        differs: different.length > 1,
      })),
    ),
    notAsked: known.reduce((sum, { notAsked }) => sum + notAsked, 0),
  };
}

function agree(a: AnswerJson, b: AnswerJson): boolean {
  if (a.problem !== b.problem || a.counters.length !== b.counters.length) return false;
  // Two resets that are both confirmed were read at different times.
  const isConfirmed = a.confirmedBy !== null && b.confirmedBy !== null;
  return a.counters.every((counter, index) => {
    const other = b.counters[index];
    return (
      counter.descriptor === other?.descriptor &&
      counter.problem === other.problem &&
      counter.rule === other.rule &&
      counter.limit === other.limit &&
      counter.window === other.window &&
      counter.shadowMode === other.shadowMode &&
      (isConfirmed || isNear(counter.used, other.used))
    );
  });
}

/** Whether live traffic explains the difference between them. */
function isNear(a: number, b: number): boolean {
  return Math.abs(a - b) <= Math.max(2, Math.max(a, b) / 10);
}

/** The worker that confirms two answers that agree. */
function confirm(a: AnswerJson, b: AnswerJson): AnswerJson['confirmedBy'] {
  if (a.confirmedBy === null || b.confirmedBy === null) return a.confirmedBy;
  const isAnother = [a.confirmedBy, b.confirmedBy].includes('another') || a.worker !== b.worker;
  return isAnother ? 'another' : 'itself';
}

/** Why some counters may not have been reset; empty if all are known to be reset. */
export function findDoubts({ answers, notAsked, missing }: CountersJson): string[] {
  const doubts = answers.flatMap(({ worker, address, differs, problem, counters }) => {
    const problems = problem === null ? counters.flatMap((each) => each.problem ?? []) : [problem];
    if (differs && problem === null)
      problems.push('another worker that shares its counters differs');
    return problems.map((text) => `worker ${worker || address}: ${text}`);
  });
  if (notAsked > 0) doubts.push(`${toCountText(notAsked, 'worker')} not asked`);
  return [...doubts, ...missing.map(({ url, error }) => `peer ${url} does not answer (${error})`)];
}
