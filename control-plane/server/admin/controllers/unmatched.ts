// `/unmatched`: descriptors that matched no rule, and the nearest rule of each.
import Type from 'typebox';
import { runInSlices } from '../../../../shared/in-slices.ts';
import { type Fields, op } from '../../../../shared/router/index.ts';
import { type LocatedRule, toPositionText } from '../../../../shared/rules/lookup/located-rule.ts';
import { explainingNoMatch } from '../../../../shared/rules/lookup/nearest-rule.ts';
import { orNull, time } from '../../api-shape.ts';
import type { UnmatchedSample } from '../../fleet/unmatched-samples.ts';
import { AdminController } from '../admin-controller.ts';
import { askingPeer, joinBy, sumFields } from '../joined.ts';
import { locatingRules } from '../rule-rows.ts';

const sampleJson = Type.Object(
  {
    domain: Type.String(),
    entries: Type.Array(Type.Object({ key: Type.String(), value: Type.String() })),
    samples: Type.Integer({ description: 'How many samples were the same' }),
    lastAt: time,
    reason: Type.String({ description: 'Why, under the rules in force' }),
    hint: orNull(Type.String()),
    nearest: orNull(
      Type.String({ description: 'file:line:column of the rule that comes nearest' }),
    ),
  },
  { title: 'Unmatched' },
);
type SampleJson = Type.Static<typeof sampleJson>;

const unmatchedJson = Type.Object({ samples: Type.Array(sampleJson) });
export type UnmatchedJson = Type.Static<typeof unmatchedJson>;

export class Default extends AdminController {
  static readonly GET = op({
    summary: 'Samples of descriptors that match no rule, and why',
    description:
      'Those that the workers report, the last ones first; at most 50, as many of each worker where there are more.',
    query: Type.Object({
      peer: askingPeer,
    }),
    returns: { 200: unmatchedJson },
    failures: { 409: undefined, 503: undefined },
  });

  async GET({ peer }: Fields<typeof Default.GET>) {
    const { values } = await this.askPeers('/unmatched', unmatchedJson, peer);
    const located = await runInSlices(locatingRules(await this.readDocumentsNow()));
    const all = [this.api.fleet.unmatched(), ...values.map((value) => value.samples)];
    const samples = await runInSlices(explainSamples(all, located));
    // The control plane that asks its peers takes the first of each.
    if (peer !== undefined) return { samples };
    return { samples: samples.sort((a, b) => b.lastAt.localeCompare(a.lastAt)) };
  }
}

const maxShown = 50;
type Located = ReadonlyMap<string, readonly LocatedRule[]>;
/** Finding the nearest rule is expensive: each sample is explained once under the same rules. */
const explained = new WeakMap<Located, Map<string, Explanation>>();
type Explanation = Pick<SampleJson, 'reason' | 'hint' | 'nearest'>;

/** Joins the samples of control planes, and explains the first ones: each descriptor once, and if there are too many, an
 * equal number from each control plane. In steps. */
export function* explainSamples(
  all: readonly (readonly UnmatchedSample[])[],
  located: Located,
): Generator<void, SampleJson[]> {
  const most = Math.max(...all.map(({ length }) => length));
  const inTurn = Array.from({ length: most }, (_, turn) =>
    all.flatMap((samples) => samples[turn] ?? []),
  );
  const toKey = ({ domain, entries }: UnmatchedSample) => JSON.stringify([domain, entries]);
  const joined = joinBy(inTurn.flat(), toKey, (same) => ({
    domain: same[0].domain,
    entries: [...same[0].entries],
    ...sumFields(same, ['samples']),
    lastAt:
      same
        .map(({ lastAt }) => lastAt)
        .sort()
        .at(-1) ?? '',
  }));
  const before = explained.get(located);
  const now = new Map<string, Explanation>();
  const shown: SampleJson[] = [];
  for (const sample of joined.slice(0, maxShown)) {
    const key = toKey(sample);
    const explanation = before?.get(key) ?? (yield* explain(sample, located));
    now.set(key, explanation);
    shown.push({ ...sample, ...explanation });
    yield;
  }
  explained.set(located, now);
  return shown;
}

function* explain(
  { domain, entries }: Pick<UnmatchedSample, 'domain' | 'entries'>,
  located: Located,
): Generator<void, Explanation> {
  const rules = located.get(domain);
  if (rules === undefined) {
    return { reason: `there are no rules for the domain ${domain}`, hint: null, nearest: null };
  }
  const found = yield* explainingNoMatch(domain, rules, entries);
  if (found === undefined) {
    return { reason: 'the rules in force now have one for it', hint: null, nearest: null };
  }
  const { reason, hint, nearest } = found;
  return { reason, hint: hint ?? null, nearest: nearest ? toPositionText(nearest.rule) : null };
}
