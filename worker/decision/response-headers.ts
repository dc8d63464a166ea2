// The rate limit headers of the answer, for the caller to add (behaviour: response-headers).
import { type Unit, units } from '../../shared/rules/unit.ts';
import { codes, type DescriptorStatus, type Header } from './message.ts';

export interface HeaderNames {
  readonly limit: string;
  readonly remaining: string;
  readonly reset: string;
}

/** Groups of headers; one that is undefined is left out. */
export interface HeaderOptions {
  readonly response: HeaderNames | undefined;
  readonly request: HeaderNames | undefined;
  /** Base names of the `<name>-<Unit>` headers of the response. */
  readonly perUnit: Pick<HeaderNames, 'limit' | 'remaining'> | undefined;
  /**
   * Marks requests that only shadow mode admits: the three headers do not distinguish them from the last request within
   * the limit.
   */
  readonly shadowed: Header | undefined;
}

/** A status with a limit; headers are about these only. */
type LimitedStatus = DescriptorStatus & {
  readonly currentLimit: NonNullable<DescriptorStatus['currentLimit']>;
};

function isLimited(status: DescriptorStatus): status is LimitedStatus {
  return status.currentLimit !== undefined;
}

/**
 * The descriptor closest to its limit: the last one over the limit of an enforced rule, else the first one with the
 * lowest remaining count.
 */
function closestToLimit(
  statuses: readonly DescriptorStatus[],
  isQuota: readonly boolean[],
): LimitedStatus | undefined {
  let closest: LimitedStatus | undefined;
  let lowest = 0xffff_ffff;
  statuses.forEach((status, index) => {
    if (!isLimited(status)) return;
    const isEnforcedAndOver = status.code === codes.overLimit && !isQuota[index];
    if (status.limitRemaining < lowest || isEnforcedAndOver) {
      closest = status;
      lowest = status.limitRemaining;
    }
  });
  return closest;
}

const none: readonly Header[] = [];

function namedHeaders(names: HeaderNames, status: LimitedStatus): Header[] {
  return [
    { key: names.limit, value: String(status.currentLimit.requestsPerUnit) },
    { key: names.remaining, value: String(status.limitRemaining) },
    // A request that can never be admitted has no reset.
    ...(status.secondsUntilReset === undefined
      ? none
      : [{ key: names.reset, value: String(status.secondsUntilReset) }]),
  ];
}

function perUnitHeaders(
  names: Pick<HeaderNames, 'limit' | 'remaining'>,
  statuses: readonly DescriptorStatus[],
): Header[] {
  const lowest = new Map<Unit, LimitedStatus>();
  for (const status of statuses) {
    if (!isLimited(status)) continue;
    const known = lowest.get(status.currentLimit.unit);
    if (!known || status.limitRemaining < known.limitRemaining) {
      lowest.set(status.currentLimit.unit, status);
    }
  }
  return units.flatMap((unit) => {
    const status = lowest.get(unit);
    if (!status) return [];
    const suffix = unit.charAt(0).toUpperCase() + unit.slice(1);
    return [
      { key: `${names.limit}-${suffix}`, value: String(status.currentLimit.requestsPerUnit) },
      { key: `${names.remaining}-${suffix}`, value: String(status.limitRemaining) },
    ];
  });
}

/**
 * `isQuota` is parallel to `statuses`. A request without any limit gets no headers. `isShadowed`: only shadow mode
 * admits the request.
 */
export function toHeaders(
  options: HeaderOptions,
  statuses: readonly DescriptorStatus[],
  isQuota: readonly boolean[],
  isShadowed: boolean,
): { readonly response: readonly Header[]; readonly request: readonly Header[] } {
  const closest = closestToLimit(statuses, isQuota);
  return {
    response: [
      ...(options.response && closest ? namedHeaders(options.response, closest) : none),
      ...(options.perUnit ? perUnitHeaders(options.perUnit, statuses) : none),
    ],
    request: [
      ...(options.request && closest ? namedHeaders(options.request, closest) : none),
      ...(options.shadowed && isShadowed ? [options.shadowed] : none),
    ],
  };
}
