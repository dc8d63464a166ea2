// Decodes an envoy.service.ratelimit.v3.RateLimitRequest.
import type { Entry } from '../../../shared/rules/rule.ts';
import { joinHashes } from '../../decision/hit.ts';
import type { RateLimitRequest, RequestDescriptor } from '../../decision/message.ts';
import {
  defaultRequestBounds,
  type RequestBounds,
  RequestTooLarge,
  tooManyDescriptors,
  tooManyEntries,
} from '../../decision/request-bounds.ts';
import { WireError, WireReader, wireTypes } from './wire-format.ts';

export type Decoded<Message> =
  | { readonly ok: true; readonly message: Message }
  | {
      readonly ok: false;
      readonly problem: string;
      /** The part of a request at which decoding ended: for logs. */
      readonly position?: string;
      readonly isTooLarge?: boolean;
    };

/** Shared, since a message is decoded without interruption. */
const reader = new WireReader();
/** The request being decoded. Reset by each, rather than allocated for it. */
const current = {
  bounds: defaultRequestBounds,
  /** The entries so far, of all descriptors. */
  entryCount: 0,
  /** The hash of the entries of the current descriptor so far. */
  entriesHash: 0,
  /** Where decoding has failed, as far as is known; a decodable request sets neither. */
  failedDescriptor: undefined as number | undefined,
  failedKey: '',
};

/**
 * Accepts what proto3 decoders must accept: fields in any order; of several values of a scalar the last one; repeated
 * sub-messages merged. Skips unknown fields, and known ones with another wire type. Never throws; the problem is one
 * sentence without a final full stop. Decoding stops at the limits.
 */
export function decodeRateLimitRequest(
  bytes: Buffer,
  start = 0,
  end = bytes.length,
  requestBounds: RequestBounds = defaultRequestBounds,
): Decoded<RateLimitRequest> {
  current.bounds = requestBounds;
  current.entryCount = 0;
  reader.escapesInvalidUtf8 = requestBounds.invalidUtf8 === 'count';
  const decoded = decodeMessage(bytes, start, end, readRequest);
  reader.escapesInvalidUtf8 = false;
  return decoded.ok ? decoded : { ...decoded, position: toPosition() };
}

function toPosition(): string {
  const { failedDescriptor, failedKey } = current;
  current.failedDescriptor = undefined;
  current.failedKey = '';
  if (failedDescriptor === undefined) return 'the request';
  const at = failedKey === '' ? '' : `, at key ${JSON.stringify(failedKey.slice(0, 100))}`;
  return `descriptors[${failedDescriptor}]${at}`;
}

/** Runs `read` over bytes[start, end); an error of the reader becomes a problem. */
export function decodeMessage<Message>(
  bytes: Buffer,
  start: number,
  end: number,
  read: (reader: WireReader) => Message,
): Decoded<Message> {
  try {
    reader.begin(bytes, start, end);
    return { ok: true, message: read(reader) };
  } catch (error) {
    if (error instanceof WireError) return { ok: false, problem: error.message };
    if (error instanceof RequestTooLarge) {
      return { ok: false, problem: error.message, isTooLarge: true };
    }
    throw error;
  }
}

function readRequest(reader: WireReader): RateLimitRequest {
  let domain = '';
  let hitsAddend = 0;
  let descriptors: RequestDescriptor[] | undefined;
  for (let field = reader.nextField(); field !== 0; field = reader.nextField()) {
    if (field === 1 && reader.wireType === wireTypes.bytes) domain = reader.readString();
    else if (field === 2 && reader.wireType === wireTypes.bytes) {
      const outerEnd = reader.enter();
      let descriptor: RequestDescriptor;
      try {
        descriptor = readDescriptor(reader);
      } catch (error) {
        current.failedDescriptor = descriptors?.length ?? 0;
        throw error;
      }
      // An array made with one element takes a tenth of the memory to which an empty one grows.
      if (descriptors === undefined) descriptors = [descriptor];
      else {
        if (descriptors.length >= current.bounds.maxDescriptors)
          throw tooManyDescriptors(current.bounds);
        descriptors.push(descriptor);
      }
      reader.leave(outerEnd);
    } else if (field === 3 && reader.wireType === wireTypes.varint) {
      reader.readVarint();
      hitsAddend = reader.low;
    } else reader.skip(field);
  }
  return { domain, descriptors: descriptors ?? [], hitsAddend };
}

function readDescriptor(reader: WireReader): RequestDescriptor {
  let entries: Entry[] | undefined;
  let limit: { requestsPerUnit: number; unit: number } | undefined;
  let hitsAddend: number | bigint | undefined;
  let isNegativeHits = false;
  current.entriesHash = 0;
  for (let field = reader.nextField(); field !== 0; field = reader.nextField()) {
    if (field === 4 && reader.wireType === wireTypes.varint) {
      reader.readVarint();
      isNegativeHits = reader.low !== 0 || reader.high !== 0;
    } else if (field > 3 || reader.wireType !== wireTypes.bytes) reader.skip(field);
    else {
      const outerEnd = reader.enter();
      if (field === 1) {
        if (++current.entryCount > current.bounds.maxEntries) throw tooManyEntries(current.bounds);
        const entry = readEntry(reader);
        if (entries === undefined) entries = [entry];
        else entries.push(entry);
      } else if (field === 2) {
        limit ??= { requestsPerUnit: 0, unit: 0 };
        readLimit(reader, limit);
      } else hitsAddend = readUint64Value(reader, hitsAddend ?? 0);
      reader.leave(outerEnd);
    }
  }
  return { entries: entries ?? [], hash: current.entriesHash, limit, hitsAddend, isNegativeHits };
}

function readEntry(reader: WireReader): Entry {
  let key = '';
  let value = '';
  let keyHash = 0;
  let valueHash = 0;
  try {
    for (let field = reader.nextField(); field !== 0; field = reader.nextField()) {
      if (field === 1 && reader.wireType === wireTypes.bytes) {
        key = reader.readString();
        keyHash = reader.textHash;
      } else if (field === 2 && reader.wireType === wireTypes.bytes) {
        value = reader.readString();
        valueHash = reader.textHash;
      } else reader.skip(field);
    }
  } catch (error) {
    current.failedKey = key;
    throw error;
  }
  current.entriesHash = joinHashes(joinHashes(current.entriesHash, keyHash), valueHash);
  return { key, value };
}

function readLimit(reader: WireReader, limit: { requestsPerUnit: number; unit: number }): void {
  for (let field = reader.nextField(); field !== 0; field = reader.nextField()) {
    if (field > 2 || reader.wireType !== wireTypes.varint) reader.skip(field);
    else {
      reader.readVarint();
      if (field === 1) limit.requestsPerUnit = reader.low;
      // An enum is signed.
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
