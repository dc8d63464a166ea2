// Writes the protobuf wire format into one growing buffer. Fields with their default value are omitted, except where a
// method states otherwise.
import { wireTypes } from './wire-reader.ts';

const firstBytes = 512;
/** A buffer that has grown beyond this is not reused. */
const retainedBytes = 65_536;

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
