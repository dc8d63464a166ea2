// A rule in the form of YAML: as plain data, and as text on one line.
import { listShape } from '../limit-shape.ts';
import type { JsonObject, JsonValue } from '../rule.ts';
import type { RateLimitBlock, RuleDescriptor } from '../rule-document.ts';
import { toTimeText } from '../rule-end.ts';
import { descriptorFlags } from '../rule-keys.ts';

export function toRuleObject(descriptor: RuleDescriptor): JsonObject {
  const { key, value, untilMs, rateLimit, furtherLimits, metadata, descriptors } = descriptor;
  const flags = descriptorFlags.filter(({ property }) => descriptor[property]);
  return {
    key,
    ...(value !== '' && { value }),
    ...(untilMs !== undefined && { until: toTimeText(untilMs) }),
    ...Object.fromEntries(flags.map(({ name }) => [name, true])),
    ...(metadata && { metadata }),
    ...(rateLimit && furtherLimits.length === 0 && { rate_limit: toLimitObject(rateLimit) }),
    ...(rateLimit &&
      furtherLimits.length > 0 && {
        rate_limits: [rateLimit, ...furtherLimits].map(toLimitObject),
      }),
    ...(descriptors.length > 0 && { descriptors: descriptors.map(toRuleObject) }),
  };
}

export function toLimitObject(limit: RateLimitBlock): JsonObject {
  const { unit, requestsPerUnit, unlimited, name, replaces } = limit;
  return {
    ...(unlimited && { unlimited }),
    ...(unit !== undefined && { unit }),
    ...(!unlimited && { requests_per_unit: requestsPerUnit }),
    ...Object.fromEntries(listShape(limit)),
    ...(name !== '' && { name }),
    ...(replaces.length > 0 && { replaces: replaces.map((each) => ({ name: each.name })) }),
  };
}

const plainText = /^[A-Za-z_/][A-Za-z0-9_/.-]*$/;
const plainTime = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;
/** Words that YAML does not read as text. */
const words = /^(?:y|yes|n|no|true|false|on|off|null)$/i;

/** YAML on one line; a text that could be read as another kind of value is quoted. */
export function toFlowText(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(toFlowText).join(', ')}]`;
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).map(
      ([name, member]) => `${toFlowText(name)}: ${toFlowText(member)}`,
    );
    return `{${members.join(', ')}}`;
  }
  if (typeof value !== 'string') return JSON.stringify(value);
  const isPlain = plainTime.test(value) || (plainText.test(value) && !words.test(value));
  return isPlain ? value : JSON.stringify(value);
}
