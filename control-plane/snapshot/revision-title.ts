// A revision and its rules in a few words, for the log.
import { toCountText } from '../../shared/count-text.ts';
import { type RevisionInfo, toShortId } from '../store/revision.ts';
import type { BuiltSnapshots } from './build.ts';

/** `2 domains, 5 limits`. */
export function countsOf({ domains, ruleSet }: BuiltSnapshots): string {
  return `${toCountText(domains.length, 'domain')}, ${toCountText(ruleSet.limitCount, 'limit')}`;
}

/** `1a2b3c4d5e6f ("first line of the message", name)`. */
export function toTitle({ id, author, message }: RevisionInfo): string {
  const line = message?.split('\n')[0]?.slice(0, 72);
  const parts = [line === undefined ? undefined : `"${line}"`, author].filter(
    (part) => part !== undefined,
  );
  return parts.length === 0 ? toShortId(id) : `${toShortId(id)} (${parts.join(', ')})`;
}
