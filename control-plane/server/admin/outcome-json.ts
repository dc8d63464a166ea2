// Predicts the current answer to a request, in the format of the admin API: from the rules that its descriptors match,
// and from the counters that the workers report. Pure.
import Type from 'typebox';
import { toCountText } from '../../../shared/count-text.ts';
import { toNumberText } from '../../../shared/rules/limit-shape.ts';
import type { ExplainedDescriptor } from '../../authoring/explain/explained-request.ts';
import { orNull } from '../api-shape.ts';
import type { CountersJson } from '../fleet/counter-answers.ts';

export const outcomeJson = Type.Object(
  {
    kind: Type.Union([
      Type.Literal('refused'),
      Type.Literal('passes'),
      /** The request passes, but would be refused without shadow mode. */
      Type.Literal('shadow'),
      Type.Literal('not_known'),
    ]),
    text: Type.String({ description: 'Such as Refused now (429): 232 of 20 a minute' }),
    freeInSeconds: orNull(
      Type.Integer({ description: 'Until the counter that refuses is free again; null of others' }),
    ),
  },
  { title: 'Outcome' },
);
export type OutcomeJson = Type.Static<typeof outcomeJson>;

type Answer = CountersJson['answers'][number];
type Counter = Answer['counters'][number];

/** The outcome of a request with one hit. `counters` is the reason if they are unknown. */
export function toOutcome(
  descriptors: readonly ExplainedDescriptor[],
  counters: CountersJson | string,
): OutcomeJson {
  const counted = descriptors.flatMap(({ matched }, index) =>
    matched !== undefined && matched.counted.length > 0 ? index : [],
  );
  const none = { freeInSeconds: null };
  if (counted.length === 0) {
    return { kind: 'passes', text: `Passes: ${whyUncounted(descriptors)}`, ...none };
  }
  if (typeof counters === 'string') {
    return { kind: 'not_known', text: `Not known now: ${counters}`, ...none };
  }
  const isJudged = (counter: Counter) =>
    counter.problem === null && counted.includes(counter.descriptor);
  const answers = counters.answers.filter(
    (answer) => answer.problem === null && answer.counters.some(isJudged),
  );
  if (answers.length === 0) {
    const problem =
      counters.answers.map(({ problem }) => problem).find((each) => each !== null) ??
      counters.answers.flatMap((each) => each.counters).find(({ problem }) => problem !== null)
        ?.problem ??
      'no worker has answered';
    return { kind: 'not_known', text: `Not known now: ${problem}`, ...none };
  }
  const judged = answers.map(({ group, together, counters: all }) => ({
    group,
    together,
    ...judge(all.filter(isJudged)),
  }));
  const worst =
    judged.find(({ kind }) => kind === 'refused') ?? judged.find(({ kind }) => kind === 'shadow');
  if (worst?.counter === undefined) return { kind: 'passes', text: 'Passes', ...none };
  const { kind, counter } = worst;
  const start = kind === 'refused' ? 'Refused now (429)' : 'Passes: shadow mode, would be refused';
  const isFreed = counter.limit > 0 && counter.secondsUntilReset > 0;
  return {
    kind,
    text: `${start}${toReach(judged, kind)}: ${toUseText(counter)}`,
    freeInSeconds: isFreed ? counter.secondsUntilReset : null,
  };
}

interface Judged {
  readonly kind: 'passes' | 'shadow' | 'refused';
  /** The counter that decides: of several, the one that is free again last. Undefined if the request passes. */
  readonly counter: Counter | undefined;
}

function judge(counters: readonly Counter[]): Judged {
  const full = counters
    .filter(({ used, limit }) => used >= limit)
    .sort((a, b) => b.secondsUntilReset - a.secondsUntilReset);
  const refusing = full.find(({ shadowMode }) => !shadowMode);
  if (refusing !== undefined) return { kind: 'refused', counter: refusing };
  const [shadow] = full;
  return shadow === undefined
    ? { kind: 'passes', counter: undefined }
    : { kind: 'shadow', counter: shadow };
}

/** If workers count separately, or have different rules in a rollout: for how many the outcome is true. */
function toReach(
  judged: readonly (Judged & Pick<Answer, 'group' | 'together'>)[],
  kind: Judged['kind'],
): string {
  const countOf = (some: typeof judged) => {
    const groups = new Map(some.map(({ group, together }) => [group, together]));
    return [...groups.values()].reduce((sum, together) => sum + together, 0);
  };
  const some = countOf(judged.filter((each) => each.kind === kind));
  const all = countOf(judged);
  return some === all ? '' : ` by ${some} of ${toCountText(all, 'worker')}`;
}

function toUseText({ used, limit, window }: Counter): string {
  return limit === 0
    ? 'the limit is 0'
    : `${toNumberText(used)} of ${toNumberText(limit)} ${toWindowText(window)}`;
}

/** `a minute`, `an hour`, or `in 5 minutes` for `5_minute`. */
function toWindowText(window: string): string {
  const [, count, unit] = /^(\d+)_(.+)$/.exec(window) ?? [];
  if (unit !== undefined) return `in ${count} ${unit}s`;
  return `${window === 'hour' ? 'an' : 'a'} ${window}`;
}

function whyUncounted(descriptors: readonly ExplainedDescriptor[]): string {
  const matched = descriptors.flatMap((each) => each.matched ?? []);
  if (matched.length === 0) return 'no limit applies to it';
  if (matched.some(({ limit }) => limit.unlimited)) return 'unlimited';
  return 'the rule of another descriptor replaces the limit';
}
