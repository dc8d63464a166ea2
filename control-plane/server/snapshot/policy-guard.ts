// Judges whether a revision complies with the policy: its limits, its author, and how much it changes at once. A
// violation that was already in force is reported and tolerated; one that a change adds is refused, unless the author
// gives a reason.
import { windowSecondsOf } from '../../../shared/rules/limit-shape.ts';
import { type Problem, problemOf } from '../../../shared/rules/problem/problem.ts';
import type { Limit } from '../../../shared/rules/rule.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import { matchesGlob } from '../../authoring/glob.ts';
import { policyFile } from '../../authoring/policy/policy-file.ts';
import {
  findingViolations,
  policiesOf,
  positionOf,
  type Violation,
} from '../../authoring/policy/violations.ts';
import type { RuleChange } from '../../authoring/rule-change.ts';
import { toShortId, valuesOf } from '../store/revision.ts';
import {
  type AttributedStep,
  amountKinds,
  type GovernedRules,
  type Maker,
  Makers,
} from './makers.ts';
import { comparingForNodes } from './node-change.ts';

export interface PolicyVerdict {
  /** Errors, for which the change is refused. */
  readonly refused: readonly Problem[];
  /** Warnings: the violation was in force before, or its author gives a reason. */
  readonly tolerated: readonly Problem[];
  /** The author's reason, if the revision would be refused without it. */
  readonly exception: string | undefined;
}

/** The trailer in the message of a commit, or of a change. */
const exceptionTrailer = 'Policy-Exception';
const maxNamed = 10;
const exceptionHint = `to allow it, an owner gives the reason: a line '${exceptionTrailer}: ...' at the end of the commit's message`;

export interface ChangeInfo {
  /** The oldest first; the last step ends with the rules that are judged. Each change is judged by its own maker. */
  readonly steps: readonly AttributedStep[];
  /** Whether the change returns to rules that were in force before: then only a change of the policy itself is
   * refused. */
  readonly isUndo: boolean;
}

/** A violation of the policy, and who made it. */
interface Breach {
  readonly problem: Problem;
  /** Owners who can allow it; undefined: every author. */
  readonly owners: readonly string[] | undefined;
  readonly makers: readonly Maker[];
}

/** `before` has the rules in force; if it is undefined, nothing is refused. In steps. */
export function* judgingByPolicy(
  before: GovernedRules | undefined,
  after: GovernedRules,
  info: ChangeInfo,
): Generator<void, PolicyVerdict> {
  if (before?.policyText === undefined && after.policyText === undefined) {
    return { refused: [], tolerated: [], exception: undefined };
  }
  const violations = yield* findingViolations(after.policy, after.documents);
  const problemsOf = (all: readonly Violation[]) => all.map(({ problem }) => problem);
  if (before === undefined || before === after) {
    return { refused: [], tolerated: problemsOf(violations), exception: undefined };
  }
  const foundBefore = yield* findingViolations(after.policy, before.documents);
  const old = new Set(foundBefore.map(({ identity }) => identity));
  const isTolerated = ({ identity }: Violation) => info.isUndo || old.has(identity);
  const made = new Makers(info.steps);
  const added = violations.filter((violation) => !isTolerated(violation));
  const breaches = [
    ...added.map(({ identity, problem, owners }) => ({
      ...{ problem, owners },
      makers: made.ofViolation(identity),
    })),
    ...findPolicyChange(before, made.ofPolicy(before, after)),
    ...(info.isUndo ? [] : yield* findChangeProblems(before, after, made)),
  ];
  const excuses = new Map(breaches.map((breach) => [breach, findExcuse(breach)]));
  const excused = breaches.filter((breach) => excuses.get(breach) !== undefined);
  const exception = [...excuses.values()].find((reason) => reason);
  return {
    refused: breaches.filter((breach) => excuses.get(breach) === undefined).map(toRefusal),
    tolerated: [
      ...problemsOf(violations.filter(isTolerated)),
      ...excused.map(({ problem }): Problem => ({ ...problem, severity: 'warning' })),
    ],
    exception: exception && toExcerpt(exception, 500),
  };
}

/** The reason of the owner who made the change, or '' if an owner approved it by name; undefined if neither applies. */
function findExcuse({ owners, makers }: Breach): string | undefined {
  if (makers.length === 0) return undefined;
  let reason = '';
  for (const { author, message, approvedBy } of makers) {
    if (approvedBy !== undefined && isOwner(owners, approvedBy)) continue;
    const [given] = isOwner(owners, author) ? valuesOf(message, exceptionTrailer) : [];
    if (given === undefined) return undefined;
    reason = given.trim();
  }
  return reason;
}

