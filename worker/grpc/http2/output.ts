// Outgoing frames: one growing buffer per connection, which the transport takes once per tick.
import {
  defaultMaxFrameBytes,
  flags,
  frameHeaderBytes,
  frameTypes,
  settingIds,
  writeFrameHeader,
  writeUint32,
} from './frame.ts';

const firstBytes = 4096;
/** A buffer that has grown beyond this is not reused. */
const retainedBytes = 65_536;
const longestShort = 96;

/** A dynamic table size update to 0 (RFC 7541 section 6.3). */
const noTable = Uint8Array.of(0x20);

export class Output {
  #tableSize: 'as at first' | 'owed' | 'announced' = 'as at first';
  #bytes = Buffer.allocUnsafeSlow(firstBytes);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** The bytes to send; they share memory with the buffer, so `reuse` or `replace` must follow. */
  drain(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Call it when the bytes have been sent: their memory is reused. */
  reuse(): void {
    this.#length = 0;
    if (this.#bytes.length > retainedBytes) this.#bytes = Buffer.allocUnsafeSlow(firstBytes);
  }

  /** Call it when the bytes are still queued: a new buffer is used instead. */
  replace(): void {
    this.#length = 0;
    this.#bytes = Buffer.allocUnsafeSlow(Math.min(this.#bytes.length, retainedBytes));
  }

  /**
   * Call it when the peer has reduced its header table below the initial size: the next block must begin with a size
   * update (RFC 7541 section 4.2), here to size 0.
   */
  oweTableSize(): void {
    // A table of size 0 cannot become smaller.
    if (this.#tableSize === 'as at first') this.#tableSize = 'owed';
  }

  /** Appends a header block, in frames of the size that every peer must accept. */
  headers(streamId: number, fields: Uint8Array, endStream: boolean): void {
    const block = this.#tableSize === 'owed' ? this.#withTableSize(fields) : fields;
    let type: number = frameTypes.headers;
    let start = 0;
    do {
      const length = Math.min(block.length - start, defaultMaxFrameBytes);
      const isLast = start + length === block.length;
      const streamFlag = endStream && start === 0 ? flags.endStream : 0;
      const frameFlags = streamFlag | (isLast ? flags.endHeaders : 0);
      this.#frame(type, frameFlags, streamId, block, start, start + length);
      start += length;
      type = frameTypes.continuation;
    } while (start < block.length);
  }

  /** Appends a DATA frame with at most `defaultMaxFrameBytes` of payload. */
  data(
    streamId: number,
    payload: Uint8Array,
    start: number,
    end: number,
    endStream: boolean,
  ): void {
    this.#frame(frameTypes.data, endStream ? flags.endStream : 0, streamId, payload, start, end);
  }

  /**
   * Appends a complete answer: prepared headers, one DATA frame with the 5 bytes of gRPC's prefix and the first
   * `length` bytes of the message, and prepared trailers.
   */
  answer(
    streamId: number,
    headerFields: Uint8Array,
    message: Uint8Array,
    length: number,
    trailerBlock: Uint8Array,
  ): void {
    const headerBlock =
      this.#tableSize === 'owed' ? this.#withTableSize(headerFields) : headerFields;
    const total = 3 * frameHeaderBytes + headerBlock.length + 5 + length + trailerBlock.length;
    let position = this.#reserve(total);
    const bytes = this.#bytes;
    position = writeFrameHeader(
      bytes,
      position,
      headerBlock.length,
      frameTypes.headers,
      flags.endHeaders,
      streamId,
    );
    position = copyShort(headerBlock, headerBlock.length, bytes, position);
    position = writeFrameHeader(bytes, position, length + 5, frameTypes.data, 0, streamId);
    bytes[position] = 0;
    position = writeUint32(bytes, position + 1, length);
    position = copyShort(message, length, bytes, position);
    position = writeFrameHeader(
      bytes,
      position,
      trailerBlock.length,
      frameTypes.headers,
      flags.endHeaders | flags.endStream,
      streamId,
    );
    copyShort(trailerBlock, trailerBlock.length, bytes, position);
  }

  rstStream(streamId: number, code: number): void {
    const position = this.#reserve(frameHeaderBytes + 4);
    const next = writeFrameHeader(this.#bytes, position, 4, frameTypes.rstStream, 0, streamId);
    writeUint32(this.#bytes, next, code);
  }

  windowUpdate(streamId: number, increment: number): void {
    const position = this.#reserve(frameHeaderBytes + 4);
    const next = writeFrameHeader(this.#bytes, position, 4, frameTypes.windowUpdate, 0, streamId);
    writeUint32(this.#bytes, next, increment);
  }

  settings(values: Readonly<Partial<Record<keyof typeof settingIds, number>>>): void {
    const entries = Object.entries(values) as [keyof typeof settingIds, number][];
    const start = this.#reserve(frameHeaderBytes + 6 * entries.length);
    let position = writeFrameHeader(
      this.#bytes,
      start,
      6 * entries.length,
      frameTypes.settings,
      0,
      0,
    );
    for (const [name, value] of entries) {
      this.#bytes[position] = 0;
      this.#bytes[position + 1] = settingIds[name];
      position = writeUint32(this.#bytes, position + 2, value);
    }
  }

  settingsAck(): void {
    const position = this.#reserve(frameHeaderBytes);
    writeFrameHeader(this.#bytes, position, 0, frameTypes.settings, flags.ack, 0);
  }

  /** The content is `payload[start, start + 8)`. */
  ping(payload: Uint8Array, start: number, isAck: boolean): void {
    this.#frame(frameTypes.ping, isAck ? flags.ack : 0, 0, payload, start, start + 8);
  }

  goaway(lastStreamId: number, code: number, text: string): void {
    const debug = Buffer.from(text);
    const position = this.#reserve(frameHeaderBytes + 8 + debug.length);
    let next = writeFrameHeader(this.#bytes, position, 8 + debug.length, frameTypes.goaway, 0, 0);
    next = writeUint32(this.#bytes, next, lastStreamId);
    next = writeUint32(this.#bytes, next, code);
    this.#bytes.set(debug, next);
  }

  #withTableSize(fields: Uint8Array): Uint8Array {
    this.#tableSize = 'announced';
    return Buffer.concat([noTable, fields]);
  }

  #frame(
    type: number,
    frameFlags: number,
    streamId: number,
    payload: Uint8Array,
    start: number,
    end: number,
  ): void {
    const position = this.#reserve(frameHeaderBytes + end - start);
    const next = writeFrameHeader(this.#bytes, position, end - start, type, frameFlags, streamId);
    this.#bytes.set(
      start === 0 && end === payload.length ? payload : payload.subarray(start, end),
      next,
    );
  }

  /** Makes room for `count` bytes; returns the position to write at. */
  #reserve(count: number): number {
    const position = this.#length;
    const needed = position + count;
    if (needed > this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2));
      this.#bytes.copy(larger, 0, 0, position);
      this.#bytes = larger;
    }
    this.#length = needed;
    return position;
  }
}

/**
 * Copies the first `length` bytes; returns the position after them. A loop, since a call of `set` costs more for so few
 * bytes.
 */
function copyShort(from: Uint8Array, length: number, to: Uint8Array, position: number): number {
  if (length > longestShort) {
    to.set(length === from.length ? from : from.subarray(0, length), position);
  } else {
    for (let index = 0; index < length; index++) to[position + index] = from[index] as number;
  }
  return position + length;
}
