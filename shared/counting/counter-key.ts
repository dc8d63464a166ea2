// The key under which hits are counted. Other services on the same store count together with us
// because they form the same keys (behaviour: counter-keys).
import type { Entry } from '../rules/rule.ts';

/**
 * `<prefix><domain>_<key>_<value>_..._<window start>`, nothing escaped; an empty value leaves two
 * underscores. `sharedValues` has the pattern that stands for the value where it is shared.
 */
export function toCounterKey(
  prefix: string,
  domain: string,
  entries: readonly Entry[],
  sharedValues: readonly (string | undefined)[] | undefined,
  windowStart: number,
): string {
  let key = `${prefix}${domain}_`;
  for (let index = 0; index < entries.length; index++) {
    const entry = entries[index] as Entry;
    key += `${entry.key}_${sharedValues?.[index] ?? entry.value}_`;
  }
  return key + windowStart;
}
