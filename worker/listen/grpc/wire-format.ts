// The protobuf wire format: reads it field by field, within bounds, and writes it into one growing buffer. The files of
// messages give the fields their meaning.
import { isUtf8 } from 'node:buffer';
import { escapeInvalidUtf8 } from './escaped-bytes.ts';

/** Wire types; 3 and 4 (groups) are only skipped. */
export const wireTypes = { varint: 0, fixed64: 1, bytes: 2, group: 3, endGroup: 4, fixed32: 5 };

/** Thrown inside a decoder for bytes that are not a message; the decoder returns it as a value. */
export class WireError extends Error {}

const maxFieldNumber = 2 ** 29 - 1;

/** The deepest nesting of groups; deeper ones are refused, as in the reference. */
const maxGroupDepth = 10_000;

/** Recently read strings, by hash. */
const knownStrings: string[] = new Array<string>(1024).fill('');
/** Longer strings are usually values rather than keys. */
const longestKnown = 32;

const noBytes = Buffer.alloc(0);

/** Reused arrays of character codes, one per length. */
const unitsOfLength = Array.from({ length: longestKnown + 1 }, (_, length) =>
  new Array<number>(length).fill(0),
);

/** Decodes ASCII at half the cost of Node's decoder, which is a call out of JavaScript. */
function toShortText(bytes: Buffer, start: number, end: number): string {
  const units = unitsOfLength[end - start] as number[];
  for (let index = start; index < end; index++) units[index - start] = bytes[index] as number;
  return String.fromCharCode.apply(undefined, units);
}

export class WireReader {
  #bytes: Buffer = noBytes;
  /** Where the message begins; positions in problems are relative to it. */
  #start = 0;
  #position = 0;
  #end = 0;
  /** Wire type of the field at which `nextField` stopped. */
  wireType = 0;
  /** The lower and upper 32 bits of the last varint. */
  low = 0;
  high = 0;
  /** The hash of the last string, over its length in bytes and then the bytes. */
  textHash = 0;
  /** Whether invalid bytes in strings are escaped, instead of being refused. */
  escapesInvalidUtf8 = false;

  /** Starts reading bytes[start, end). */
  begin(bytes: Buffer, start: number, end: number): void {
    this.#bytes = bytes;
    this.#start = start;
    this.#position = start;
    this.#end = end;
  }

  /** Moves past the next tag; 0 at the end of the (sub-)message, else the field's number. */
  nextField(): number {
    if (this.#position >= this.#end) return 0;
    const start = this.#position;
    this.readVarint();
    const number = this.low >>> 3;
    if (this.high !== 0 || number === 0 || number > maxFieldNumber) {
      throw new WireError(`invalid field number at byte ${this.#offset(start)}`);
    }
    this.wireType = this.low & 7;
    if (this.wireType === wireTypes.endGroup) {
      throw new WireError(`end of a group that was not begun at byte ${this.#offset(start)}`);
    }
    return number;
  }

  /** Sets `low` and `high`. */
  readVarint(): void {
    const first = this.#bytes[this.#position];
    if (first !== undefined && first < 0x80 && this.#position < this.#end) {
      this.#position += 1;
      this.low = first;
      this.high = 0;
      return;
    }
    this.#readLongVarint();
  }

  #readLongVarint(): void {
    const start = this.#position;
    let low = 0;
    let high = 0;
    for (let index = 0; index < 10; index++) {
      if (this.#position >= this.#end)
        throw new WireError(`truncated number at byte ${this.#offset(start)}`);
      const byte = this.#bytes[this.#position++] ?? 0;
      const bits = byte & 0x7f;
      if (index < 4) low |= bits << (7 * index);
      else if (index === 4) {
        low |= bits << 28;
        high = bits >>> 4;
      } else high |= bits << (7 * index - 32);
      if (byte < 0x80) {
        // The tenth byte has room for one bit only.
        if (index === 9 && byte > 1) break;
        this.low = low >>> 0;
        this.high = high >>> 0;
        return;
      }
    }
    throw new WireError(`number of more than 64 bits at byte ${this.#offset(start)}`);
  }

  /** A uint64; a bigint only above 2^53. */
  readUint64(): number | bigint {
    this.readVarint();
    if (this.high < 0x20_0000) return this.high * 2 ** 32 + this.low;
    return (BigInt(this.high) << 32n) | BigInt(this.low);
  }

  /** A string; invalid UTF-8 is refused or escaped. */
  readString(): string {
    const length = this.#readLength();
    const start = this.#position;
    const end = start + length;
    this.#position = end;
    const bytes = this.#bytes;
    let index = start;
    let hash = length;
    for (; index < end; index++) {
      const byte = bytes[index] as number;
      if (byte >= 0x80) break;
      hash = (hash * 31 + byte) | 0;
    }
    if (index === end) {
      this.textHash = hash;
      return length <= longestKnown
        ? this.#readKnown(start, end, hash)
        : bytes.toString('latin1', start, end);
    }
    for (; index < end; index++) hash = (hash * 31 + (bytes[index] as number)) | 0;
    this.textHash = hash;
    const text = bytes.toString('utf8', start, end);
    // A replacement character may be the sender's own, or result from invalid UTF-8.
    if (text.includes('\ufffd') && !isUtf8(bytes.subarray(start, end))) {
      if (this.escapesInvalidUtf8) return escapeInvalidUtf8(bytes.subarray(start, end));
      throw new WireError('string field contains invalid UTF-8');
    }
    return text;
  }

  /** Domains and keys repeat: returns the cached string, whose hash is known. */
  #readKnown(start: number, end: number, hash: number): string {
    const slot = hash & (knownStrings.length - 1);
    const known = knownStrings[slot] as string;
    const bytes = this.#bytes;
    let index = start;
    if (known.length === end - start) {
      while (index < end && known.charCodeAt(index - start) === bytes[index]) index++;
      if (index === end) return known;
    }
    const text = toShortText(bytes, start, end);
    knownStrings[slot] = text;
    return text;
  }

