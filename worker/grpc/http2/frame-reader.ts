// Reads frames from a connection's bytes: the client's preface, frames in pieces, header blocks in several frames, and
// every rule that a single frame can break (RFC 9113 sections 3.4, 4 and 6). The handler interprets the frames.
import { ConnectionError } from './connection-error.ts';
import {
  clientPreface,
  errorCodes,
  flags,
  frameHeaderBytes,
  frameTypes,
  largestStreamId,
  largestWindowBytes,
  readUint32,
} from './frame.ts';
import {
  maxContinuations,
  maxFrameBytes,
  maxHeaderBlockBytes,
  stalledMs,
  unfinishedMs,
} from './limits.ts';

/** Receives the frames. Bytes are valid until the method returns. All methods may throw ConnectionError. */
export interface FrameHandler {
  /** The data is bytes[start, end) without padding; `flowBytes` counts for the windows. */
  data(
    streamId: number,
    bytes: Buffer,
    start: number,
    end: number,
    flowBytes: number,
    endStream: boolean,
  ): void;
  /** Receives a complete block; `dependsOnItself`: the stream names itself as its parent. */
  headers(
    streamId: number,
    bytes: Buffer,
    start: number,
    end: number,
    endStream: boolean,
    dependsOnItself: boolean,
  ): void;
  priority(streamId: number, fault: 'size' | 'dependsOnItself' | undefined): void;
  rstStream(streamId: number): void;
  settings(entries: readonly (readonly [id: number, value: number])[]): void;
  ping(bytes: Buffer, start: number, isAck: boolean): void;
  windowUpdate(streamId: number, increment: number): void;
  /** Receives the acknowledgement of our SETTINGS, GOAWAY, or an unknown type. */
  other(): void;
}

interface UnfinishedBlock {
  readonly streamId: number;
  readonly endStream: boolean;
  readonly dependsOnItself: boolean;
  readonly fragments: Buffer[];
  bytes: number;
}

export class FrameReader {
  readonly #handler: FrameHandler;
  #expects: 'preface' | 'settings' | 'frames' = 'preface';
  /** Bytes of an incomplete frame or preface. */
  #rest: Buffer | undefined;
  /** When the first bytes of that frame arrived. */
  #restSinceMs: number | undefined;
  #block: UnfinishedBlock | undefined;
  /** Since when the preface with its SETTINGS, or the rest of a header block, is awaited. */
  #awaitedSinceMs: number;
  #isStopped = false;
  /** Arrival time of the bytes that are being read. */
  #readMs = 0;

  constructor(handler: FrameHandler, nowMs: number) {
    this.#handler = handler;
    this.#awaitedSinceMs = nowMs;
  }

