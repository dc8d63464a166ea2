// Finds a change that would remove most limits, or all of a domain: by mistake as often as intended, so it waits for an
// approval. An empty folder, a wrong path or a bad merge is a valid revision, and would admit all requests.
import { type Problem, problemOf } from '../../../shared/rules/problem/problem.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import type { CheckedDomainRules, CheckedRules } from '../../authoring/checked-rules.ts';
import { allowRemovalTrailer, toLine } from '../store/revision.ts';
import { describeClass, findingClasses, type RulesForNodes } from './node-change.ts';

/** Removing fewer limits is routine, whatever share of all limits they are. */
const minRemoved = 10;
/** A single limit of a domain may make way for another one, as where its key or its domain is renamed. */
const maxReplaced = 1;
const maxNamed = 20;

/** An error if nodes that got domains no longer get any, lose more than half of their limits and at least ten, or lose
 * half of the limits of one domain, other than by an undo: all nodes because of the rules, or some because of their
 * group. Otherwise undefined. In steps. */
export function* findingRemoval(
  before: RulesForNodes,
  after: RulesForNodes,
  isUndo = false,
): Generator<void, Problem | undefined> {
  const limits = yield* compareLimits(before.ruleSet, after.ruleSet);
  const [had, has] = [before, after].map(({ ruleSet }) => [...ruleSet.domains.keys()]);
  const rules = { before: before.ruleSet, after: after.ruleSet };
  const given = { limits, rules, isUndo };
  const ofAll = yield* toRemoval(given, had ?? [], has ?? [], '');
  if (ofAll !== undefined) return ofAll;
  for (const each of yield* findingClasses(before.groups, after.groups)) {
    yield;
    const where = ` for ${describeClass(each)}`;
    const problem = yield* toRemoval(given, each.before.domains, each.after.domains, where);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** The limits of one domain in force before. */
interface ComparedLimits {
  readonly rules: CheckedDomainRules;
  /** The limits that all nodes have lost. */
  readonly removed: Names;
}

interface Names {
  readonly count: number;
  readonly first: readonly string[];
}

const noNames: Names = { count: 0, first: [] };

function allOf(rules: CheckedDomainRules): Names {
  return { count: rules.limitNameCount, first: [...rules.limitNames().take(maxNamed)] };
}

function* compareLimits(
  before: CheckedRules,
  after: CheckedRules,
): Generator<void, ReadonlyMap<string, ComparedLimits>> {
  const found = new Map<string, ComparedLimits>();
  for (const [domain, rules] of before.domains) {
    const now = after.domains.get(domain);
    // Most revisions leave most domains as they are.
    const removed = now === rules ? noNames : yield* findRemoved(rules, now);
    found.set(domain, { rules, removed });
    yield;
  }
  return found;
}

function* findRemoved(
  before: CheckedDomainRules,
  after: CheckedDomainRules | undefined,
): Generator<void, Names> {
  if (after === undefined) return allOf(before);
  const remaining = new Set<string>();
  for (const name of after.limitNames()) {
    remaining.add(name);
    yield;
  }
  let count = 0;
  const first: string[] = [];
  for (const name of before.limitNames()) {
    yield;
    if (remaining.has(name)) continue;
    count++;
    if (first.length < maxNamed) first.push(name);
  }
  return { count, first };
}

/** The first domain that is removed, or loses half of its limits. */
interface LostLimits {
  readonly domain: string;
  readonly count: number;
  readonly of: number;
  readonly isComplete: boolean;
}

interface RemovalFacts {
  readonly limits: ReadonlyMap<string, ComparedLimits>;
  readonly rules: { readonly before: CheckedRules; readonly after: CheckedRules };
  readonly isUndo: boolean;
}

function countLimits({ domains }: CheckedRules, names: readonly string[]): number {
  return names.reduce((sum, name) => sum + (domains.get(name)?.limitNameCount ?? 0), 0);
}

function* toRemoval(
  { limits, rules: both, isUndo }: RemovalFacts,
  before: readonly string[],
  after: readonly string[],
  where: string,
): Generator<void, Problem | undefined> {
  const remaining = new Set(after);
  const named: string[] = [];
  const limitCount = countLimits(both.before, before);
  const mostReplaced = countLimits(both.after, after) < limitCount ? 0 : maxReplaced;
  let removedCount = 0;
  let lost: LostLimits | undefined;
  for (const domain of before) {
    yield;
    const compared = limits.get(domain);
    if (compared === undefined) continue;
    const { rules, removed } = compared;
    const all = rules.limitNameCount;
    const gone = remaining.has(domain) ? removed : allOf(rules);
    removedCount += gone.count;
    if (!isUndo && gone.count > mostReplaced && gone.count * 2 >= all) {
      lost ??= { domain, count: gone.count, of: all, isComplete: !remaining.has(domain) };
    }
    for (const name of gone.first.slice(0, maxNamed - named.length)) named.push(toExcerpt(name));
  }
  const leavesNothing = before.length > 0 && after.length === 0;
  const removesMost = removedCount >= minRemoved && removedCount * 2 > limitCount;
  if (!leavesNothing && !removesMost && lost === undefined) return undefined;
  const more = removedCount - named.length;
  const list = [...named, ...(more > 0 ? [`${more} more`] : [])].join(', ');
  const ofDomain =
    lost &&
    `domain '${toExcerpt(lost.domain)}' would ${lost.isComplete ? 'go' : `lose ${lost.count} of ${lost.of} limits`}`;
  const most = removesMost ? `${removedCount} of ${limitCount} limits would go` : ofDomain;
  const what = `held back: ${leavesNothing ? 'no domain would be left' : most}${where}`;
  const hint = `if that is intended, approve the revision, or declare it beforehand: '${toLine(allowRemovalTrailer)}' in the message of the commit, --allow-removal with a change`;
  return problemOf(
    'error',
    'large-removal',
    '(all files)',
    `${what}${list === '' ? '' : ` (${list})`}`,
    hint,
  );
}
