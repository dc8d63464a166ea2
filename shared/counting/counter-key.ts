// The key under which hits are counted. Other services on the same store count together with us
// because they form the same keys (behaviour: counter-keys).
import type { Entry, Limit } from '../rules/rule.ts';
import type { Window } from './window.ts';

/**
 * `<prefix><domain>_<key>_<value>_..._<window start>`, nothing escaped; an empty value leaves two
 * underscores. Other limits than plain fixed windows add a tag, which never ends in a digit.
 * `sharedValues` has the pattern that replaces a shared value.
 */
export function toCounterKey(
  prefix: string,
  domain: string,
  entries: readonly Entry[],
  sharedValues: readonly (string | undefined)[] | undefined,
  ending: number | string,
): string {
  let key = `${prefix}${domain}_`;
  for (let index = 0; index < entries.length; index++) {
    const entry = entries[index] as Entry;
    key += `${entry.key}_${sharedValues?.[index] ?? entry.value}_`;
  }
  return key + ending;
}

/** How the keys of a limit's counters end (behaviour: counter-keys). */
export function toKeyEnding(
  { limiter, counterTag }: Pick<Limit, 'limiter' | 'counterTag'>,
  window: Window,
): number | string {
  if (counterTag === '') return window.start;
  return limiter === undefined ? `${window.start}_${counterTag}` : counterTag;
}
