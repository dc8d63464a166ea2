// Splits the bytes of a connection into frames (RFC 9113), without copying complete ones, and joins header blocks that
// continue in further frames.
import { flags as frameFlags, frameTypes } from '../../support/http2-frames.ts';
import { frameHeaderLength, maxFrameLength } from './frames.ts';

/** Bytes are only valid during the call; `ends`: whether it is the stream's last frame. */
export interface FrameHandler {
  onData(id: number, bytes: Buffer, start: number, end: number, ends: boolean): void;
  onHeaders(id: number, bytes: Buffer, start: number, end: number, ends: boolean): void;
  onReset(id: number, code: number): void;
  /** The peer's settings, not the acknowledgement of ours. */
  onSettings(bytes: Buffer, start: number, end: number): void;
  onPing(payload: Buffer): void;
  onGoAway(code: number): void;
  onWindowUpdate(id: number, increment: number): void;
}

export type FrameReader = ReturnType<typeof createFrameReader>;

interface OpenBlock {
  readonly id: number;
  readonly ends: boolean;
  bytes: Buffer;
}

export function createFrameReader(handler: FrameHandler) {
  let rest: Buffer | undefined;
  let block: OpenBlock | undefined;

  const readHeaders = (bytes: Buffer, start: number, end: number, id: number, flags: number) => {
    const ends = (flags & frameFlags.endStream) !== 0;
    if ((flags & frameFlags.endHeaders) === 0) {
      block = { id, ends, bytes: Buffer.from(bytes.subarray(start, end)) };
    } else {
      handler.onHeaders(id, bytes, start, end, ends);
    }
  };
  const readContinuation = (open: OpenBlock, part: Buffer, flags: number): void => {
    open.bytes = Buffer.concat([open.bytes, part]);
    if (open.bytes.length > maxFrameLength) throw new Error('a header block too large');
    if ((flags & frameFlags.endHeaders) === 0) return;
    block = undefined;
    handler.onHeaders(open.id, open.bytes, 0, open.bytes.length, open.ends);
  };
  const readFrame = (bytes: Buffer, at: number, length: number): void => {
    const type = bytes[at + 3] as number;
    const flags = bytes[at + 4] as number;
    const id = bytes.readUInt32BE(at + 5) & 0x7fff_ffff;
    let start = at + frameHeaderLength;
    let end = start + length;
    if ((block !== undefined) !== (type === frameTypes.continuation))
      throw new Error('an interrupted header block');
    if (type === frameTypes.data || type === frameTypes.headers) {
      if ((flags & frameFlags.padded) !== 0) end -= bytes[start++] as number;
      if (type === frameTypes.headers && (flags & frameFlags.priority) !== 0) start += 5;
      if (end < start) throw new Error('padding longer than the frame');
    }
    switch (type) {
      case frameTypes.data:
        handler.onData(id, bytes, start, end, (flags & frameFlags.endStream) !== 0);
        break;
      case frameTypes.headers:
        readHeaders(bytes, start, end, id, flags);
        break;
      case frameTypes.continuation:
        if (block !== undefined) readContinuation(block, bytes.subarray(start, end), flags);
        break;
      case frameTypes.rstStream:
        handler.onReset(id, bytes.readUInt32BE(start));
        break;
      case frameTypes.settings:
        if ((flags & frameFlags.ack) === 0) handler.onSettings(bytes, start, end);
        break;
      case frameTypes.ping:
        if ((flags & frameFlags.ack) === 0) handler.onPing(bytes.subarray(start, end));
        break;
      case frameTypes.goAway:
        handler.onGoAway(bytes.readUInt32BE(start + 4));
        break;
      case frameTypes.windowUpdate:
        handler.onWindowUpdate(id, bytes.readUInt32BE(start) & 0x7fff_ffff);
        break;
      case frameTypes.pushPromise:
        throw new Error('PUSH_PROMISE, though push is disabled');
    }
  };

  return {
    /** Throws on bytes that are not HTTP/2. The chunk's memory can be reused afterwards. */
    read(chunk: Buffer) {
      const bytes = rest === undefined ? chunk : Buffer.concat([rest, chunk]);
      let offset = 0;
      while (bytes.length - offset >= frameHeaderLength) {
        const length =
          ((bytes[offset] as number) << 16) |
          ((bytes[offset + 1] as number) << 8) |
          (bytes[offset + 2] as number);
        if (length > maxFrameLength) throw new Error(`a frame of ${length} bytes`);
        if (bytes.length - offset - frameHeaderLength < length) break;
        readFrame(bytes, offset, length);
        offset += frameHeaderLength + length;
      }
      rest = offset === bytes.length ? undefined : Buffer.from(bytes.subarray(offset));
    },
  };
}
