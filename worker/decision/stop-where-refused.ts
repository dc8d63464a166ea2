// Finds the hits of a request that prevent its other hits from being counted, when only a refusal does so
// (STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=enforced; behaviour: over-limit-stops-counting).
import type { Match } from '../../shared/rules/rule.ts';
import type { CountMode } from '../counters/store.ts';
import type { RuleHit } from './hit.ts';

interface MatchedRequest {
  /** The match of each descriptor. */
  readonly matches: readonly (Match | undefined)[];
  readonly limited: readonly RuleHit[];
}

/** Sets `stopsOthers` of each hit. Returns how to count the hits that are not over their limit in the local cache. */
export function stopWhereRefused(
  { matches, limited }: MatchedRequest,
  isQuota: (match: Match | undefined) => boolean,
): CountMode {
  const knownOver = new Set(
    limited.filter(({ fallback }) => fallback !== undefined).map((hit) => hit.descriptorIndex),
  );
  const refunds = new Set(
    limited.filter(({ refund }) => refund).map(({ descriptorIndex }) => descriptorIndex),
  );
  const neverOver = (index: number) =>
    matches[index] === undefined || matches[index].limit.shadowMode || refunds.has(index);
  // Quotas refuse when all of them are over.
  const quotas = [...matches.keys()].filter(
    (index) => isQuota(matches[index]) && !matches[index]?.limit.unlimited,
  );
  const quotasRefuse = quotas.length > 0 && !quotas.some(neverOver);
  let isRefused = quotasRefuse && quotas.every((index) => knownOver.has(index));
  let canBeRefused = false;
  for (const hit of limited) {
    const { descriptorIndex: index } = hit;
    const stopsOthers = isQuota(matches[index])
      ? quotasRefuse && !knownOver.has(index)
        ? 'together'
        : 'never'
      : neverOver(index)
        ? 'never'
        : 'alone';
    hit.stopsOthers = stopsOthers;
    if (stopsOthers === 'alone' && hit.fallback !== undefined) isRefused = true;
    if (stopsOthers !== 'never') canBeRefused = true;
  }
  if (isRefused) return 'peek';
  return canBeRefused ? 'add-unless-over' : 'add';
}
