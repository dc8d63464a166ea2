// `/effects`: predicts the effect of a change of a domain: its problems, the changes for requests, and the values that
// would be refused.
import Type from 'typebox';
import type { Clock } from '../../../../shared/clock.ts';
import { toCountText } from '../../../../shared/count-text.ts';
import { runInSlices } from '../../../../shared/in-slices.ts';
import { type Fields, HttpError, op } from '../../../../shared/router/index.ts';
import type { Entry } from '../../../../shared/rules/rule.ts';
import { type JobThread, TooMuch } from '../../../../shared/thread/job-thread.ts';
import type { Range } from '../../../authoring/rehearsal/effect/estimate.ts';
import { orNull, time, toTime } from '../../api-shape.ts';
import type { BuiltSnapshots } from '../../snapshot/build.ts';
import { AdminController, allowRemoval } from '../admin-controller.ts';
import { judgeChange, toFileText } from '../change.ts';
import { type FoundChanges, findChanges, listChanges } from '../diff-job.ts';
import { findDomainFiles, namesTag, toTag } from '../domain-file.ts';
import { type BothRules, estimateApart, replayApart } from '../effect-job.ts';
import { type Examination, unlessBusy } from '../examination.ts';
import { round } from '../joined.ts';
import { toLongAnswer } from '../long-answer.ts';
import { patching } from '../patch-text.ts';
import { problemJson } from '../problem-json.ts';
import { revisionJson, toRevisionJson } from '../revision-json.ts';
import { ruleChangeJson } from '../rule-change-json.ts';
import { findingRuleOwners, type RuleOwners } from '../rule-owners.ts';
import { lineageOf } from '../rule-rows.ts';
import { readTop, type TopJson, topJson, toTopPath } from './top.ts';

const rangeJson = Type.Object(
  { atLeast: Type.Integer(), atMost: Type.Integer() },
  { title: 'RefusedRange', description: 'How often it was, or would have been, refused' },
);

const effectJson = Type.Object(
  {
    basis: Type.Union([Type.Literal('recorded'), Type.Literal('estimate'), Type.Literal('none')], {
      description:
        '`recorded`: decided again, request by request. `estimate`: from the values that are limited most. `none`: its traffic is not known',
    }),
    from: orNull(time),
    to: orNull(time),
    decisions: orNull(Type.Integer({ description: 'Recorded ones' })),
    newlyLimited: orNull(
      Type.Integer({ description: 'Recorded requests that passed, and would be refused' }),
    ),
    freed: orNull(Type.Integer({ description: 'The other way round' })),
    before: orNull(rangeJson),
    after: orNull(rangeJson),
    values: Type.Array(
      Type.Object({
        entries: Type.Array(Type.Object({ key: Type.String(), value: Type.String() })),
        rule: Type.String(),
        before: rangeJson,
        after: rangeJson,
      }),
      {
        description: 'That would be refused another number of times, the largest difference first',
      },
    ),
    valuesInAll: Type.Integer(),
    notes: Type.Array(
      Type.String({
        description: 'What makes the figures less than all of the truth, or why there are none',
      }),
    ),
  },
  { title: 'Effect' },
);
export type EffectJson = Type.Static<typeof effectJson>;

const plannedChangeJson = Type.Object(
  {
    revision: revisionJson,
    etag: Type.String({ description: 'Of the domain in that revision, the newest' }),
    isStale: Type.Boolean({ description: 'The domain is not what `etag` of the request names' }),
    path: Type.String({ description: 'Of the file, from the root of the repository' }),
    valid: Type.Boolean({ description: 'Whether it can be written' }),
    problems: Type.Array(problemJson, {
      description: 'Of the changed file, and why it is refused',
    }),
    changes: Type.Array(ruleChangeJson, { description: 'From the revision in force' }),
    patch: Type.String({ description: "As `git apply` takes it; '' where nothing changes" }),
    effect: orNull(effectJson),
  },
  { title: 'PlannedChange' },
);
export type PlannedChangeJson = Type.Static<typeof plannedChangeJson>;

export class Default extends AdminController {
  static readonly POST = op({
    summary: 'What a change of a domain would do, without making it',
    description:
      'What the workers recorded is decided again by their own code, where `--recordings` names it; else the values that are limited most are, as an estimate. At most the newest 16 MiB of recordings are read, for at most 4 seconds.',
    body: Type.Object({
      domain: Type.String({ minLength: 1, maxLength: 1024 }),
      yaml: Type.String({ description: 'All rules of the domain' }),
      etag: Type.Optional(
        Type.String({ maxLength: 200, description: 'Of the rules that the change was made from' }),
      ),
      allowRemoval,
    }),
    returns: { 200: plannedChangeJson },
    failures: { 409: undefined, 503: undefined },
  });

