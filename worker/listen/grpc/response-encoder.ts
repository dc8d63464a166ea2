// Encodes an envoy.service.ratelimit.v3.RateLimitResponse.
import type { JsonObject, JsonValue } from '../../../shared/rules/rule.ts';
import { unitNumbers } from '../../../shared/rules/unit.ts';
import type { DescriptorStatus, Header, RateLimitResponse } from '../../decision/message.ts';
import { WireWriter } from './wire-format.ts';

export interface EncodedMessage {
  readonly bytes: Uint8Array;
  readonly length: number;
}

/** Shared, since a response is encoded without interruption. */
const writer = new WireWriter();

/**
 * Deterministic: fields are ordered by number, struct members as in the object. The result is the first `length` of
 * `bytes`, valid until the next call.
 */
export function encodeRateLimitResponse(response: RateLimitResponse): EncodedMessage {
  writer.restart();
  writer.uint(1, response.overallCode);
  for (const status of response.statuses) writeStatus(status);
  for (const header of response.responseHeadersToAdd) writeHeader(3, header);
  for (const header of response.requestHeadersToAdd) writeHeader(4, header);
  if (response.dynamicMetadata !== undefined) {
    const start = writer.begin(6);
    writeStruct(response.dynamicMetadata);
    writer.end(start);
  }
  return writer;
}

function writeStatus(status: DescriptorStatus): void {
  const start = writer.begin(2);
  writer.uint(1, status.code);
  if (status.currentLimit !== undefined) {
    const limitStart = writer.begin(2);
    writer.uint(1, status.currentLimit.requestsPerUnit);
    writer.uint(2, unitNumbers[status.currentLimit.unit]);
    writer.string(3, status.currentLimit.name);
    writer.end(limitStart);
  }
  writer.uint(3, status.limitRemaining);
  if (status.secondsUntilReset !== undefined) {
    const durationStart = writer.begin(4);
    writer.uint(1, status.secondsUntilReset);
    writer.end(durationStart);
  }
  writer.end(start);
}

function writeHeader(field: number, header: Header): void {
  const start = writer.begin(field);
  writer.string(1, header.key);
  writer.string(2, header.value);
  writer.end(start);
}

function writeStruct(object: JsonObject): void {
  for (const [name, value] of Object.entries(object)) {
    const start = writer.begin(1);
    writer.stringAlways(1, name);
    const valueStart = writer.begin(2);
    writeValue(value);
    writer.end(valueStart);
    writer.end(start);
  }
}

/** A Value is a oneof: the member that is set is encoded even with its default. */
function writeValue(value: JsonValue): void {
  if (value === null) writer.uintAlways(1, 0);
  else if (typeof value === 'number') writer.double(2, value);
  else if (typeof value === 'string') writer.stringAlways(3, value);
  else if (typeof value === 'boolean') writer.uintAlways(4, value ? 1 : 0);
  else if (Array.isArray(value)) {
    const start = writer.begin(6);
    for (const item of value) {
      const itemStart = writer.begin(1);
      writeValue(item);
      writer.end(itemStart);
    }
    writer.end(start);
  } else {
    const start = writer.begin(5);
    writeStruct(value);
    writer.end(start);
  }
}
