// Decodes header blocks (HPACK, RFC 7541) for one direction of one connection.
//
// - Strict: all errors of the RFC are detected, and integers of more than 28 bits beyond their prefix are
//   refused, far more than any header list needs.
// - A table entry is always the same object, so readers can compare fields by identity. So is a
//   pseudo-header sent literally with the same value as before: Envoy sends `:path` like that with every
//   request, so its blocks never consist of indexed fields only.
// - Bounds: the dynamic table holds `tableBytes`, or the protocol's 4096 until the peer accepts another
//   size; evicted entries are freed at once; strings have at most 8/5 of the block's octets. A list beyond
//   `maxListBytes` is decoded to its end, to keep the table right, but further fields are dropped: a
//   reference to a large entry costs an octet and no memory.
//
// The session assembles blocks from frames, bounds their length, and interprets fields.
import { DynamicTable } from './dynamic-table.ts';
import type { HeaderField } from './header-field.ts';
import { decodeHuffman, hasBlankEnds, isControl, measureHuffmanValue } from './huffman-decoder.ts';
import { createEntry, createUnreadEntry, staticTable, type TableEntry } from './static-table.ts';

/** Thrown when the block is not HPACK: a connection error of type COMPRESSION_ERROR (RFC 9113, section 4.3). */
export class HpackError extends Error {}

export interface HpackDecoder {
  /**
   * Appends the fields of the complete block in bytes[start, end). Throws `HpackError`, after which the
   * decoder is unusable.
   */
  decode(bytes: Buffer, start: number, end: number, fields: HeaderField[]): void;
  /** Size of the last block, computed like `maxListBytes`. */
  readonly listBytes: number;
  /** Whether fields of the last block were dropped because its list exceeded `maxListBytes`. */
  readonly oversized: boolean;
  /** Whether the last block had only indexed fields, and so left the table unchanged. */
  readonly onlyIndexed: boolean;
  /**
   * Changes with the table. A block that did not change the table has the same meaning while this number is the same.
   */
  readonly generation: number;
}

export interface HpackDecoderOptions {
  /** The SETTINGS_HEADER_TABLE_SIZE that we send. */
  readonly tableBytes: number;
  /** Computed like SETTINGS_MAX_HEADER_LIST_SIZE: name, value and 32 for each field. */
  readonly maxListBytes: number;
  /**
   * Whether values under this name are read. Other fields are returned as `unreadField`, unless their value is invalid.
   * When undefined, all are read.
   */
  readonly isRead?: ((name: string) => boolean) | undefined;
}

/** Represents each unread field. */
export const unreadField: HeaderField = createEntry('unread', '');

export function createHpackDecoder(options: HpackDecoderOptions): HpackDecoder {
  return new Decoder(options);
}

/** Size of the dynamic table until the peer changes it (RFC 9113, section 6.5.2). */
const initialTableBytes = 4096;

/** The first octet is at least the constant, and less than the previous constant (section 6). */
const representations = { indexed: 0x80, indexing: 0x40, tableUpdate: 0x20 };

/** From this index of the name on, a literal without indexing needs a second octet. */
const firstLongNameIndex = 0x0f;

/** How many octets may follow an integer's prefix, seven bits each. */
const maxIntegerOctets = 4;

/** A smaller and a final size: no encoder needs more (section 4.2). */
const maxTableUpdates = 2;

/** The longest literal that is cached for reuse, in octets: paths are far shorter. */
const maxRememberedOctets = 256;

/** A literal value as sent, with its length, and the field made of it. */
interface RememberedLiteral {
  readonly octets: Uint8Array;
  readonly entry: TableEntry;
}

const noBytes = Buffer.alloc(0);

class Decoder implements HpackDecoder {
  listBytes = 0;
  oversized = false;
  onlyIndexed = true;
  readonly #tableBytes: number;
  readonly #maxListBytes: number;
  readonly #isRead: ((name: string) => boolean) | undefined;
  readonly #table: DynamicTable;
  /** The literals of pseudo-headers, by the index of the name, which is always below 15. */
  readonly #remembered: (RememberedLiteral | undefined)[] = new Array(firstLongNameIndex);
  /** The block that is being read; its rest starts at `#position`. */
  #bytes: Buffer = noBytes;
  #position = 0;
  #end = 0;

  constructor({ tableBytes, maxListBytes, isRead }: HpackDecoderOptions) {
    this.#isRead = isRead;
    this.#tableBytes = tableBytes;
    this.#maxListBytes = maxListBytes;
    this.#table = new DynamicTable({ maxSize: initialTableBytes, highestMaxSize: tableBytes });
  }

  get generation(): number {
    return this.#table.generation;
  }

