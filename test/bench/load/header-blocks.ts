// The header blocks of the requests, written as Envoy's client does: every header but :path enters
// HPACK's dynamic table the first time and is then one byte; trace headers, new in each request, keep
// pushing the others out (RFC 7541).
import { encodeHuffmanString, huffmanCodes } from './huffman.ts';

const methodPath = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
/** The largest table we use, whatever the peer allows. */
const tableLimit = 4096;
const firstDynamicIndex = 62;
const entryOverhead = 32;
/** More entries than ever fit into the table. */
const ringSize = 128;

/** Fixed text, and then so many random bytes as hexadecimal digits. */
interface PatternPart {
  readonly text: Buffer;
  readonly randomBytes: number;
}

interface Header {
  /** A reference to name and value in the static table; then nothing else is needed. */
  readonly staticIndex: number;
  readonly staticName: number;
  readonly isIndexed: boolean;
  readonly codedName: Buffer;
  readonly codedValue: Buffer;
  /** What makes a new value for each request. */
  readonly pattern: readonly PatternPart[] | undefined;
  readonly size: number;
  /** The number of its newest entry in the dynamic table; 0: never entered. */
  entered: number;
}

export interface HeaderBlocks {
  /** Appends one request's block; gives the offset behind it. */
  append(target: Buffer, offset: number): number;
  /** The block, when it is the same for all further requests until the table changes. */
  constantBlock(): Buffer | undefined;
  /** Takes over the peer's SETTINGS_HEADER_TABLE_SIZE. */
  setTableSize(size: number): void;
}

export interface HeaderBlockOptions {
  readonly isTls: boolean;
  readonly timeoutMs: number;
  /** A new traceparent and x-request-id in each request. */
  readonly hasTrace: boolean;
}

/** The largest block there is: all headers as literals. */
export const maxBlockLength = 512;

export function createHeaderBlocks(options: HeaderBlockOptions): HeaderBlocks {
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
    if (index > 0 && header.pattern === undefined) {
      return writeInteger(target, offset, 0x80, 7, index);
    }
    const nameIndex = index > 0 ? index : header.staticName;
    if (header.isIndexed) {
      offset = writeInteger(target, offset, 0x40, 6, nameIndex);
      enter(header);
    } else {
      offset = writeInteger(target, offset, 0x00, 4, nameIndex);
    }
    if (nameIndex === 0) offset += header.codedName.copy(target, offset);
    return header.pattern === undefined
      ? offset + header.codedValue.copy(target, offset)
      : writeRandomValue(target, offset, header.pattern);
  };

  return {
    append(target, start) {
      let offset = start;
      if (isResized) {
        // The lowest size since the last block comes first (section 4.2).
        if (lowestSize < tableSize) offset = writeInteger(target, offset, 0x20, 5, lowestSize);
        offset = writeInteger(target, offset, 0x20, 5, tableSize);
        isResized = false;
      }
      for (const header of headers) offset = appendHeader(header, target, offset);
      return offset;
    },
    constantBlock() {
      if (isResized || options.hasTrace) return undefined;
      if (headers.some((header) => header.isIndexed && indexOf(header) === 0)) return undefined;
      const block = Buffer.alloc(maxBlockLength);
      let length = 0;
      for (const header of headers) length = appendHeader(header, block, length);
      return block.subarray(0, length);
    },
    setTableSize(size) {
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
    codedValue: encodeHuffmanString(value),
    pattern: undefined,
    size: name.length + value.length + entryOverhead,
    entered: 0,
  });
  const inStaticTable = (staticIndex: number): Header => ({
    ...inTable('', ''),
    isIndexed: false,
    staticIndex,
  });
  const varying = (name: string, parts: readonly (readonly [string, number])[]): Header => ({
    ...inTable(name, parts.map(([text, bytes]) => text + '00'.repeat(bytes)).join('')),
    pattern: parts.map(([text, randomBytes]) => ({ text: Buffer.from(text), randomBytes })),
  });
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
          varying('traceparent', [
            ['00-', 16],
            ['-', 8],
            ['-01', 0],
          ]),
          varying('x-request-id', [
            ['', 4],
            ['-', 2],
            ['-4f', 1],
            ['-8b', 1],
            ['-', 6],
          ]),
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

let randomState = (Math.random() * 0xffff_ffff) | 1;

/** Xorshift: its numbers only have to differ from each other. */
function nextRandom(): number {
  randomState ^= randomState << 13;
  randomState ^= randomState >>> 17;
  randomState ^= randomState << 5;
  return randomState;
}

/** Of the characters of headers. */
const codes = Uint16Array.from(
  { length: 128 },
  (_, character) => huffmanCodes[character]?.bits ?? 0,
);
const lengths = Uint8Array.from(
  { length: 128 },
  (_, character) => huffmanCodes[character]?.length ?? 0,
);
/** Two hexadecimal digits in Huffman code, by the byte that they stand for. */
const pairCodes = new Uint16Array(256);
const pairLengths = new Uint8Array(256);
for (let byte = 0; byte < 256; byte++) {
  for (const digit of byte.toString(16).padStart(2, '0')) {
    const character = digit.charCodeAt(0);
    const length = lengths[character] as number;
    pairCodes[byte] = ((pairCodes[byte] as number) << length) | (codes[character] as number);
    pairLengths[byte] = (pairLengths[byte] as number) + length;
  }
}

/** The value in Huffman code, with its length before it. */
function writeRandomValue(target: Buffer, start: number, pattern: readonly PatternPart[]): number {
  let offset = start + 1;
  let bits = 0;
  let held = 0;
  for (const { text, randomBytes } of pattern) {
    for (let index = 0; index < text.length; index++) {
      const character = text[index] as number;
      const length = lengths[character] as number;
      bits = (bits << length) | (codes[character] as number);
      held += length;
      if (held >= 8) {
        held -= 8;
        target[offset++] = bits >>> held;
      }
    }
    let random = 0;
    for (let index = 0; index < randomBytes; index++) {
      random = (index & 3) === 0 ? nextRandom() : random >>> 8;
      const length = pairLengths[random & 255] as number;
      bits = (bits << length) | (pairCodes[random & 255] as number);
      held += length;
      target[offset++] = bits >>> (held - 8);
      held -= 8;
      if (held >= 8) {
        held -= 8;
        target[offset++] = bits >>> held;
      }
    }
  }
  if (held > 0) target[offset++] = (bits << (8 - held)) | (0xff >>> held);
  target[start] = 0x80 | (offset - start - 1);
  return offset;
}