  /** Enters a sub-message; pass the result to `leave` when `nextField` has returned 0. */
  enter(): number {
    const length = this.#readLength();
    const outerEnd = this.#end;
    this.#end = this.#position + length;
    return outerEnd;
  }

  leave(outerEnd: number): void {
    this.#end = outerEnd;
  }

  /** Skips the value of an unused field. */
  skip(fieldNumber: number): void {
    if (this.wireType !== wireTypes.group) {
      this.#skipValue();
      return;
    }
    const open = [fieldNumber];
    while (open.length > 0) {
      const start = this.#position;
      if (start >= this.#end) throw new WireError(`truncated group at byte ${this.#offset(start)}`);
      this.readVarint();
      const number = this.low >>> 3;
      if (this.high !== 0 || number === 0) {
        throw new WireError(`invalid field number at byte ${this.#offset(start)}`);
      }
      this.wireType = this.low & 7;
      if (this.wireType === wireTypes.group) {
        if (open.length >= maxGroupDepth) throw new WireError('groups are nested too deeply');
        open.push(number);
      } else if (this.wireType !== wireTypes.endGroup) this.#skipValue();
      else if (open.pop() !== number) {
        throw new WireError(`end of a group that was not begun at byte ${this.#offset(start)}`);
      }
    }
  }

  #skipValue(): void {
    switch (this.wireType) {
      case wireTypes.varint:
        this.readVarint();
        return;
      case wireTypes.fixed64:
        this.#advance(8);
        return;
      case wireTypes.bytes:
        this.#advance(this.#readLength());
        return;
      case wireTypes.fixed32:
        this.#advance(4);
        return;
      default:
        throw new WireError(
          `reserved wire type ${this.wireType} before byte ${this.#offset(this.#position)}`,
        );
    }
  }

  #advance(count: number): void {
    if (count > this.#end - this.#position) {
      throw new WireError(`truncated field at byte ${this.#offset(this.#position)}`);
    }
    this.#position += count;
  }

  /** Reads a length, which must not exceed the rest. */
  #readLength(): number {
    const start = this.#position;
    this.readVarint();
    if (this.high !== 0 || this.low > this.#end - this.#position) {
      throw new WireError(`length at byte ${this.#offset(start)} passes the end`);
    }
    return this.low;
  }

  #offset(position: number): number {
    return position - this.#start;
  }
}

const firstBytes = 512;
/** A buffer that has grown beyond this is not reused. */
const retainedBytes = 65_536;

/** Omits fields with their default value, except where a method states otherwise. */
export class WireWriter {
  #bytes = Buffer.allocUnsafeSlow(firstBytes);
  #position = 0;

  /** Discards the written bytes. */
  restart(): void {
    this.#position = 0;
    if (this.#bytes.length > retainedBytes) this.#bytes = Buffer.allocUnsafeSlow(firstBytes);
  }

  /** The buffer, whose first `length` bytes were written; valid until the next write. */
  get bytes(): Uint8Array {
    return this.#bytes;
  }

  get length(): number {
    return this.#position;
  }

  /** An unsigned integer of at most 2^53, or an enum's number. */
  uint(field: number, value: number): void {
    if (value !== 0) this.uintAlways(field, value);
  }

  uintAlways(field: number, value: number): void {
    this.#reserve(20);
    this.#varint((field << 3) | wireTypes.varint);
    this.#varint(value);
  }

  string(field: number, value: string): void {
    if (value !== '') this.stringAlways(field, value);
  }

  stringAlways(field: number, value: string): void {
    const length = Buffer.byteLength(value);
    this.#reserve(length + 15);
    this.#varint((field << 3) | wireTypes.bytes);
    this.#varint(length);
    this.#position += this.#bytes.write(value, this.#position, length, 'utf8');
  }

  double(field: number, value: number): void {
    this.#reserve(13);
    this.#varint((field << 3) | 1);
    this.#position = this.#bytes.writeDoubleLE(value, this.#position);
  }

  /** Begins a sub-message, even an empty one; pass the result to `end`. */
  begin(field: number): number {
    this.#reserve(6);
    this.#varint((field << 3) | wireTypes.bytes);
    // Most sub-messages are short: one byte is reserved for the length, and `end` makes room for more.
    this.#position += 1;
    return this.#position;
  }

  end(start: number): void {
    const length = this.#position - start;
    if (length < 0x80) {
      this.#bytes[start - 1] = length;
      return;
    }
    let extra = 0;
    for (let rest = length >>> 7; rest > 0; rest >>>= 7) extra++;
    this.#reserve(extra);
    this.#bytes.copyWithin(start + extra, start, this.#position);
    this.#position = start - 1;
    this.#varint(length);
    this.#position += length;
  }

  #varint(value: number): void {
    const bytes = this.#bytes;
    let position = this.#position;
    let rest = value;
    // Shifts only work on 32 bits.
    for (; rest > 0xffff_ffff; rest = Math.floor(rest / 0x80)) {
      bytes[position++] = (rest % 0x80) | 0x80;
    }
    for (; rest >= 0x80; rest >>>= 7) bytes[position++] = (rest & 0x7f) | 0x80;
    bytes[position++] = rest;
    this.#position = position;
  }

  #reserve(count: number): void {
    const needed = this.#position + count;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2));
    this.#bytes.copy(larger, 0, 0, this.#position);
    this.#bytes = larger;
  }
}
