// Judges whether a revision keeps to the policy: its limits, its author, and how much it changes at once. A
// violation that was in force already is told and stays; one that a change adds is refused, unless the author
// gives a reason.
import { runAtOnce } from '../../shared/in-slices.ts';
import { windowSecondsOf } from '../../shared/rules/limit-shape.ts';
import { type Problem, problemOf } from '../../shared/rules/problem/problem.ts';
import type { Limit } from '../../shared/rules/rule.ts';
import { toExcerpt } from '../../shared/text-excerpt.ts';
import { matchesGlob } from '../glob.ts';
import { type ComparedRules, comparing, type RuleChange } from '../rule-change.ts';
import { type RevisionInfo, valuesOf } from '../store/revision.ts';
import { type Policy, policyFile } from './policy-file.ts';
import { findingViolations, placeOf, policiesOf, type Violation } from './violations.ts';

/** Rules with the policy that stands beside them. */
export interface GovernedRules extends ComparedRules {
  readonly policy: Policy;
  /** The text of its file; undefined without one. */
  readonly policyText: string | undefined;
}

export interface PolicyVerdict {
  /** Errors: the change is refused. */
  readonly refused: readonly Problem[];
  /** Warnings: it was so before, or its author has a reason. */
  readonly tolerated: readonly Problem[];
  /** The reason that the author gives, where something would be refused without it. */
  readonly exception: string | undefined;
}

/** The trailer in the message of a commit, or of a change. */
const exceptionTrailer = 'Policy-Exception';
const exceptionHint = `if it has to be, give the reason: a line '${exceptionTrailer}: ...' at the end of the commit's message`;

export interface ChangeInfo extends Pick<RevisionInfo, 'author' | 'message'> {
  /** Back to rules that were in force before: only a change of the policy itself is refused then. */
  readonly isUndo: boolean;
}

/** `before` has the rules in force, undefined where there are none: then nothing is refused. */
export function judgeByPolicy(
  before: GovernedRules | undefined,
  after: GovernedRules,
  info: ChangeInfo,
): PolicyVerdict {
  return runAtOnce(judgingByPolicy(before, after, info));
}

/** The same, in steps. */
export function* judgingByPolicy(
  before: GovernedRules | undefined,
  after: GovernedRules,
  { author, message, isUndo }: ChangeInfo,
): Generator<void, PolicyVerdict> {
  if (before?.policyText === undefined && after.policyText === undefined) {
    return { refused: [], tolerated: [], exception: undefined };
  }
  const violations = yield* findingViolations(after.policy, after.documents);
  if (before === undefined || before.documents === after.documents) {
    return {
      refused: [],
      tolerated: violations.map(({ problem }) => problem),
      exception: undefined,
    };
  }
  const foundBefore = yield* findingViolations(after.policy, before.documents);
  const old = new Set(foundBefore.map(({ identity }) => identity));
  const isKept = ({ identity }: Violation) => isUndo || old.has(identity);
  const added = violations.filter((violation) => !isKept(violation));
  const broken = [
    ...added.map(({ problem }) => problem),
    ...findPolicyChange(before, after, author),
    ...(isUndo ? [] : yield* findChangeProblems(before, after, author)),
  ];
  const kept = violations.filter(isKept);
  const tolerated = kept.map(({ problem }) => problem);
  if (broken.length === 0) return { refused: [], tolerated, exception: undefined };
  const [exception] = valuesOf(message, exceptionTrailer);
  if (exception !== undefined) {
    const excused = toExcerpt(exception.trim(), 500);
    const warnings = broken.map((problem): Problem => ({ ...problem, severity: 'warning' }));
    return { refused: [], tolerated: [...tolerated, ...warnings], exception: excused };
  }
  const refused = broken.map(
    (problem): Problem => ({
      ...problem,
      severity: 'error',
      hint: problem.hint === undefined ? exceptionHint : `${problem.hint}; ${exceptionHint}`,
    }),
  );
  return { refused, tolerated, exception: undefined };
}

