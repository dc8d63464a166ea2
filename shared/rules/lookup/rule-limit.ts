// The limits of a descriptor, as decisions have them.

import { toLimiter, toWindowName } from '../limit-shape.ts';
import type { Limit } from '../rule.ts';
import type { RateLimitBlock, RuleDescriptor } from '../rule-document.ts';
import { toModes } from '../rule-keys.ts';

/** A limit of a list. */
export interface ListedLimit {
  readonly limit: Limit;
  /** The last segment of the metric key of its statistics. */
  readonly segment: string;
}

/** The first one of a list. */
export function createLimit(descriptor: RuleDescriptor): Limit | undefined {
  const { rateLimit } = descriptor;
  return rateLimit && toLimit(descriptor, rateLimit, false);
}

/** Undefined where there is one limit, or none. */
export function createList(
  descriptor: RuleDescriptor,
  first: Limit,
): readonly ListedLimit[] | undefined {
  const { furtherLimits } = descriptor;
  if (furtherLimits.length === 0) return undefined;
  const limits = [first, ...furtherLimits.map((block) => toLimit(descriptor, block, true))];
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

/** `isFurther`: in a list, not the first. */
function toLimit(descriptor: RuleDescriptor, block: RateLimitBlock, isFurther: boolean): Limit {
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
    counterTag: limiter !== undefined || isFurther ? `${kind}${toWindowName(block)}` : '',
    ...toModes((mode) => descriptor[mode]),
    metadata: descriptor.metadata,
  });
}
