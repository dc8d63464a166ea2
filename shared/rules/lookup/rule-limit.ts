// The limits of a descriptor, in the form that decisions use.

import { toLimiter, toWindowName, windowSecondsOf } from '../limit-shape.ts';
import type { Limit } from '../rule.ts';
import type { RateLimitBlock, RuleDescriptor } from '../rule-document.ts';
import { toModes } from '../rule-keys.ts';

/** A limit of a list. */
export interface ListedLimit {
  readonly limit: Limit;
  /** The last segment of the metric key of its statistics. */
  readonly segment: string;
}

/** The only limit of a descriptor, or the first one of its list. */
export function createLimit(descriptor: RuleDescriptor): Limit | undefined {
  const { rateLimit } = descriptor;
  return rateLimit && toLimit(descriptor, rateLimit, findPlain(descriptor));
}

/** The limits of a list; undefined if there is one limit or none. */
export function createList(
  descriptor: RuleDescriptor,
  first: Limit,
): readonly ListedLimit[] | undefined {
  const { furtherLimits } = descriptor;
  if (furtherLimits.length === 0) return undefined;
  const plain = findPlain(descriptor);
  const limits = [first, ...furtherLimits.map((block) => toLimit(descriptor, block, plain))];
  const segments = toSegments(limits);
  return limits.map((limit, index) => ({ limit, segment: segments[index] ?? '' }));
}

/** The last segments of the metric keys of a list's limits. */
export function toSegments(
  limits: readonly Pick<Limit, 'unit' | 'unitMultiplier' | 'algorithm'>[],
): readonly string[] {
  const windows = limits.map(toWindowName);
  return windows.map((name, index) => {
    const isAlone = windows.filter((other) => other === name).length === 1;
    return isAlone ? name : `${name}_${limits[index]?.algorithm}`;
  });
}

/**
 * Finds the limit with the keys that the reference forms: the fixed window with the longest window. The others are
 * tagged by their window, never by their position: a limit added in front of a quota leaves the quota's count.
 */
function findPlain({
  rateLimit,
  furtherLimits,
}: Pick<RuleDescriptor, 'rateLimit' | 'furtherLimits'>): RateLimitBlock | undefined {
  let plain: RateLimitBlock | undefined;
  for (const block of rateLimit === undefined ? [] : [rateLimit, ...furtherLimits]) {
    if (block.algorithm !== 'fixed_window') continue;
    const longer = plain === undefined ? 1 : windowSecondsOf(block) - windowSecondsOf(plain);
    // Decides between windows such as 60 seconds and a minute, independent of their order.
    const isFirstName = plain !== undefined && toWindowName(block) < toWindowName(plain);
    if (longer > 0 || (longer === 0 && isFirstName)) plain = block;
  }
  return plain;
}

/** `plain` is the limit whose counters have no tag. */
function toLimit(
  descriptor: RuleDescriptor,
  block: RateLimitBlock,
  plain: RateLimitBlock | undefined,
): Limit {
  const limiter = toLimiter(block);
  const kind = limiter === undefined ? '' : `${block.algorithm}_`;
  return Object.freeze({
    requestsPerUnit: block.requestsPerUnit,
    unit: block.unit,
    unlimited: block.unlimited,
    name: block.name,
    replaces: Object.freeze(block.replaces.map((replacement) => replacement.name)),
    unitMultiplier: block.unitMultiplier,
    algorithm: block.algorithm,
    burst: block.burst,
    countOverLimit: block.countOverLimit,
    lease: block.lease,
    limiter,
    counterTag: block === plain ? '' : `${kind}${toWindowName(block)}`,
    ...toModes((mode) => descriptor[mode]),
    metadata: descriptor.metadata,
  });
}
