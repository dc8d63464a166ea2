// The response's metadata for the proxy's filters, about the request and the rules that admitted it
// (RESPONSE_DYNAMIC_METADATA; behaviour: dynamic-metadata).
import type { JsonObject, JsonValue, Limit } from '../../shared/rules/rule.ts';
import { codes, type DescriptorStatus, type RateLimitRequest } from './message.ts';

type Override = NonNullable<RateLimitRequest['descriptors'][number]['limit']>;

const unitNames = ['UNKNOWN', 'SECOND', 'MINUTE', 'HOUR', 'DAY', 'MONTH', 'YEAR'];

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The first value of a key wins; two objects under one key are merged. */
function mergeInto(target: Record<string, JsonValue>, source: JsonObject): void {
  for (const [key, value] of Object.entries(source)) {
    const present = target[key];
    if (present === undefined) target[key] = value;
    else if (isObject(present) && isObject(value)) {
      const merged = emptyObject(present);
      mergeInto(merged, value);
      target[key] = merged;
    }
  }
}

/** Without a prototype, so that `__proto__` is a key like any other. */
function emptyObject(from: JsonObject = {}): Record<string, JsonValue> {
  return Object.assign(Object.create(null), from);
}

/** The text form of messages omits zeros. */
function toText({ requestsPerUnit, unit }: Override): string {
  const amount = requestsPerUnit === 0 ? '' : `requests_per_unit:${requestsPerUnit}`;
  const name = unit === 0 ? '' : `unit:${unitNames[unit] ?? unit}`;
  return [amount, name].filter(Boolean).join(' ');
}

/** `limits` and `statuses` are parallel to the request's descriptors. */
export function toDynamicMetadata(
  request: RateLimitRequest,
  limits: readonly (Limit | undefined)[],
  statuses: readonly DescriptorStatus[],
): JsonObject {
  const metadata = emptyObject();
  statuses.forEach((status, index) => {
    const ruleMetadata = limits[index]?.metadata;
    if (ruleMetadata && status.code === codes.ok) mergeInto(metadata, ruleMetadata);
  });
  return {
    domain: request.domain,
    descriptors: request.descriptors.map((descriptor) => ({
      entries: descriptor.entries.map((entry) => `${entry.key}=${entry.value}`),
      ...(descriptor.limit && {
        limit: toText(descriptor.limit),
      }),
      ...(descriptor.hitsAddend !== undefined && { hitsAddend: Number(descriptor.hitsAddend) }),
    })),
    ...(request.hitsAddend !== 0 && { hitsAddend: request.hitsAddend }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
  };
}
