// Bytes of an envoy.service.ratelimit.v3.RateLimitRequest to the decision's question.
import type { Entry } from '../../../shared/rules/rule.ts';
import type { RateLimitRequest, RequestDescriptor } from '../../decision/message.ts';
import { WireError, WireReader, wireTypes } from './wire-reader.ts';

export type Decoded<Message> =
  | { readonly ok: true; readonly message: Message }
  | { readonly ok: false; readonly problem: string };

/**
 * Reads what proto3 readers must accept: fields in any order, of scalars the last one, repeated
 * sub-messages merged. Unknown fields, and known ones with another wire type, are skipped. Never
 * throws; the problem is one sentence without a final full stop.
 */
export function decodeRateLimitRequest(bytes: Buffer): Decoded<RateLimitRequest> {
  return decodeMessage(bytes, readRequest);
}

/** Runs `read` over the bytes; what the reader refuses becomes a problem. */
export function decodeMessage<Message>(
  bytes: Buffer,
  read: (reader: WireReader) => Message,
): Decoded<Message> {
  try {
    return { ok: true, message: read(new WireReader(bytes)) };
  } catch (error) {
    if (error instanceof WireError) return { ok: false, problem: error.message };
    throw error;
  }
}

function readRequest(reader: WireReader): RateLimitRequest {
  let domain = '';
  let hitsAddend = 0;
  const descriptors: RequestDescriptor[] = [];
  for (let field = reader.nextField(); field !== 0; field = reader.nextField()) {
    if (field === 1 && reader.wireType === wireTypes.bytes) domain = reader.readString();
    else if (field === 2 && reader.wireType === wireTypes.bytes) {
      const outerEnd = reader.enter();
      descriptors.push(readDescriptor(reader));
      reader.leave(outerEnd);
    } else if (field === 3 && reader.wireType === wireTypes.varint) {
      reader.readVarint();
      hitsAddend = reader.low;
    } else reader.skip(field);
  }
  return { domain, descriptors, hitsAddend };
}

function readDescriptor(reader: WireReader): RequestDescriptor {
  const entries: Entry[] = [];
  let limit: { requestsPerUnit: number; unit: number } | undefined;
  let hitsAddend: number | bigint | undefined;
  let isNegativeHits = false;
  for (let field = reader.nextField(); field !== 0; field = reader.nextField()) {
    if (field === 4 && reader.wireType === wireTypes.varint) {
      reader.readVarint();
      isNegativeHits = reader.low !== 0 || reader.high !== 0;
    } else if (field > 3 || reader.wireType !== wireTypes.bytes) reader.skip(field);
    else {
      const outerEnd = reader.enter();
      if (field === 1) entries.push(readEntry(reader));
      else if (field === 2) {
        limit ??= { requestsPerUnit: 0, unit: 0 };
        readLimit(reader, limit);
      } else hitsAddend = readUint64Value(reader, hitsAddend ?? 0);
      reader.leave(outerEnd);
    }
  }
  return { entries, limit, hitsAddend, isNegativeHits };
}

function readEntry(reader: WireReader): Entry {
  let key = '';
  let value = '';
  for (let field = reader.nextField(); field !== 0; field = reader.nextField()) {
    if (field === 1 && reader.wireType === wireTypes.bytes) key = reader.readString();
    else if (field === 2 && reader.wireType === wireTypes.bytes) value = reader.readString();
    else reader.skip(field);
  }
  return { key, value };
}

function readLimit(reader: WireReader, limit: { requestsPerUnit: number; unit: number }): void {
  for (let field = reader.nextField(); field !== 0; field = reader.nextField()) {
    if (field > 2 || reader.wireType !== wireTypes.varint) reader.skip(field);
    else {
      reader.readVarint();
      if (field === 1) limit.requestsPerUnit = reader.low;
      // An enum is a signed number.
      else limit.unit = reader.low | 0;
    }
  }
}

function readUint64Value(reader: WireReader, before: number | bigint): number | bigint {
  let value = before;
  for (let field = reader.nextField(); field !== 0; field = reader.nextField()) {
    if (field === 1 && reader.wireType === wireTypes.varint) value = reader.readUint64();
    else reader.skip(field);
  }
  return value;
}
