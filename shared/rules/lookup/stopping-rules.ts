// Finds rules that refuse nothing, yet keep other limits of a request from being counted when
// STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT is `true`: reported by a worker that starts with it, and by `check`.
import type { Problem } from '../problem/problem.ts';
import { type RuleDocument, walkDescriptors } from '../rule-document.ts';
import { createRuleAdvice } from './located-rule.ts';

const consequence =
  'and STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT is true: once it is over its limit, the other limits of the same requests are not counted, so that they admit everything';
const hint =
  'set it to enforced, so that only a limit that refuses a request prevents its others from being counted';

/** How many descriptors are read between two yields: this takes well below a millisecond. */
const descriptorsAtOnce = 1_000;

/**
 * One warning for each rule in shadow mode, and for each quota, which only refuses together with the others; at most
 * the first `most` warnings. Yields so that the thread can serve other callers.
 */
export function* findStoppingRules(
  documents: readonly RuleDocument[],
  most: number,
): Generator<void, Problem[]> {
  const found: Problem[] = [];
  let seen = 0;
  for (const { document, descriptor, toPath } of walkDescriptors(documents)) {
    if (++seen % descriptorsAtOnce === 0) yield;
    const { key, rateLimit, shadowMode, quotaMode } = descriptor;
    const mode = shadowMode ? 'shadow_mode' : quotaMode ? 'quota_mode' : undefined;
    if (mode === undefined || rateLimit === undefined || rateLimit.unlimited) continue;
    const text = `the rule for key '${key}' has ${mode}, ${consequence}`;
    const position = { document, descriptor, path: toPath() };
    found.push(createRuleAdvice('stops-others', position, mode, text, hint));
    if (found.length === most) break;
  }
  return found;
}
