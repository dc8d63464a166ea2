// Reads the header blocks of answers (RFC 7541) as far as a load generator has to: was it HTTP status
// 200, and which grpc-status. The dynamic table is kept as the protocol demands.
import { decodeHuffman } from './huffman.ts';

/** What a block said, one bit for each. */
export const facts = { httpOk: 1, httpOther: 2, grpcOk: 4, grpcOther: 8 } as const;

export interface AnswerHeaders {
  /** The facts of a block; throws when it is not HPACK. */
  read(bytes: Buffer, start: number, end: number): number;
  /** The last grpc-status other than 0. */
  readonly otherStatus: string;
}

interface Name {
  /** Empty for a name of the static table that does not matter. */
  readonly text: string;
  readonly length: number;
}

interface Entry {
  readonly name: Name;
  readonly size: number;
  readonly fact: number;
}

const tableLimit = 4096;
const staticEntries = 61;
const isStatusName = (index: number): boolean => index >= 8 && index <= 14;
const statusOkIndex = 8;
/** The prefix of the one kind of literal that enters the table (section 6.2.1). */
const indexingBits = 6;

export function createAnswerHeaders(): AnswerHeaders {
  /** Newest first. */
  const table: Entry[] = [];
  let tableSize = tableLimit;
  let usedSize = 0;
  let otherStatus = '';
  /** By length, the last block that left the table as it was: its bytes mean the same until the
   * table changes. */
  const known: ({ readonly bytes: Buffer; readonly facts: number } | undefined)[] = [];

  let changes = 0;
  const forgetBlocks = (): void => {
    changes++;
    known.length = 0;
  };

  let bytes: Buffer = Buffer.alloc(0);
  let offset = 0;
  let end = 0;

  const readByte = (): number => {
    if (offset >= end) throw new Error('a header block that ends too early');
    return bytes[offset++] as number;
  };
  const readInteger = (first: number, bits: number): number => {
    const limit = (1 << bits) - 1;
    let value = first & limit;
    if (value < limit) return value;
    for (let shift = 0; shift <= 21; shift += 7) {
      const byte = readByte();
      value += (byte & 127) << shift;
      if (byte < 128) return value;
    }
    throw new Error('a header block with a number that is too large');
  };
  const readString = (): string => {
    const first = readByte();
    const length = readInteger(first, 7);
    if (offset + length > end) throw new Error('a header block that ends too early');
    const part = bytes.subarray(offset, offset + length);
    offset += length;
    return first >= 128 ? decodeHuffman(part) : part.toString('latin1');
  };
  const entryAt = (index: number): Entry => {
    const entry = table[index - staticEntries - 1];
    if (entry === undefined) throw new Error('a header block with an index that is not there');
    return entry;
  };
  const readName = (index: number): Name => {
    if (index > staticEntries) return entryAt(index).name;
    if (index > 0) {
      return { text: isStatusName(index) ? ':status' : '', length: staticNameLength(index) };
    }
    const text = readString();
    return { text, length: text.length };
  };
  const evictFor = (size: number): void => {
    while (table.length > 0 && usedSize + size > tableSize) usedSize -= table.pop()?.size ?? 0;
  };
  const factOf = (name: string, value: string): number => {
    if (name === ':status') return value === '200' ? facts.httpOk : facts.httpOther;
    if (name !== 'grpc-status') return 0;
    if (value === '0') return facts.grpcOk;
    otherStatus = value;
    return facts.grpcOther;
  };
  const readLiteral = (first: number, bits: number): number => {
    const name = readName(readInteger(first, bits));
    const value = readString();
    const fact = factOf(name.text, value);
    if (bits === indexingBits) {
      const size = name.length + value.length + 32;
      evictFor(size);
      if (size <= tableSize) {
        table.unshift({ name, size, fact });
        usedSize += size;
      }
      forgetBlocks();
    }
    return fact;
  };
  const readField = (): number => {
    const first = readByte();
    if (first >= 0x80) {
      const index = readInteger(first, 7);
      if (index > staticEntries) return entryAt(index).fact;
      if (index === statusOkIndex) return facts.httpOk;
      return isStatusName(index) ? facts.httpOther : 0;
    }
    if (first >= 0x40) return readLiteral(first, indexingBits);
    if (first < 0x20) return readLiteral(first, 4);
    tableSize = readInteger(first, 5);
    if (tableSize > tableLimit) throw new Error('a table size above what we allow');
    evictFor(0);
    forgetBlocks();
    return 0;
  };

  return {
    get otherStatus() {
      return otherStatus;
    },
    read(source, start, stop) {
      const same = known[stop - start];
      if (same !== undefined && isEqual(same.bytes, source, start)) return same.facts;
      bytes = source;
      offset = start;
      end = stop;
      let found = 0;
      const changesBefore = changes;
      while (offset < end) found |= readField();
      if (changes === changesBefore && (found & facts.grpcOther) === 0) {
        known[stop - start] = { bytes: Buffer.from(source.subarray(start, stop)), facts: found };
      }
      return found;
    },
  };
}

function isEqual(known: Buffer, source: Buffer, start: number): boolean {
  for (let index = 0; index < known.length; index++) {
    if (known[index] !== source[start + index]) return false;
  }
  return true;
}

/** Lengths of the names of the static table (RFC 7541, Appendix A), which the size of an entry needs. */
const staticNameLengths = [
  10, 7, 7, 5, 5, 7, 7, 7, 7, 7, 7, 7, 7, 7, 14, 15, 15, 13, 6, 27, 3, 5, 13, 13, 19, 16, 16, 14,
  16, 13, 12, 6, 4, 4, 6, 7, 4, 4, 8, 17, 13, 8, 19, 13, 4, 8, 12, 18, 19, 5, 7, 7, 11, 6, 10, 25,
  17, 10, 4, 3, 16,
];
const staticNameLength = (index: number): number => staticNameLengths[index - 1] ?? 0;