  async POST({ domain, yaml: given, etag, allowRemoval = false }: Fields<typeof Default.POST>) {
    const yaml = toFileText(given);
    const { api } = this;
    const newest = await this.readNewest();
    const { documents: inForce, ruleSet } = api.snapshots;
    const { documents } = await api.examine(newest);
    const files = findDomainFiles(newest, documents, inForce, domain);
    const [file, ...others] = files;
    if (file === undefined) throw new HttpError(404, { detail: `there is no domain ${domain}` });
    if (others.length > 0) {
      const paths = files.map(({ path }) => path).join(', ');
      throw new HttpError(409, { detail: `the domain is in several files (${paths})` });
    }
    const { document } = await api.reading.readDocument(yaml, file.path);
    if (document !== undefined && document.domain !== domain) {
      const detail = `the rules are for domain ${document.domain}, not ${domain}`;
      throw new HttpError(400, { detail });
    }
    const { examined, refused } = await judgeChange(newest, api, {
      plan: () => ({ put: [{ path: file.path, text: yaml }], delete: [] }),
      toleratesOldErrors: true,
      allowsRemoval: allowRemoval,
      author: { name: api.callerOf(this.request), email: '' },
      message: '',
    });
    const own = examined.problems.filter((problem) => problem.file === file.path);
    const tag = await toTag(files);
    const changes =
      examined.ruleSet === undefined || ruleSet === undefined
        ? undefined
        : await findChanges(
            api.thread,
            {
              before: toCompared(ruleSet, inForce, domain),
              after: toCompared(examined.ruleSet, examined.documents, domain),
            },
            { nowMs: api.clock.wallMs(), signal: this.request.signal },
          );
    const path = `${api.repositoryFolder}${file.path}`;
    return toLongAnswer({
      revision: toRevisionJson(newest),
      etag: tag,
      isStale: etag !== undefined && !namesTag(etag, tag),
      path,
      valid: refused.length === 0,
      problems: this.toProblems([...new Set([...refused, ...own])]),
      changes: changes ?? [],
      patch: await runInSlices(patching(path, file.text, yaml)),
      effect: changes === undefined ? null : await this.findEffect(domain, examined, changes),
    });
  }

  private findEffect(domain: string, examined: Examination, changes: FoundChanges) {
    const { api } = this;
    const { recordings, thread, clock } = api;
    const wanted = { domain, limit: 200 };
    return findEffect({
      ...{ domain, changes, recordings, thread, clock },
      before: ofDomain(api.snapshots.documents, domain),
      after: ofDomain(examined.documents, domain),
      readTop: () => readTop(api, wanted, this.askPeers(toTopPath(wanted), topJson, undefined)),
      signal: this.request.signal,
    });
  }
}

function toCompared(
  ruleSet: BuiltSnapshots['ruleSet'],
  documents: BuiltSnapshots['documents'],
  domain: string,
) {
  return { ruleSet, documents: ofDomain(documents, domain), domains: [domain], groups: [] };
}

function ofDomain(documents: Examination['documents'], domain: string): Examination['documents'] {
  return documents.filter((document) => document.domain === domain);
}

