// `/explanations`: which limits apply to a request under the rules in force, and why.
import Type from 'typebox';
import { toCountText } from '../../../../shared/count-text.ts';
import { runInSlices } from '../../../../shared/in-slices.ts';
import { type Fields, HttpError, op, Stop } from '../../../../shared/router/index.ts';
import { toNumberText } from '../../../../shared/rules/limit-shape.ts';
import {
  type ExplainedDescriptor,
  explainRequest,
} from '../../../authoring/explain/explained-request.ts';
import { toExplanationJson } from '../../../authoring/explain/explanation-json.ts';
import { orNull } from '../../api-shape.ts';
import { type CountersJson, countersJson, mostDescriptors } from '../../fleet/counter-answers.ts';
import { AdminController } from '../admin-controller.ts';
import { findRulesNow, toUnknownDomainText } from '../rule-rows.ts';

const outcomeJson = Type.Object(
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

const entry = Type.Object({
  key: Type.String({ minLength: 1, maxLength: 4096 }),
  value: Type.String({ maxLength: 4096, default: '' }),
});

export class Default extends AdminController {
  static readonly POST = op({
    summary: 'Which limits apply to a request, and why',
    body: Type.Object({
      domain: Type.String({ minLength: 1, maxLength: 1024 }),
      descriptors: Type.Array(Type.Array(entry, { minItems: 1, maxItems: 100 }), {
        minItems: 1,
        maxItems: 100,
      }),
      revision: Type.Optional(
        Type.String({ minLength: 1, maxLength: 64, description: 'In place of that in force' }),
      ),
      now: Type.Boolean({
        default: false,
        description:
          'Ask the workers how far the counters are as well, and predict the answer to the request now',
      }),
    }),
    failures: { 409: undefined, 503: undefined },
    returns: {
      200: Type.Object({
        revision: Type.String(),
        domain: Type.String(),
        descriptors: Type.Array(Type.Object({}, { additionalProperties: true })),
        outcome: orNull(outcomeJson),
        counters: orNull(countersJson),
      }),
    },
  });

  async POST({ domain, descriptors, revision: wanted, now }: Fields<typeof Default.POST>) {
    const { id, documents } =
      wanted === undefined ? this.findInForce() : await this.examineRevision(wanted);
    const nowMs = this.api.clock.wallMs();
    const rules = await runInSlices(findRulesNow(documents, domain, nowMs));
    if (rules === undefined) {
      const known = documents.map((document) => document.domain);
      throw new HttpError(404, { detail: toUnknownDomainText(domain, known) });
    }
    const explained = await runInSlices(explainRequest(domain, rules, descriptors, nowMs));
    const explanation = { revision: id, ...toExplanationJson(domain, explained) };
    if (!now) return { ...explanation, outcome: null, counters: null };
    const counters = await this.readCounters(domain, descriptors);
    return {
      ...explanation,
      outcome: toOutcome(explained, counters),
      counters: typeof counters === 'string' ? null : counters,
    };
  }

  /** The counters, or why they are unknown. */
  private async readCounters(
    domain: string,
    descriptors: Fields<typeof Default.POST>['descriptors'],
  ): Promise<CountersJson | string> {
    if (descriptors.length > mostDescriptors) {
      return `workers are asked about ${mostDescriptors} descriptors at most`;
    }
    try {
      return await this.askCounters('/counters', { domain, descriptors }, undefined);
    } catch (error) {
      if (error instanceof HttpError || error instanceof Stop) return error.message;
      throw error;
    }
  }

  private findInForce() {
    const { snapshots } = this.api;
    const { ruleSet, documents } = snapshots;
    const { inForce } = snapshots.state();
    if (ruleSet === undefined || inForce === undefined) {
      throw this.refuse(503, 'no revision is in force yet');
    }
    return { id: inForce.revision.id, documents };
  }

  private async examineRevision(wanted: string) {
    const revision = await this.findRevision(wanted);
    const { ruleSet, documents } = await this.api.examine(revision);
    if (ruleSet === undefined) {
      throw new HttpError(409, { detail: `revision ${revision.id} has errors: nothing follows` });
    }
    return { id: revision.id, documents };
  }
}

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
