// The header blocks of the requests, encoded as by Envoy's client: every header except :path enters HPACK's dynamic
// table the first time and takes one byte afterwards; trace headers, which are new in each request, keep evicting the
// others (RFC 7541).
import { randomBytes, randomUUID } from 'node:crypto';
import { encodeHuffmanString } from './huffman.ts';

const methodPath = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
/** The largest table we use, whatever the peer allows. */
const tableLimit = 4096;
const firstDynamicIndex = 62;
const entryOverhead = 32;
/** More entries than ever fit into the table. */
const ringSize = 128;

/** So many that a value has long been evicted when it is used again. */
const valuesOfTrace = 1024;

interface Header {
  /** A reference to name and value in the static table; if set, nothing else is needed. */
  readonly staticIndex: number;
  readonly staticName: number;
  readonly isIndexed: boolean;
  readonly codedName: Buffer;
  /** If there are several, each request uses the next one. */
  readonly codedValues: readonly Buffer[];
  turn: number;
  readonly size: number;
  /** The number of its newest entry in the dynamic table; 0: never added. */
  entered: number;
}

export type HeaderBlocks = ReturnType<typeof createHeaderBlocks>;

export interface HeaderBlockOptions {
  readonly isTls: boolean;
  readonly timeoutMs: number;
  /** A new traceparent and x-request-id in each request. */
  readonly hasTrace: boolean;
}

/** The largest possible block: all headers as literals. */
export const maxBlockLength = 512;

export function createHeaderBlocks(options: HeaderBlockOptions) {
  const headers = listHeaders(options);
  const sizes = new Int32Array(ringSize);
  let tableSize = tableLimit;
  let usedSize = 0;
  let entered = 0;
  let evicted = 0;
  let lowestSize = tableLimit;
  let isResized = false;

  const evictFor = (size: number): void => {
    while (evicted < entered && usedSize + size > tableSize) {
      evicted++;
      usedSize -= sizes[evicted % ringSize] ?? 0;
    }
  };
  const enter = (header: Header): void => {
    evictFor(header.size);
    if (header.size > tableSize) return;
    entered++;
    sizes[entered % ringSize] = header.size;
    usedSize += header.size;
    header.entered = entered;
  };
  const indexOf = (header: Header): number =>
    header.entered > evicted ? firstDynamicIndex + entered - header.entered : 0;

  const appendHeader = (header: Header, target: Buffer, start: number): number => {
    let offset = start;
    if (header.staticIndex > 0) return writeInteger(target, offset, 0x80, 7, header.staticIndex);
    const index = indexOf(header);
    if (index > 0 && header.codedValues.length === 1)
      return writeInteger(target, offset, 0x80, 7, index);
    const nameIndex = index > 0 ? index : header.staticName;
    if (header.isIndexed) {
      offset = writeInteger(target, offset, 0x40, 6, nameIndex);
      enter(header);
    } else {
      offset = writeInteger(target, offset, 0x00, 4, nameIndex);
    }
    if (nameIndex === 0) offset += header.codedName.copy(target, offset);
    const value = header.codedValues[header.turn++ % header.codedValues.length];
    return offset + (value?.copy(target, offset) ?? 0);
  };

  return {
    /** Appends one request's block; returns the offset after it. */
    append(target: Buffer, start: number) {
      let offset = start;
      if (isResized) {
        // First, the smallest table size since the last block (section 4.2).
        if (lowestSize < tableSize) offset = writeInteger(target, offset, 0x20, 5, lowestSize);
        offset = writeInteger(target, offset, 0x20, 5, tableSize);
        isResized = false;
      }
      for (const header of headers) offset = appendHeader(header, target, offset);
      return offset;
    },
    /** The block, when it is the same for all requests until the table changes. */
    constantBlock() {
      if (isResized || options.hasTrace) return undefined;
      if (headers.some((header) => header.isIndexed && indexOf(header) === 0)) return undefined;
      const block = Buffer.alloc(maxBlockLength);
      let length = 0;
      for (const header of headers) length = appendHeader(header, block, length);
      return block.subarray(0, length);
    },
    /** Applies the peer's SETTINGS_HEADER_TABLE_SIZE. */
    setTableSize(size: number) {
      const wanted = Math.min(size, tableLimit);
      if (wanted === tableSize) return;
      lowestSize = isResized ? Math.min(lowestSize, wanted) : wanted;
      isResized = true;
      tableSize = wanted;
      evictFor(0);
    },
  };
}

/** In Envoy's order. */
function listHeaders({ isTls, timeoutMs, hasTrace }: HeaderBlockOptions): readonly Header[] {
  const inTable = (name: string, value: string, staticName = 0): Header => ({
    staticIndex: 0,
    staticName,
    isIndexed: true,
    codedName: encodeHuffmanString(name),
    codedValues: [encodeHuffmanString(value)],
    turn: 0,
    size: name.length + value.length + entryOverhead,
    entered: 0,
  });
  const inStaticTable = (staticIndex: number): Header => ({
    ...inTable('', ''),
    isIndexed: false,
    staticIndex,
  });
  const varying = (name: string, make: () => string): Header => ({
    ...inTable(name, make()),
    codedValues: Array.from({ length: valuesOfTrace }, () => encodeHuffmanString(make())),
  });
  const hex = (bytes: number) => randomBytes(bytes).toString('hex');
  return [
    inStaticTable(3), // :method POST
    { ...inTable(':path', methodPath, 4), isIndexed: false },
    inTable(':authority', 'ratelimit', 1),
    inStaticTable(isTls ? 7 : 6), // :scheme
    inTable('te', 'trailers'),
    inTable('grpc-timeout', `${timeoutMs}m`),
    inTable('content-type', 'application/grpc', 31),
    inTable('x-envoy-internal', 'true'),
    inTable('x-forwarded-for', '10.0.0.7'),
    ...(hasTrace
      ? [
          varying('traceparent', () => `00-${hex(16)}-${hex(8)}-01`),
          varying('x-request-id', randomUUID),
        ]
      : []),
  ];
}

/** An integer with a prefix of some bits (section 5.1). */
function writeInteger(
  target: Buffer,
  start: number,
  pattern: number,
  bits: number,
  value: number,
): number {
  let offset = start;
  const limit = (1 << bits) - 1;
  if (value < limit) {
    target[offset++] = pattern | value;
    return offset;
  }
  target[offset++] = pattern | limit;
  let rest = value - limit;
  for (; rest >= 128; rest >>>= 7) target[offset++] = (rest & 127) | 128;
  target[offset++] = rest;
  return offset;
}