  /** Whether the peer has exceeded the time limit of something that it began. */
  isOverdue(nowMs: number): boolean {
    const isAwaiting = this.#expects !== 'frames' || this.#block !== undefined;
    if (isAwaiting && nowMs - this.#awaitedSinceMs >= unfinishedMs) return true;
    return this.#restSinceMs !== undefined && nowMs - this.#restSinceMs >= stalledMs;
  }

  /** Call it while reading is paused: the peer may have sent the rest, which was not read. */
  excuse(nowMs: number): void {
    this.#awaitedSinceMs = nowMs;
    if (this.#restSinceMs !== undefined) this.#restSinceMs = nowMs;
  }

  /** The incomplete bytes that are stored, and since when; undefined without any. */
  get unfinished(): { readonly bytes: number; readonly sinceMs: number } | undefined {
    const bytes = (this.#rest?.length ?? 0) + (this.#block?.bytes ?? 0);
    if (bytes === 0) return undefined;
    const blockMs = this.#block === undefined ? undefined : this.#awaitedSinceMs;
    return { bytes, sinceMs: blockMs ?? this.#restSinceMs ?? this.#awaitedSinceMs };
  }

  get isGreeted(): boolean {
    return this.#expects === 'frames';
  }

  /** Throws ConnectionError. Unused bytes are copied and stored. */
  read(chunk: Buffer, nowMs: number): void {
    this.#readMs = nowMs;
    let bytes = chunk;
    let position = 0;
    if (this.#rest !== undefined) {
      bytes = Buffer.concat([this.#rest, chunk]);
      this.#rest = undefined;
    }
    if (this.#expects === 'preface') {
      const length = Math.min(bytes.length, clientPreface.length);
      if (clientPreface.compare(bytes, 0, length, 0, length) !== 0) {
        throw new ConnectionError(errorCodes.protocolError, 'not the preface of an HTTP/2 client');
      }
      if (length < clientPreface.length) {
        this.#rest = Buffer.from(bytes);
        return;
      }
      this.#expects = 'settings';
      position = length;
    }
    const end = bytes.length;
    while (end - position >= frameHeaderBytes) {
      const length =
        ((bytes[position] as number) << 16) |
        ((bytes[position + 1] as number) << 8) |
        (bytes[position + 2] as number);
      if (length > maxFrameBytes) throw wrongSize(`a frame of ${length} bytes`);
      const payload = position + frameHeaderBytes;
      if (end - payload < length) break;
      this.#frame(
        bytes,
        payload,
        length,
        bytes[position + 3] as number,
        bytes[position + 4] as number,
        readUint32(bytes, position + 5) & largestStreamId,
      );
      if (this.#isStopped) return;
      position = payload + length;
    }
    if (position === end) {
      this.#restSinceMs = undefined;
      return;
    }
    // A copy, so that the rest of the chunk is freed.
    this.#rest = Buffer.from(bytes.subarray(position));
    if (position > 0) this.#restSinceMs = undefined;
    this.#restSinceMs ??= nowMs;
  }

  /** Stops reading. */
  stop(): void {
    this.#isStopped = true;
    this.#rest = undefined;
    this.#block = undefined;
  }

  #frame(
    bytes: Buffer,
    start: number,
    length: number,
    type: number,
    frameFlags: number,
    streamId: number,
  ): void {
    if (this.#expects === 'settings') {
      if (type !== frameTypes.settings || (frameFlags & flags.ack) !== 0) {
        throw broken('the first frame is not SETTINGS');
      }
      this.#expects = 'frames';
    }
    if (this.#block !== undefined) {
      if (type !== frameTypes.continuation || streamId !== this.#block.streamId) {
        throw broken('a frame within a header block');
      }
      this.#continuation(this.#block, bytes, start, length, frameFlags);
      return;
    }
    switch (type) {
      case frameTypes.data:
        this.#data(bytes, start, length, frameFlags, streamId);
        return;
      case frameTypes.headers:
        this.#headers(bytes, start, length, frameFlags, streamId);
        return;
      case frameTypes.windowUpdate:
        if (length !== 4) throw wrongSize('WINDOW_UPDATE');
        this.#handler.windowUpdate(streamId, readUint32(bytes, start) & largestWindowBytes);
        return;
      case frameTypes.rstStream:
        if (length !== 4) throw wrongSize('RST_STREAM');
        this.#handler.rstStream(streamId);
        return;
      case frameTypes.ping:
        if (streamId !== 0) throw broken('PING on a stream');
        if (length !== 8) throw wrongSize('PING');
        this.#handler.ping(bytes, start, (frameFlags & flags.ack) !== 0);
        return;
      case frameTypes.settings:
        this.#settings(bytes, start, length, frameFlags, streamId);
        return;
      case frameTypes.priority:
        this.#priority(bytes, start, length, streamId);
        return;
      case frameTypes.goaway:
        if (streamId !== 0) throw broken('GOAWAY on a stream');
        if (length < 8) throw wrongSize('GOAWAY');
        // The peer is leaving: it closes the connection when its calls are answered.
        this.#handler.other();
        return;
      case frameTypes.pushPromise:
        throw broken('PUSH_PROMISE from a client');
      case frameTypes.continuation:
        throw broken('CONTINUATION without HEADERS');
      default:
        // Extensions are ignored (section 5.5).
        this.#handler.other();
    }
  }

  #data(bytes: Buffer, start: number, length: number, frameFlags: number, streamId: number): void {
    if (streamId === 0) throw broken('DATA on stream 0');
    const isPadded = (frameFlags & flags.padded) !== 0;
    const padding = isPadded ? readPadding(bytes, start, length) : 0;
    this.#handler.data(
      streamId,
      bytes,
      isPadded ? start + 1 : start,
      start + length - padding,
      length,
      (frameFlags & flags.endStream) !== 0,
    );
  }

  #headers(
    bytes: Buffer,
    start: number,
    length: number,
    frameFlags: number,
    streamId: number,
  ): void {
    if ((streamId & 1) === 0) throw broken(`HEADERS on stream ${streamId}`);
    let from = start;
    let to = start + length;
    if ((frameFlags & flags.padded) !== 0) {
      to -= readPadding(bytes, start, length);
      from++;
    }
    let dependsOnItself = false;
    if ((frameFlags & flags.priority) !== 0) {
      if (to - from < 5) throw wrongSize('short HEADERS');
      dependsOnItself = (readUint32(bytes, from) & largestStreamId) === streamId;
      from += 5;
    }
    const endStream = (frameFlags & flags.endStream) !== 0;
    if ((frameFlags & flags.endHeaders) !== 0) {
      this.#handler.headers(streamId, bytes, from, to, endStream, dependsOnItself);
      return;
    }
    const fragments = [Buffer.from(bytes.subarray(from, to))];
    this.#awaitedSinceMs = this.#readMs;
    this.#block = { streamId, endStream, dependsOnItself, fragments, bytes: to - from };
  }

  #continuation(
    block: UnfinishedBlock,
    bytes: Buffer,
    start: number,
    length: number,
    frameFlags: number,
  ): void {
    block.bytes += length;
    block.fragments.push(Buffer.from(bytes.subarray(start, start + length)));
    if (block.bytes > maxHeaderBlockBytes || block.fragments.length > maxContinuations) {
      throw new ConnectionError(errorCodes.enhanceYourCalm, 'a header block without end');
    }
    if ((frameFlags & flags.endHeaders) === 0) return;
    this.#block = undefined;
    const headerBlock = Buffer.concat(block.fragments);
    const { streamId, endStream, dependsOnItself } = block;
    this.#handler.headers(streamId, headerBlock, 0, headerBlock.length, endStream, dependsOnItself);
  }

  #settings(
    bytes: Buffer,
    start: number,
    length: number,
    frameFlags: number,
    streamId: number,
  ): void {
    if (streamId !== 0) throw broken('SETTINGS on a stream');
    const isAck = (frameFlags & flags.ack) !== 0;
    if (isAck ? length !== 0 : length % 6 !== 0) throw wrongSize('SETTINGS');
    if (isAck) {
      this.#handler.other();
      return;
    }
    const entries: [number, number][] = [];
    for (let position = start; position < start + length; position += 6) {
      const id = ((bytes[position] as number) << 8) | (bytes[position + 1] as number);
      entries.push([id, readUint32(bytes, position + 2)]);
    }
    this.#handler.settings(entries);
  }

  #priority(bytes: Buffer, start: number, length: number, streamId: number): void {
    if (streamId === 0) throw broken('PRIORITY on stream 0');
    const dependsOnItself =
      length === 5 && (readUint32(bytes, start) & largestStreamId) === streamId;
    this.#handler.priority(
      streamId,
      length !== 5 ? 'size' : dependsOnItself ? 'dependsOnItself' : undefined,
    );
  }
}

function broken(text: string): ConnectionError {
  return new ConnectionError(errorCodes.protocolError, text);
}

function wrongSize(text: string): ConnectionError {
  return new ConnectionError(errorCodes.frameSizeError, text);
}

/** The number of padding bytes at the end; the length's own byte comes first (section 6.1). */
function readPadding(bytes: Buffer, start: number, length: number): number {
  if (length === 0) throw wrongSize('no room for padding');
  const padding = bytes[start] as number;
  if (padding >= length) throw broken('too much padding');
  return padding;
}