  decode(bytes: Buffer, start: number, end: number, fields: HeaderField[]): void {
    this.#bytes = bytes;
    this.#position = start;
    this.#end = end;
    let onlyIndexed = !this.#resizeTable();
    let listBytes = 0;
    let position = this.#position;
    while (position < end) {
      const first = bytes[position] ?? 0;
      let entry: TableEntry;
      if (first > representations.indexed && first < 0xff) {
        entry = this.#entryAt(first & 0x7f);
        position += 1;
      } else {
        onlyIndexed &&= first >= representations.indexed;
        this.#position = position;
        entry = this.#readField(first);
        position = this.#position;
      }
      listBytes += entry.size;
      if (listBytes <= this.#maxListBytes) fields.push(entry.isUnread ? unreadField : entry);
    }
    this.onlyIndexed = onlyIndexed;
    this.listBytes = listBytes;
    this.oversized = listBytes > this.#maxListBytes;
    // The bytes belong to the socket's buffer, which the connection must not retain.
    this.#bytes = noBytes;
  }

  /** Reads the table size updates with which a block may begin; false without any. */
  #resizeTable(): boolean {
    let updates = 0;
    while (this.#position < this.#end && isTableUpdate(this.#bytes[this.#position] ?? 0)) {
      updates += 1;
      if (updates > maxTableUpdates) throw new HpackError('more than two table size updates');
      const size = this.#readInteger(0x1f);
      if (size > this.#tableBytes) {
        throw new HpackError(`table size update to ${size}, above ${this.#tableBytes}`);
      }
      this.#table.resize(size);
    }
    return updates > 0;
  }

  #readField(first: number): TableEntry {
    if (first >= representations.indexed) return this.#entryAt(this.#readInteger(0x7f));
    if (first >= representations.indexing) {
      const entry = this.#readEntry(0x3f);
      this.#table.add(entry);
      return entry;
    }
    if (isTableUpdate(first)) throw new HpackError('table size update after a field');
    if (first > 0 && first < firstLongNameIndex) return this.#readRepeatable(first);
    return this.#readEntry(0x0f);
  }

  /** Reads a literal without indexing whose name has a short index. */
  #readRepeatable(nameIndex: number): TableEntry {
    const start = this.#position + 1;
    const before = this.#remembered[nameIndex];
    if (before !== undefined && this.#holds(before.octets, start)) {
      this.#position = start + before.octets.length;
      return before.entry;
    }
    const entry = this.#readEntry(0x0f);
    if (this.#position - start <= maxRememberedOctets) {
      const octets = new Uint8Array(this.#bytes.subarray(start, this.#position));
      this.#remembered[nameIndex] = { octets, entry };
    }
    return entry;
  }

  #holds(octets: Uint8Array, start: number): boolean {
    const length = octets.length;
    if (length > this.#end - start) return false;
    const bytes = this.#bytes;
    for (let index = 0; index < length; index++) {
      if (bytes[start + index] !== octets[index]) return false;
    }
    return true;
  }

  #readEntry(nameMask: number): TableEntry {
    const nameIndex = this.#readInteger(nameMask);
    const before = nameIndex === 0 ? undefined : this.#entryAt(nameIndex);
    const name = before === undefined ? this.#readString() : before.name;
    if (this.#isRead !== undefined && (before?.isUnread || !this.#isRead(name))) {
      const length = this.#skipValue();
      if (length !== undefined) return createUnreadEntry(name, length);
    }
    return createEntry(name, this.#readString());
  }

  /** Skips a valid value and returns its length; undefined, without skipping, if the value must be read. */
  #skipValue(): number | undefined {
    const first = this.#position;
    const isHuffman = (this.#bytes[first] ?? 0) >= 0x80;
    const octets = this.#readInteger(0x7f);
    const end = this.#position + octets;
    let length: number | undefined;
    if (end <= this.#end) {
      length = isHuffman
        ? measureHuffmanValue(this.#bytes, this.#position, end)
        : measureValue(this.#bytes, this.#position, end);
    }
    this.#position = length === undefined ? first : end;
    return length;
  }

  #entryAt(index: number): TableEntry {
    const entry =
      index <= staticTable.length
        ? staticTable[index - 1]
        : this.#table.get(index - staticTable.length - 1);
    if (entry === undefined) throw new HpackError(`no table entry of index ${index}`);
    return entry;
  }

  #readString(): string {
    const isHuffman = (this.#bytes[this.#position] ?? 0) >= 0x80;
    const length = this.#readInteger(0x7f);
    const start = this.#position;
    if (length > this.#end - start) throw new HpackError('string passes the end of the block');
    const end = start + length;
    this.#position = end;
    if (!isHuffman) return this.#bytes.toString('latin1', start, end);
    const text = decodeHuffman(this.#bytes, start, end);
    if (text === undefined) throw new HpackError('string is no Huffman code, or is padded wrongly');
    return text;
  }

  /** Reads an integer (section 5.1); `mask` is that of the prefix. */
  #readInteger(mask: number): number {
    if (this.#position >= this.#end) throw new HpackError('block ends within a field');
    const prefix = (this.#bytes[this.#position++] ?? 0) & mask;
    return prefix < mask ? prefix : this.#readLongInteger(mask);
  }

  #readLongInteger(mask: number): number {
    let value = mask;
    for (let count = 0; count < maxIntegerOctets; count++) {
      if (this.#position >= this.#end) throw new HpackError('block ends within an integer');
      const octet = this.#bytes[this.#position++] ?? 0;
      value += (octet & 0x7f) << (7 * count);
      if (octet < 0x80) return value;
    }
    throw new HpackError('integer is too long');
  }
}

/** The equivalent of `measureHuffmanValue` for plain octets. */
function measureValue(bytes: Buffer, start: number, end: number): number | undefined {
  for (let position = start; position < end; position++) {
    if (isControl(bytes[position] ?? 0)) return undefined;
  }
  return hasBlankEnds(bytes, start, end) ? undefined : end - start;
}

function isTableUpdate(first: number): boolean {
  return first >= representations.tableUpdate && first < representations.indexing;
}