function findPolicyChange(
  before: GovernedRules,
  after: GovernedRules,
  author: string | undefined,
): readonly Problem[] {
  const { owners } = before.policy;
  const isChanged = before.policyText !== undefined && before.policyText !== after.policyText;
  return isChanged && !isOwner(owners, author)
    ? [notOwner(policyFile, 'the policy', owners, author, undefined)]
    : [];
}

/** By the policy before, so that nobody makes room for a change by the change itself. */
function* findChangeProblems(
  before: GovernedRules,
  after: GovernedRules,
  author: string | undefined,
): Generator<void, readonly Problem[]> {
  const policy = before.policyText === undefined ? after.policy : before.policy;
  const problems: Problem[] = [];
  if (policy.policies.length === 0) return problems;
  const byDomain = Map.groupBy(yield* comparing(before, after), ({ domain }) => domain);
  for (const [domain, changes] of byDomain) {
    for (const each of policiesOf(policy, domain)) {
      if (!isOwner(each.owners, author)) {
        const file = fileOf(changes, after) ?? '(all files)';
        const what = `domain '${toExcerpt(domain)}'`;
        problems.push(notOwner(file, what, each.owners, author, placeOf(each)));
      }
      for (const change of changes) {
        yield;
        const message = describeFactor(change, each.largestFactor);
        if (message === undefined) continue;
        const file = change.ruleAfter?.document.file ?? '(all files)';
        const problem = problemOf(
          'warning',
          'policy',
          file,
          message,
          `the policy is at ${placeOf(each)}`,
        );
        problems.push({
          ...problem,
          path: change.ruleAfter?.path ?? '',
          ...change.ruleAfter?.descriptor.position,
        });
      }
    }
  }
  return problems;
}

/** The file of the domain that changed. */
function fileOf(changes: readonly RuleChange[], { documents }: GovernedRules): string | undefined {
  const rule = changes.find(({ ruleAfter }) => ruleAfter !== undefined)?.ruleAfter;
  const [{ domain } = { domain: '' }] = changes;
  return rule?.document.file ?? documents.find((document) => document.domain === domain)?.file;
}

function notOwner(
  file: string,
  what: string,
  owners: readonly string[] = [],
  author: string | undefined,
  place: string | undefined,
): Problem {
  const who = author === undefined ? 'an unknown author' : toExcerpt(author, 100);
  const names = owners.slice(0, 10).map((owner) => toExcerpt(owner));
  const message = `${what} is changed by ${who}, and only ${names.join(', ')} may change it`;
  return problemOf('warning', 'policy', file, message, place && `the policy is at ${place}`);
}

/** `author` is `name <address>`, or a name. */
function isOwner(owners: readonly string[] | undefined, author: string | undefined): boolean {
  if (owners === undefined) return true;
  if (author === undefined) return false;
  const start = author.endsWith('>') ? author.lastIndexOf('<') : -1;
  const known =
    start === -1 ? [author] : [author.slice(0, start).trimEnd(), author.slice(start + 1, -1)];
  return owners.some((owner) => known.some((each) => each !== '' && matchesGlob(owner, each)));
}

function describeFactor(
  { before, after }: RuleChange,
  largest: number | undefined,
): string | undefined {
  if (largest === undefined || before === undefined || after === undefined) return undefined;
  if (before.unlimited || after.unlimited) return undefined;
  const [was, is] = [rateOf(before), rateOf(after)];
  if (was === is) return undefined;
  const factor = Math.max(was, is) / Math.min(was, is);
  if (factor <= largest) return undefined;
  const how = is > was ? 'raised' : 'lowered';
  const by = Number.isFinite(factor) ? `${Number(factor.toPrecision(3))} times` : 'without bound';
  return `the limit is ${how} ${by}, and the policy allows ${largest} times at once`;
}

/** Requests in a second. */
function rateOf(limit: Limit): number {
  return limit.requestsPerUnit / windowSecondsOf(limit);
}
