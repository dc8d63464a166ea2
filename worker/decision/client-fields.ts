// The response fields that HTTP clients understand by themselves: `Retry-After` (RFC 9110), and `RateLimit` and
// `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers-11, which are structured fields (behaviour:
// client-fields).
import { createHmac } from 'node:crypto';
import { toWindowName } from '../../shared/rules/limit-shape.ts';
import type { Entry } from '../../shared/rules/rule.ts';
import type { RuleHit } from './hit.ts';
import { codes, type DescriptorStatus, type Header, type RateLimitRequest } from './message.ts';

/** At least one of them is on. */
export interface ClientFieldOptions {
  readonly retryAfter: boolean;
  readonly rateLimit: boolean;
  readonly policy: boolean;
  /** The secret for hashing partition keys; '' omits them. */
  readonly partitionSecret: string;
}

export interface ClientFieldInput {
  readonly request: RateLimitRequest;
  /** The hits of rules with a limit, in the order of the descriptors. */
  readonly limited: readonly RuleHit[];
  /** The status of each descriptor; `isQuota` has the same order. */
  readonly statuses: readonly DescriptorStatus[];
  readonly isQuota: readonly boolean[];
  /** Whether the request is refused. */
  readonly isRefused: boolean;
  readonly nowSeconds: number;
  /** Whole seconds until a hit of the same request would be admitted; infinite for never. */
  readonly findWait: (hit: RuleHit, nowSeconds: number) => number;
}

/** A limit of the request, as a client sees it. */
interface Policy {
  /** The name of the limit, serialized. */
  readonly item: string;
  readonly partition: string;
  readonly quota: number;
  readonly windowSeconds: number;
  readonly remaining: number;
  /** Undefined if the request can never be admitted. */
  readonly resetSeconds: number | undefined;
}

/** The most policies in a field: those with the least remaining. Proxies limit the size of headers. */
const maxPolicies = 16;
const maxNameLength = 64;
/** The length of a partition key: 96 bits, 16 characters in base64. */
const partitionBytes = 12;

export function toClientFields(options: ClientFieldOptions, input: ClientFieldInput): Header[] {
  const headers: Header[] = [];
  const waitSeconds = input.isRefused ? findRequestWait(input) : 0;
  if (options.retryAfter && input.isRefused && Number.isFinite(waitSeconds)) {
    headers.push({ key: 'retry-after', value: `${waitSeconds}` });
  }
  if (!options.rateLimit && !options.policy) return headers;
  const policies = listPolicies(options.partitionSecret, input, waitSeconds);
  if (policies.length === 0) return headers;
  if (options.policy) {
    const items = policies.map(
      ({ item, partition, quota, windowSeconds }) =>
        `${item};q=${quota};w=${windowSeconds}${partition}`,
    );
    headers.push({ key: 'ratelimit-policy', value: items.join(', ') });
  }
  if (options.rateLimit) {
    const items = policies.map(
      ({ item, partition, remaining, resetSeconds }) =>
        `${item};r=${remaining}${resetSeconds === undefined ? '' : `;t=${resetSeconds}`}${partition}`,
    );
    headers.push({ key: 'ratelimit', value: items.join(', ') });
  }
  return headers;
}

/**
 * The time until all limits admit the request, including its own hits if they are counted: these may also use
 * up a limit that was not over. The last of the enforced limits decides, and the first of the quotas, which refuse
 * together.
 */
function findRequestWait(input: ClientFieldInput): number {
  const { statuses, limited, isQuota, nowSeconds, findWait } = input;
  /** The wait of each descriptor: all limits of a list must admit it. */
  const waits = new Map<number, number>();
  for (const hit of limited) {
    const { descriptorIndex: index } = hit;
    waits.set(index, Math.max(waits.get(index) ?? 0, findWait(hit, nowSeconds)));
  }
  const quotas: number[] = [];
  let wait = 1;
  for (const index of statuses.keys()) {
    const seconds = waits.get(index);
    if (!isQuota[index]) wait = Math.max(wait, seconds ?? 0);
    // An unlimited descriptor is not a quota; one without a limit always has room, so quotas would refuse nothing.
    else if (seconds !== undefined) quotas.push(seconds);
  }
  return quotas.length === 0 ? wait : Math.max(wait, Math.min(...quotas));
}