interface EffectInput extends BothRules {
  readonly changes: FoundChanges;
  /** A directory; undefined if decisions are not recorded. */
  readonly recordings: string | undefined;
  /** Reads the values of the domain that are limited now. */
  readonly readTop: () => Promise<TopJson>;
  readonly thread: JobThread;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

const mostListed = 50;
const nothing: EffectJson = {
  basis: 'none',
  ...{ from: null, to: null, decisions: null, newlyLimited: null, freed: null },
  ...{ before: null, after: null, values: [], valuesInAll: 0, notes: [] },
};

async function findEffect(input: EffectInput): Promise<EffectJson> {
  const { changes, recordings } = input;
  const [first] = listChanges(changes);
  if (first === undefined) return { ...nothing, notes: ['nothing changes for requests'] };
  if (recordings === undefined) return estimate(input, []);
  const recorded = await replay(input, recordings);
  return typeof recorded === 'string' ? estimate(input, [recorded]) : recorded;
}

/** The replayed effect, or why there is no prediction. */
async function replay(input: EffectInput, directory: string): Promise<EffectJson | string> {
  const asked = { directory, mostListed };
  const result = await orWhy(replayApart(input.thread, input, asked, input.signal));
  if (typeof result === 'string') return result;
  if ('message' in result) return result.message;
  const { requests, values, firstMs, lastMs, decisions } = result;
  return {
    basis: 'recorded',
    from: toTime(firstMs),
    to: toTime(lastMs),
    decisions,
    newlyLimited: requests.newlyLimited,
    freed: requests.freed,
    before: exactly(requests.before),
    after: exactly(requests.after),
    values: values.map((value) => ({
      entries: value.entries.map(({ key, value }) => ({ key, value })),
      rule: value.rule,
      before: exactly(value.before),
      after: exactly(value.after),
    })),
    valuesInAll: result.valuesInAll,
    notes: [...result.doubts],
  };
}

/** The result, or the reason why the work is too much, for a note. */
async function orWhy<Result>(work: Promise<Result>): Promise<Result | string> {
  try {
    return await unlessBusy(work);
  } catch (error) {
    if (error instanceof TooMuch) return error.message;
    throw error;
  }
}

/** The most limited values that are estimated; more would take seconds. */
const mostEstimated = 20;
/** Limited values are reported for the last one or two minutes. */
const longestSeconds = 120;

async function estimate(input: EffectInput, notes: readonly string[]): Promise<EffectJson> {
  const { domain, before, changes, clock, signal } = input;
  const top = await input.readTop();
  if (top.workers === 0) {
    return {
      ...nothing,
      notes: [...notes, 'no worker reports, so its traffic is not known'],
    };
  }
  const nowMs = clock.wallMs();
  const seen = top.values.filter((value) => value.domain === domain).slice(0, mostEstimated);
  const values = seen.map(({ entries, atLeast, atMost, perSecond }) => ({
    ...{ entries, atLeast, atMost },
    seconds: Math.min(longestSeconds, Math.max(1, atMost / Math.max(perSecond, 0.001))),
  }));
  const estimated =
    values.length === 0
      ? []
      : await orWhy(estimateApart(input.thread, input, { values, nowMs }, signal));
  if (typeof estimated === 'string') return { ...nothing, notes: [...notes, estimated] };
  const owners = await runInSlices(findingRuleOwners(before));
  const passed = await runInSlices(countingPassed(top, owners, changes));
  if (estimated.length === 0 && passed === 0) {
    return {
      ...nothing,
      notes: [...notes, 'no request of the last minutes matched what changes'],
    };
  }
  const changed = estimated
    .filter((value) => differs(value.before, value.after))
    .sort((a, b) => difference(b) - difference(a));
  return {
    ...nothing,
    basis: 'estimate',
    from: toTime(nowMs - longestSeconds * 1000),
    to: toTime(nowMs),
    before: sumOf(estimated.map((value) => value.before)),
    after: sumOf(estimated.map((value) => value.after)),
    values: changed.map(({ entries, rule, before, after }) => ({
      ...{ rule, before, after },
      entries: entries.map(({ key, value }) => ({ key, value })),
    })),
    valuesInAll: changed.length,
    notes: [
      ...notes,
      'workers are assumed to have the default settings',
      ...(changed.some((value) => value.isOfLongWindow)
        ? [
            'some windows are longer than these two minutes: how much of them was used before is not known, which makes their ranges wide',
          ]
        : []),
      ...(passed > 0
        ? [
            `${round(passed)}/s passed under what changes: which of these it would refuse is not known`,
          ]
        : []),
      ...(top.unlistedAtMost > 0
        ? [`values that are not listed were refused ${top.unlistedAtMost} times at most, each`]
        : []),
      ...(seen.length > estimated.length
        ? [
            `the rules in force have no limit for ${toCountText(seen.length - estimated.length, 'further limited value')}`,
          ]
        : []),
      ...top.missing.map(({ url }) => `the limits of the workers of ${url} are not known`),
    ],
  };
}

/** How many hits a second passed in the last minute under the rules that change. */
function* countingPassed(
  { rules }: TopJson,
  owners: RuleOwners,
  changes: FoundChanges,
): Generator<void, number> {
  const keyOf = (entries: readonly Entry[]) =>
    JSON.stringify(entries.map(({ key, value }) => [key, value]));
  const passed = new Map<string, number>();
  for (const { rule, hitsPerSecond, overLimitPerSecond } of rules) {
    yield;
    const owner = owners.find(rule);
    if (owner === undefined) continue;
    const key = keyOf(lineageOf(owner));
    const own = Math.max(0, hitsPerSecond - overLimitPerSecond);
    passed.set(key, (passed.get(key) ?? 0) + own);
  }
  let sum = 0;
  for (const { requests } of listChanges(changes)) {
    yield;
    const key = keyOf(requests);
    sum += passed.get(key) ?? 0;
    // A rule may have several changes.
    passed.delete(key);
  }
  return sum;
}

function exactly(count: number): Range {
  return { atLeast: count, atMost: count };
}

function differs(a: Range, b: Range): boolean {
  return a.atLeast !== b.atLeast || a.atMost !== b.atMost;
}

function difference({ before, after }: { readonly before: Range; readonly after: Range }): number {
  return Math.max(Math.abs(after.atMost - before.atMost), Math.abs(after.atLeast - before.atLeast));
}

function sumOf(ranges: readonly Range[]): Range {
  return {
    atLeast: ranges.reduce((sum, { atLeast }) => sum + atLeast, 0),
    atMost: ranges.reduce((sum, { atMost }) => sum + atMost, 0),
  };
}
