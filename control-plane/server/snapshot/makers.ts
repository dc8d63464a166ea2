// Who has made what of a change that several people made one after the other (behaviour: judged-by-maker).

import type { Policy } from '../../authoring/policy/policy-file.ts';
import { findingViolations } from '../../authoring/policy/violations.ts';
import type { RuleChange } from '../../authoring/rule-change.ts';
import type { RevisionInfo } from '../store/revision.ts';
import { comparingForNodes, type RulesForNodes } from './node-change.ts';

/** Rules with the policy that stands beside them. */
export interface GovernedRules extends RulesForNodes {
  readonly policy: Policy;
  /** The text of its file; undefined without one. */
  readonly policyText: string | undefined;
}

/** A person who has made a change. */
export interface Maker extends Pick<RevisionInfo, 'author' | 'message'> {
  /** The revision by which it was made; undefined of one that is not made yet. */
  readonly revision?: string | undefined;
  /** The person who has approved that revision by its name. */
  readonly approvedBy?: string | undefined;
}

/** A part of the way from what is in force to what is judged. */
export interface Step {
  /** Several where revisions between had errors, and what each of them changed is not known. */
  readonly makers: readonly Maker[];
  /** Keys of all that it changed; undefined where that is not known apart from the other steps. */
  readonly changed: ReadonlySet<string> | undefined;
}

/** What one step changed, in steps. */
export function* findingChanged(
  before: GovernedRules,
  after: GovernedRules,
  policy: Policy,
): Generator<void, ReadonlySet<string>> {
  const changed = new Set<string>();
  if (before.policyText !== after.policyText) changed.add(policyKey);
  yield* comparingForNodes(before, after, (change) => {
    changed.add(toKey(change));
    if (isOfGroup(change)) changed.add(toGroupsKey(change));
  });
  const had = new Set<string>();
  for (const { identity } of yield* findingViolations(policy, before.documents)) had.add(identity);
  for (const { identity } of yield* findingViolations(policy, after.documents)) {
    if (!had.has(identity)) changed.add(toViolationKey(identity));
    yield;
  }
  return changed;
}

/** The last step that changed something made it; where no step did so alone, all of them did together. */
export class Makers {
  readonly #steps: readonly Step[];
  readonly #all: readonly Maker[];

  constructor(steps: readonly Step[]) {
    this.#steps = steps;
    this.#all = steps.flatMap(({ makers }) => makers);
  }

  ofPolicy(): readonly Maker[] {
    return this.#lastOf(policyKey) ?? this.#all;
  }

  ofViolation(identity: string): readonly Maker[] {
    return this.#lastOf(toViolationKey(identity)) ?? this.#all;
  }

  ofChange(change: RuleChange): readonly Maker[] {
    const last = this.#lastOf(toKey(change));
    if (last !== undefined || !isOfGroup(change)) return last ?? this.#all;
    // Two changes of groups together are another one than each of them.
    const key = toGroupsKey(change);
    const touching = this.#steps.filter(({ changed }) => changed?.has(key) !== false);
    return touching.length === 0 ? this.#all : touching.flatMap(({ makers }) => makers);
  }

  #lastOf(key: string): readonly Maker[] | undefined {
    return this.#steps.findLast(({ changed }) => changed?.has(key))?.makers;
  }
}

const policyKey = 'policy';

function toViolationKey(identity: string): string {
  return `violation ${identity}`;
}

function isOfGroup({ kind }: RuleChange): boolean {
  return kind.startsWith('group_');
}

function toGroupsKey({ domain }: RuleChange): string {
  return `groups ${domain}`;
}

/** How much a rule lets pass: whoever sets the number last has set all of it. */
export const amountKinds: ReadonlySet<string> = new Set([
  ...['limit_added', 'limit_removed', 'raised', 'lowered', 'window_changed'],
  ...['blocked', 'unblocked', 'unlimited', 'no_longer_unlimited'],
]);

/** Equal for changes of which the later one replaces the earlier one. */
function toKey(change: RuleChange): string {
  const { domain, kind, requests, text, furtherWindow, isLasting } = change;
  const what = amountKinds.has(kind) ? 'amount' : kind.replace(/_(?:on|off)$/, '');
  return JSON.stringify([
    ...[domain, requests, what, furtherWindow, isLasting],
    isOfGroup(change) ? text : null,
  ]);
}