function toRefusal({ problem, makers }: Breach): Problem {
  const [{ revision } = {}] = makers;
  const named =
    revision === undefined
      ? exceptionHint
      : `revision ${toShortId(revision)} made it: revert that, or let an owner approve it by its name; ${exceptionHint}`;
  const hint = problem.hint === undefined ? named : `${problem.hint}; ${named}`;
  return { ...problem, severity: 'error', hint };
}

function findPolicyChange(before: GovernedRules, makers: readonly Maker[]): readonly Breach[] {
  const { owners } = before.policy;
  const strangers = makers.filter(({ author }) => !isOwner(owners, author));
  if (strangers.length === 0) return [];
  const [{ author } = { author: undefined }] = strangers;
  const problem = notOwner(policyFile, 'the policy', owners, author, undefined);
  return [{ problem, owners, makers: strangers }];
}

/** Judged by the policy before the change, so that a change cannot permit itself. */
function* findChangeProblems(
  before: GovernedRules,
  after: GovernedRules,
  made: Makers,
): Generator<void, readonly Breach[]> {
  const policy = before.policyText === undefined ? after.policy : before.policy;
  const breaches: Breach[] = [];
  if (policy.policies.length === 0) return breaches;
  const all = yield* comparingForNodes(before, after, (change) => change);
  const byDomain = Map.groupBy(all, ({ domain }) => domain);
  for (const [domain, changes] of byDomain) {
    for (const each of yield* policiesOf(policy, domain)) {
      const { owners } = each;
      const makers = new Set<Maker>();
      for (const change of changes) {
        for (const maker of made.ofChange(change)) makers.add(maker);
        yield;
      }
      const strangers = [...makers].filter(({ author }) => !isOwner(owners, author));
      for (const maker of strangers.slice(0, maxNamed)) {
        const file = fileOf(changes, after) ?? '(all files)';
        const what = `domain '${toExcerpt(domain)}'`;
        const problem = notOwner(file, what, owners, maker.author, positionOf(each));
        breaches.push({ problem, owners, makers: [maker] });
      }
      for (const change of changes) {
        yield;
        const message = describeFactor(change, each.largestFactor);
        if (message === undefined) continue;
        const file = change.ruleAfter?.document.file ?? '(all files)';
        const hint = `the policy is at ${positionOf(each)}`;
        const problem = problemOf('warning', 'policy', file, message, hint);
        breaches.push({
          problem: {
            ...problem,
            path: change.ruleAfter?.path ?? '',
            ...change.ruleAfter?.descriptor.position,
          },
          owners,
          makers: made.ofChange(change),
        });
      }
    }
  }
  return breaches;
}

/** The file of the changed domain. */
function fileOf(changes: readonly RuleChange[], { documents }: GovernedRules): string | undefined {
  const rule = changes.find(({ ruleAfter }) => ruleAfter !== undefined)?.ruleAfter;
  const [{ domain } = { domain: '' }] = changes;
  return rule?.document.file ?? documents.find((document) => document.domain === domain)?.file;
}

/** A list of owners for a message. */
const maxNames = 10;

function notOwner(
  file: string,
  what: string,
  owners: readonly string[] = [],
  author: string | undefined,
  position: string | undefined,
): Problem {
  const who = author === undefined ? 'an unknown author' : toExcerpt(author, 100);
  const names = owners.slice(0, maxNames).map((owner) => toExcerpt(owner));
  const others = owners.length > maxNames ? ` and ${owners.length - maxNames} more` : '';
  const message = `${what} is changed by ${who}, and only ${names.join(', ')}${others} may change it`;
  return problemOf('warning', 'policy', file, message, position && `the policy is at ${position}`);
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
  { kind, before, after }: RuleChange,
  largest: number | undefined,
): string | undefined {
  if (largest === undefined || before === undefined || after === undefined) return undefined;
  if (before.unlimited || after.unlimited) return undefined;
  if (amountKinds.has(kind)) return describeStep('limit', rateOf(before), rateOf(after), largest);
  const isBurst = kind === 'burst_changed' || kind === 'algorithm_changed';
  return isBurst ? describeStep('burst', burstOf(before), burstOf(after), largest) : undefined;
}

function describeStep(what: string, was: number, is: number, largest: number): string | undefined {
  if (was === is) return undefined;
  const factor = Math.max(was, is) / Math.min(was, is);
  if (factor <= largest) return undefined;
  const how = is > was ? 'raised' : 'lowered';
  const by = Number.isFinite(factor) ? `${Number(factor.toPrecision(3))} times` : 'without bound';
  return `the ${what} is ${how} ${by}, and the policy allows ${largest} times at once`;
}

/** The number of requests allowed at once. */
function burstOf({ limiter, requestsPerUnit }: Limit): number {
  return limiter?.capacity ?? requestsPerUnit;
}

/** The number of requests per second. */
function rateOf(limit: Limit): number {
  return limit.requestsPerUnit / windowSecondsOf(limit);
}