/**
 * One policy for each descriptor with a limit that can refuse. Of several with the same name and partition key, only
 * the one with the fewest remaining hits is listed, and so are only the lowest up to the bound.
 */
function listPolicies(
  secret: string,
  { request, limited, statuses }: ClientFieldInput,
  waitSeconds: number,
): Policy[] {
  const policies = new Map<string, Policy>();
  for (const { descriptorIndex } of limited) {
    const status = statuses[descriptorIndex];
    const hit = status && findHit(limited, descriptorIndex, status);
    if (status === undefined || hit === undefined || hit.match.limit.shadowMode) continue;
    const { entries } = request.descriptors[descriptorIndex] ?? { entries: [] };
    const item = toName(hit, entries);
    const partition =
      secret === '' ? '' : `;pk=:${toPartition(secret, request.domain, hit, entries)}:`;
    const remaining = status.limitRemaining;
    const known = policies.get(item + partition);
    if (known !== undefined && known.remaining <= remaining) continue;
    policies.set(item + partition, {
      item,
      partition,
      quota: hit.limit,
      windowSeconds: toRefillSeconds(hit),
      remaining,
      resetSeconds: findPolicyReset(status, waitSeconds),
    });
  }
  const found = [...policies.values()];
  if (found.length <= maxPolicies) return found;
  return found.sort((one, other) => one.remaining - other.remaining).slice(0, maxPolicies);
}

/** When a limit that refuses admits the request, as in Retry-After. */
function findPolicyReset(
  { code, secondsUntilReset }: DescriptorStatus,
  waitSeconds: number,
): number | undefined {
  if (code !== codes.overLimit || waitSeconds === 0) return secondsUntilReset;
  return Number.isFinite(waitSeconds) ? waitSeconds : undefined;
}

/** The limit of a list that the descriptor's status is about. */
function findHit(
  limited: readonly RuleHit[],
  index: number,
  { currentLimit }: DescriptorStatus,
): RuleHit | undefined {
  return limited.find(
    ({ descriptorIndex, match: { limit }, unit }) =>
      descriptorIndex === index &&
      limit.name === currentLimit?.name &&
      limit.requestsPerUnit === currentLimit.requestsPerUnit &&
      unit === currentLimit.unit,
  );
}

/** A bucket that holds more than arrives in a window takes this long to fill. */
function toRefillSeconds({ limit, windowSeconds, match }: RuleHit): number {
  const { requestsPerUnit } = match.limit;
  if (requestsPerUnit === 0 || limit === requestsPerUnit) return windowSeconds;
  return Math.ceil((windowSeconds * limit) / requestsPerUnit);
}

/** The limit's own name, or its keys and its window. A string of a structured field can only have printable ASCII. */
function toName({ match: { limit }, unit }: RuleHit, entries: readonly Entry[]): string {
  const window = toWindowName({ unit, unitMultiplier: limit.unitMultiplier });
  const name = limit.name || `${entries.map(({ key }) => key).join('.')}-${window}`;
  const shown = name.slice(0, maxNameLength).replace(/[^ -~]/g, '_');
  return `"${shown.replace(/["\\]/g, '\\$&')}"`;
}

/**
 * Values that share a counter share their partition. Each part ends with its length, so that different lists never make
 * the same text.
 */
function toPartition(
  secret: string,
  domain: string,
  { match: { sharedValues } }: RuleHit,
  entries: readonly Entry[],
): string {
  const hash = createHmac('sha256', secret).update(domain);
  entries.forEach(({ key, value }, index) => {
    const counted = sharedValues?.[index] ?? value;
    hash.update(`\n${key}\n${key.length}\n${counted}\n${counted.length}`);
  });
  return hash.digest().subarray(0, partitionBytes).toString('base64');
}
