// The limit that a descriptor in a request can contain (behaviour: limit-in-the-request).
import { AppError } from '../../shared/errors.ts';
import {
  type LimitShape,
  plainShape,
  toLimiter,
  toWindowName,
} from '../../shared/rules/limit-shape.ts';
import { overrideMetricKey } from '../../shared/rules/lookup/metric-key.ts';
import type { DomainRules, Match } from '../../shared/rules/rule.ts';
import { noModes } from '../../shared/rules/rule-keys.ts';
import { unitFromNumber } from '../../shared/rules/unit.ts';
import type { RequestDescriptor } from './message.ts';

/**
 * Replaces the limit of every rule, except for the rule's algorithm and its number of units. An error if it is invalid.
 */
export function matchLimitInRequest(
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
    listedAs: undefined,
  };
}
