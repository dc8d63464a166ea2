// Which limit applies to each descriptor of a request, before anything is counted.
import { AppError } from '../../shared/errors.ts';
import {
  type LimitShape,
  plainShape,
  toLimiter,
  toWindowName,
} from '../../shared/rules/limit-shape.ts';
import { overrideMetricKey } from '../../shared/rules/metric-key.ts';
import type { DomainRules, Match } from '../../shared/rules/rule.ts';
import { noModes } from '../../shared/rules/rule-keys.ts';
import { unitFromNumber } from '../../shared/rules/unit.ts';
import type { DecisionTrail } from './decision-trail.ts';
import type { RateLimitRequest, RequestDescriptor } from './message.ts';
import type { UnmatchedSampler } from './unmatched-sampler.ts';

/** A limit in the request replaces that of every rule, except for the rule's algorithm and its number of
 * units (behaviour: limit-in-the-request). */
function matchOverride(
  rules: DomainRules,
  descriptor: RequestDescriptor,
  override: NonNullable<RequestDescriptor['limit']>,
  index: number,
  sanitizeMetricDots: boolean,
): Match | AppError {
  const unit = unitFromNumber(override.unit);
  if (!unit) {
    return new AppError(
      'bad_request',
      `descriptors[${index}].limit.unit ${override.unit} is not a unit of time; ` +
        'use 1 (SECOND), 2 (MINUTE), 3 (HOUR), 4 (DAY), 5 (MONTH), 6 (YEAR) or 7 (WEEK)',
    );
  }
  const ruled = rules.match(descriptor.entries)?.limit;
  const shape: LimitShape = {
    ...plainShape,
    requestsPerUnit: override.requestsPerUnit,
    unit,
    ...(ruled && {
      unitMultiplier: ruled.unitMultiplier,
      algorithm: ruled.algorithm,
      countOverLimit: ruled.countOverLimit,
    }),
  };
  const limiter = toLimiter(shape);
  return {
    limit: {
      ...shape,
      limiter,
      counterTag: limiter === undefined ? '' : `${shape.algorithm}_${toWindowName(shape)}`,
      unlimited: false,
      name: '',
      replaces: [],
      ...noModes,
      metadata: undefined,
    },
    metricKey: overrideMetricKey(rules.domain, descriptor.entries, sanitizeMetricDots),
    metricKeyIsStatic: false,
    sharedValues: undefined,
    parts: undefined,
  };
}

/** Removes limits that another one of the same request replaces (behaviour: replaced-limits). */
function dropReplaced(matches: (Match | undefined)[], trail: DecisionTrail | undefined): void {
  const replaced = new Set(matches.flatMap((match) => match?.limit.replaces ?? []));
  for (let index = 0; index < matches.length; index++) {
    const limit = matches[index]?.limit;
    if (limit && !limit.unlimited && replaced.has(limit.name)) {
      trail?.replaced(limit.name);
      matches[index] = undefined;
    }
  }
}

/**
 * One element per descriptor: its match, or undefined where no limit applies. An error when the request is
 * invalid.
 */
export function selectLimits(
  rules: DomainRules,
  request: RateLimitRequest,
  sanitizeMetricDots: boolean,
  trail: DecisionTrail | undefined,
  unmatched: UnmatchedSampler,
  nowSeconds: number,
): (Match | undefined)[] | AppError {
  const matches = new Array<Match | undefined>(request.descriptors.length);
  let somethingIsReplaced = false;
  for (let index = 0; index < matches.length; index++) {
    const descriptor = request.descriptors[index] as RequestDescriptor;
    const match = descriptor.limit
      ? matchOverride(rules, descriptor, descriptor.limit, index, sanitizeMetricDots)
      : rules.match(descriptor.entries);
    if (match instanceof AppError) return match;
    trail?.lookedUp(descriptor, match, rules);
    matches[index] = match;
    if (match === undefined) unmatched.noMatch(rules, descriptor.entries, nowSeconds);
    else if (match.limit.replaces.length > 0) somethingIsReplaced = true;
  }
  if (somethingIsReplaced) dropReplaced(matches, trail);
  return matches;
}
