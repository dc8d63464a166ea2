// Counters of workers, as the admin API is asked about them and shows them. Pure.
import Type from 'typebox';
import { orNull } from '../../shared/or-null.ts';
import type { CountersResult } from '../fleet/counters.ts';
import type { PeerAnswer } from '../peers/peers.ts';
import { toMissing } from './peer-json.ts';

const entry = Type.Object({
  key: Type.String({ minLength: 1, maxLength: 2048 }),
  value: Type.String({ maxLength: 2048, default: '' }),
});

/** What both questions have. */
export const countersAsked = {
  domain: Type.String({ minLength: 1, maxLength: 1024 }),
  descriptors: Type.Array(Type.Array(entry, { minItems: 1, maxItems: 32 }), {
    minItems: 1,
    maxItems: 20,
  }),
  worker: Type.Optional(
    Type.String({
      maxLength: 1024,
      description:
        'The node id of the workers to ask; without it all that count by themselves, and one of those that count together',
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
        problem: orNull(Type.String({ description: 'Why it gives no answer' })),
        counters: Type.Array(counterJson),
      }),
    ),
    notAsked: Type.Integer({
      description:
        'Workers that count by themselves and were not asked, because there are too many',
    }),
    missing: Type.Array(Type.Object({ url: Type.String(), error: Type.String() }), {
      description: 'Peers that gave no answer: whether their workers were asked is not known',
    }),
  },
  { title: 'Counters' },
);
export type CountersJson = Type.Static<typeof countersJson>;

export function toCountersJson({ answers, notAsked }: CountersResult): CountersJson {
  return {
    answers: answers.map(({ problem, counters, ...answer }) => ({
      ...answer,
      problem: problem ?? null,
      counters: counters.map((counter) => ({
        descriptor: counter.descriptor,
        problem: counter.problem || null,
        rule: counter.rule ?? '',
        used: counter.used ?? 0,
        limit: counter.limit ?? 0,
        window: counter.window ?? '',
        secondsUntilReset: counter.secondsUntilReset ?? 0,
      })),
    })),
    notAsked,
    missing: [],
  };
}

/** Of all control planes. Workers that count together are there once, except those that gave no answer. */
export function mergeCounters(
  own: CountersJson,
  peers: readonly PeerAnswer<CountersJson>[],
): CountersJson {
  const known = [own, ...peers.flatMap(({ value }) => value ?? [])];
  const answers: CountersJson['answers'] = [];
  for (const answer of known.flatMap((each) => each.answers)) {
    const same = answers.findIndex(
      ({ group, problem }) => group === answer.group && problem === null,
    );
    const first = answers[same];
    if (first === undefined || answer.problem !== null) answers.push(answer);
    else answers[same] = { ...first, together: first.together + answer.together };
  }
  return {
    answers,
    notAsked: known.reduce((sum, { notAsked }) => sum + notAsked, 0),
    missing: toMissing(peers),
  };
}
