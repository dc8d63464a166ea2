// Human-readable texts of requests and responses: the short form of protobuf's text format, with the field names of
// envoy.service.ratelimit.v3 (behaviour: log-lines, spans).
import {
  codeNames,
  type DescriptorStatus,
  type Header,
  type RateLimitRequest,
  type RateLimitResponse,
  type RequestDescriptor,
} from './message.ts';

/** Requests may have any size; the text ends soon after this many characters. */
const maxLength = 16_384;

export function toRequestText(request: RateLimitRequest): string {
  const fields = [
    `domain:${quote(request.domain)}`,
    toList('descriptors', request.descriptors, toDescriptorFields),
  ];
  if (request.hitsAddend !== 0) fields.push(`hits_addend:${request.hitsAddend}`);
  return joinFields(fields);
}

export function toResponseText(response: RateLimitResponse): string {
  const { overallCode, statuses, responseHeadersToAdd, requestHeadersToAdd, dynamicMetadata } =
    response;
  return joinFields([
    `overall_code:${codeNames[overallCode]}`,
    toList('statuses', statuses, toStatusFields),
    toList('response_headers_to_add', responseHeadersToAdd, toHeaderFields),
    toList('request_headers_to_add', requestHeadersToAdd, toHeaderFields),
    dynamicMetadata === undefined ? '' : `dynamic_metadata:${JSON.stringify(dynamicMetadata)}`,
  ]);
}

/** `(key=value),(key=value)`. */
export function toEntriesText({ entries }: RequestDescriptor): string {
  return entries.map(({ key, value }) => `(${key}=${value})`).join(',');
}

/** The name in the wire's enumerations, such as MINUTE. */
export function toUnitName(unit: string): string {
  return unit.toUpperCase();
}

function toDescriptorFields(descriptor: RequestDescriptor): string[] {
  const { entries, limit, hitsAddend, isNegativeHits } = descriptor;
  const fields = [
    toList('entries', entries, ({ key, value }) => [`key:${quote(key)}`, `value:${quote(value)}`]),
  ];
  if (limit !== undefined) {
    fields.push(`limit:{requests_per_unit:${limit.requestsPerUnit} unit:${limit.unit}}`);
  }
  if (hitsAddend !== undefined) fields.push(`hits_addend:{value:${hitsAddend}}`);
  if (isNegativeHits) fields.push('is_negative_hits:true');
  return fields;
}

function toStatusFields(status: DescriptorStatus): string[] {
  const { code, currentLimit, limitRemaining, secondsUntilReset } = status;
  const fields = [`code:${codeNames[code]}`];
  if (currentLimit !== undefined) {
    const { name, requestsPerUnit, unit } = currentLimit;
    const shownName = name === '' ? '' : `name:${quote(name)} `;
    fields.push(
      `current_limit:{${shownName}requests_per_unit:${requestsPerUnit} unit:${toUnitName(unit)}}`,
    );
  }
  fields.push(`limit_remaining:${limitRemaining}`);
  if (secondsUntilReset !== undefined) {
    fields.push(`duration_until_reset:{seconds:${secondsUntilReset}}`);
  }
  return fields;
}

function toHeaderFields({ key, value }: Header): string[] {
  return [`key:${quote(key)}`, `value:${quote(value)}`];
}

/** A repeated field; items beyond the bound are only counted. */
function toList<Item>(
  name: string,
  items: readonly Item[],
  toFields: (item: Item) => string[],
): string {
  let text = '';
  for (const [index, item] of items.entries()) {
    if (text.length > maxLength) return `${text} ... (${items.length - index} more)`;
    text += `${index === 0 ? '' : ' '}${name}:{${joinFields(toFields(item))}}`;
  }
  return text;
}

function joinFields(fields: readonly string[]): string {
  return fields.filter((field) => field !== '').join(' ');
}

function quote(text: string): string {
  return JSON.stringify(text.length > maxLength ? `${text.slice(0, maxLength)}...` : text);
}
