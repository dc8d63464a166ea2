// Detects a change that removes most limits. An empty folder, a wrong path or a bad merge looks like any
// valid revision, and would let everything pass: it waits for an approval.
import type { Problem } from '../../shared/rules/problem/problem.ts';
import { problemOf } from '../../shared/rules/problem/problem.ts';
import type { RuleSet } from '../../shared/rules/rule.ts';
import { toExcerpt } from '../../shared/text-excerpt.ts';
import { allowRemovalTrailer, toLine } from '../store/revision.ts';

/** Removing fewer is everyday work, whatever share of all it is. */
const minRemoved = 10;
const maxNamed = 20;

/** An error when `after` has no domain of `before`, or removes more than half of its limits and at least
 * ten; else undefined. */
export function findRemoval(before: RuleSet, after: RuleSet): Problem | undefined {
  const kept = new Set(after.limitNames());
  const limits = before.limitNames();
  const removed = limits.filter((name) => !kept.has(name));
  const leavesNothing = before.domains.size > 0 && after.domains.size === 0;
  const takesMost = removed.length >= minRemoved && removed.length * 2 > limits.length;
  if (!leavesNothing && !takesMost) return undefined;
  const named = removed.slice(0, maxNamed).map((name) => toExcerpt(name));
  const more = removed.length - named.length;
  const list = [...named, ...(more > 0 ? [`${more} more`] : [])].join(', ');
  const what = leavesNothing
    ? 'held back: no domain would be left'
    : `held back: ${removed.length} of ${limits.length} limits would go`;
  const hint = `if that is meant, approve the revision, or say it beforehand: '${toLine(allowRemovalTrailer)}' in the message of the commit, --allow-removal with a change`;
  return problemOf(
    'error',
    'large-removal',
    '(all files)',
    `${what}${list === '' ? '' : ` (${list})`}`,
    hint,
  );
}
