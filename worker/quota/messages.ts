// Decodes and encodes the messages of envoy.service.rate_limit_quota.v3.
import type { Entry } from '../../shared/rules/rule.ts';
import { RequestTooLarge } from '../decision/request-bounds.ts';
import { type Decoded, decodeMessage } from '../listen/grpc/request-decoder.ts';
import { type WireReader, WireWriter, wireTypes } from '../listen/grpc/wire-format.ts';
import type { Strategy } from './strategy.ts';

export interface UsageReports {
  /** '' if the message has none. */
  readonly domain: string;
  readonly usages: readonly BucketUsage[];
}

export interface BucketUsage {
  /** The bucket's id, in the order of the message. */
  readonly entries: readonly Entry[];
  /** Time since the previous report. Callers send whole seconds. */
  readonly elapsedSeconds: number;
  readonly allowed: number | bigint;
  readonly denied: number | bigint;
}

export interface BucketAction {
  readonly entries: readonly Entry[];
  /** Undefined to abandon the bucket. */
  readonly assignment: { readonly ttlSeconds: number; readonly strategy: Strategy } | undefined;
}

/** Limits of a bucket's id. */
export const maxBucketEntries = 32;
export const maxBucketBytes = 4_096;

export function decodeUsageReports(bytes: Buffer): Decoded<UsageReports> {
  return decodeMessage(bytes, 0, bytes.length, readReports);
}

function readReports(reader: WireReader): UsageReports {
  let domain = '';
  const usages: BucketUsage[] = [];
  for (let field = reader.nextField(); field !== 0; field = reader.nextField()) {
    if (field === 1 && reader.wireType === wireTypes.bytes) domain = reader.readString();
    else if (field === 2 && reader.wireType === wireTypes.bytes) {
      const outerEnd = reader.enter();
      usages.push(readUsage(reader, true));
      reader.leave(outerEnd);
    } else reader.skip(field);
  }
  return { domain, usages };
}

/**
 * Released versions of Envoy send a list of usages; the latest protocol definition has a map of them by number, whose
 * entries have the number as field 1 and the usage as field 2.
 */
function readUsage(reader: WireReader, mayBeEntry: boolean): BucketUsage {
  let isMapEntry = false;
  let entries: readonly Entry[] = [];
  let elapsedSeconds = 0;
  let allowed: number | bigint = 0;
  let denied: number | bigint = 0;
  for (let field = reader.nextField(); field !== 0; field = reader.nextField()) {
    if (field === 1 && reader.wireType === wireTypes.varint && mayBeEntry) {
      isMapEntry = true;
      reader.readVarint();
    } else if (field <= 2 && reader.wireType === wireTypes.bytes) {
      const outerEnd = reader.enter();
      if (field === 2 && isMapEntry) {
        ({ entries, elapsedSeconds, allowed, denied } = readUsage(reader, false));
      } else if (field === 2) elapsedSeconds = readSeconds(reader);
      else entries = readBucketId(reader);
      reader.leave(outerEnd);
    } else if (field === 3 && reader.wireType === wireTypes.varint) allowed = reader.readUint64();
    else if (field === 4 && reader.wireType === wireTypes.varint) denied = reader.readUint64();
    else reader.skip(field);
  }
  return { entries, elapsedSeconds, allowed, denied };
}

function readBucketId(reader: WireReader): readonly Entry[] {
  const entries: Entry[] = [];
  let bytes = 0;
  for (let field = reader.nextField(); field !== 0; field = reader.nextField()) {
    if (field !== 1 || reader.wireType !== wireTypes.bytes) {
      reader.skip(field);
      continue;
    }
    const outerEnd = reader.enter();
    let key = '';
    let value = '';
    for (let part = reader.nextField(); part !== 0; part = reader.nextField()) {
      if (part === 1 && reader.wireType === wireTypes.bytes) key = reader.readString();
      else if (part === 2 && reader.wireType === wireTypes.bytes) value = reader.readString();
      else reader.skip(part);
    }
    reader.leave(outerEnd);
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
    // The last value of a repeated key counts. There are few entries, so searching a list is faster than making a map.
    const index = entries.findIndex((entry) => entry.key === key);
    entries[index < 0 ? entries.length : index] = { key, value };
    if (entries.length > maxBucketEntries || bytes > maxBucketBytes) {
      throw new RequestTooLarge(
        `a bucket has more than ${maxBucketEntries} entries or ${maxBucketBytes} bytes`,
      );
    }
  }
  return entries;
}

/** The signed seconds of a Duration. */
function readSeconds(reader: WireReader): number {
  let seconds = 0;
  for (let field = reader.nextField(); field !== 0; field = reader.nextField()) {
    if (field === 1 && reader.wireType === wireTypes.varint) {
      reader.readVarint();
      seconds = (reader.high | 0) * 2 ** 32 + reader.low;
    } else reader.skip(field);
  }
  return seconds;
}

const writer = new WireWriter();

export function encodeActions(actions: readonly BucketAction[]): Buffer {
  writer.restart();
  for (const action of actions) {
    const start = writer.begin(1);
    writeBucketId(action.entries);
    if (action.assignment === undefined) writer.end(writer.begin(3));
    else writeAssignment(action.assignment);
    writer.end(start);
  }
  return Buffer.from(writer.bytes.subarray(0, writer.length));
}

function writeBucketId(entries: readonly Entry[]): void {
  const id = writer.begin(1);
  for (const { key, value } of entries) {
    const entry = writer.begin(1);
    writer.stringAlways(1, key);
    writer.stringAlways(2, value);
    writer.end(entry);
  }
  writer.end(id);
}

function writeAssignment({ ttlSeconds, strategy }: NonNullable<BucketAction['assignment']>): void {
  const action = writer.begin(2);
  writeDuration(2, ttlSeconds);
  const start = writer.begin(3);
  if (typeof strategy === 'string') writer.uintAlways(1, strategy === 'allow_all' ? 0 : 1);
  else {
    const bucket = writer.begin(3);
    writer.uint(1, strategy.maxTokens);
    const fill = writer.begin(2);
    writer.uint(1, strategy.tokensPerFill);
    writer.end(fill);
    writeDuration(3, strategy.fillSeconds);
    writer.end(bucket);
  }
  writer.end(start);
  writer.end(action);
}

function writeDuration(field: number, seconds: number): void {
  const start = writer.begin(field);
  writer.uint(1, seconds);
  writer.end(start);
}
