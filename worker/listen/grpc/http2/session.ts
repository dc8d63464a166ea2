// One HTTP/2 connection, without its socket and without timers: bytes in, calls to methods and bytes
// out (RFC 9113, the server's side, for gRPC). Strict: what breaks the protocol ends the stream or the
// connection with the error that the RFC names. Bounded: limits.ts says by what.
import type { Clock } from '../../../../shared/clock.ts';
import { type GrpcMethod, type GrpcMethods, grpcStatus, unknownMethodText } from '../method.ts';
import { messageHeaders, okTrailers, toHttpHeaders } from './answer-blocks.ts';
import {
  clientPreface,
  defaultMaxFrameBytes,
  defaultWindowBytes,
  type ErrorCode,
  errorCodes,
  flags,
  frameHeaderBytes,
  frameTypes,
  largestMaxFrameBytes,
  largestStreamId,
  largestWindowBytes,
  readUint32,
  settingIds,
} from './frame.ts';
import { createHpackDecoder, HpackError } from './hpack/decoder.ts';
import type { HeaderField } from './hpack/header-field.ts';
import * as limits from './limits.ts';
import { prefixBytes } from './message-input.ts';
import { Output } from './output.ts';
import {
  checkTrailers,
  MalformedRequest,
  oversizedHead,
  type Refusal,
  type RequestHead,
  readRequestHead,
} from './request-head.ts';
import type { SendQueue } from './send-queue.ts';
import { Stream, type StreamHost } from './stream.ts';
import { StreamTable } from './stream-table.ts';
import { createTokenBucket } from './token-bucket.ts';

export interface SessionDeps {
  readonly methods: GrpcMethods;
  readonly clock: Clock;
  /** For callers that methods ask about. */
  readonly peer: () => string;
  /** There is output, for the first time since it was last taken. */
  readonly onOutput: () => void;
  /** Nothing more will come: what is in the output is the last to be sent. */
  readonly onEnd: () => void;
}

/** Ends the connection with GOAWAY. */
class ConnectionError extends Error {
  readonly code: ErrorCode;
  constructor(code: ErrorCode, text: string) {
    super(text);
    this.code = code;
  }
}

interface UnfinishedBlock {
  readonly streamId: number;
  readonly endStream: boolean;
  readonly fragments: Buffer[];
  bytes: number;
  sinceMs: number;
}

/** How many stream numbers that were passed over, or that we have reset, are remembered. */
const maxRemembered = 256;
/** After the first GOAWAY of a drain, the second comes with the answer to our PING, or after this. */
const drainRoundTripMs = 1000;
const drainPing = Buffer.from('ratelane');
const keepAlivePing = Buffer.from('stillup?');

export class Session implements StreamHost {
  readonly output = new Output();
  readonly #methods: GrpcMethods;
  readonly #clock: Clock;
  readonly #deps: SessionDeps;
  readonly #decoder = createHpackDecoder({
    tableBytes: limits.headerTableBytes,
    maxListBytes: limits.maxHeaderListBytes,
  });

  readonly #streams = new StreamTable();
  #highestStreamId = 0;
  #readMs = 0;
  /** In this read, streams above this were opened. */
  #highestBeforeRead = 0;
  /** Reset or dropped calls that their methods have not answered yet. */
  #abandoned = 0;
  /** Streams that we reset while the peer was still sending: what was under way is ignored. */
  readonly #resetByUs = new Set<number>();
  /** Stream numbers that were passed over, and so closed without having been opened. */
  readonly #passedOver: { readonly from: number; readonly to: number }[] = [];

  #state: 'preface' | 'settings' | 'open' | 'draining' | 'ended' = 'preface';
  readonly #startMs: number;
  /** Bytes of a frame, or of the preface, whose rest has not come. */
  #rest: Buffer | undefined;
  /** When the frame of which `#rest` is a part began. */
  #restSinceMs: number | undefined;
  #block: UnfinishedBlock | undefined;
  #isReading = false;
  #outputTold = false;

  /** The last block that left the decoder's table as it was, and what it means. */
  #lastBlock = Buffer.alloc(0);
  #lastHead: RequestHead | undefined;
  #lastMethod: GrpcMethod | undefined;
  #lastGeneration = -1;

  #receiveWindow = limits.connectionWindowBytes;
  #sendWindow = defaultWindowBytes;
  #initialSendWindow = defaultWindowBytes;
  #heldBytes = 0;
  #decompressing = 0;
  readonly #waitingToDecompress: ((done: () => void) => void)[] = [];
  /** Streams with output that waits for a window. */
  readonly #blocked = new Set<Stream>();
  #blockedBytes = 0;
  /** There was more to send than is put into the output at once. */
  #isHeldUp = false;
  /** Since when nothing of what is blocked could be sent. */
  #blockedSinceMs: number | undefined;

  #drainPingMs: number | undefined;
  #heard = true;
  #heardMs: number;
  #keepAliveSentMs: number | undefined;

  readonly #overhead = createTokenBucket(limits.overheadBurst, limits.overheadPerSecond);
  readonly #rapidResets = createTokenBucket(limits.rapidResetBurst, limits.rapidResetsPerSecond);
  readonly #faults = createTokenBucket(limits.faultBurst, limits.faultsPerSecond);

  constructor(deps: SessionDeps) {
    this.#deps = deps;
    this.#methods = deps.methods;
    this.#clock = deps.clock;
    this.#startMs = deps.clock.monotonicMs();
    this.#heardMs = this.#startMs;
    this.output.settings({
      maxConcurrentStreams: limits.maxConcurrentStreams,
      maxHeaderListSize: limits.maxHeaderListBytes,
    });
    this.output.windowUpdate(0, limits.connectionWindowBytes - defaultWindowBytes);
  }

  /** No input is wanted any more. */
  get ended(): boolean {
    return this.#state === 'ended';
  }

  /** Streams that are open and wait for time to pass. */
  get hasDeadlines(): boolean {
    return this.#streams.deadlines > 0;
  }

  /** There is more to be sent when the output has gone: `goOn`. */
  get isHeldUp(): boolean {
    return this.#isHeldUp;
  }

  goOn(): void {
    if (!this.#isHeldUp || this.#state === 'ended') return;
    this.#isHeldUp = false;
    this.#sendBlocked();
  }

  /** Bytes from the peer; never throws. What there is to say to them is in the output afterwards,
   * without `onOutput`. */
  receive(chunk: Buffer): void {
    if (this.#state === 'ended') return;
    this.#heard = true;
    this.#isReading = true;
    this.#readMs = this.#clock.monotonicMs();
    this.#highestBeforeRead = this.#highestStreamId;
    try {
      this.#read(chunk);
    } catch (error) {
      if (error instanceof ConnectionError) this.#end(error.code, error.message);
      else if (error instanceof HpackError) this.#end(errorCodes.compressionError, error.message);
      else throw error;
    } finally {
      this.#isReading = false;
    }
  }

  /** Lets time take effect; to be called about once a second, and more often while `hasDeadlines`.
   * `isRead`: what the peer sends is being read. */
  sweep(nowMs: number, isRead: boolean): void {
    if (this.#state === 'ended') return;
    if (isRead ? this.#isUnfinished(nowMs) : this.#waitForRead(nowMs)) {
      this.#end(errorCodes.protocolError, 'what was begun was not finished in time');
      return;
    }
    if (this.#blockedSinceMs !== undefined && nowMs - this.#blockedSinceMs >= limits.stalledMs) {
      this.#end(errorCodes.enhanceYourCalm, 'the windows for answers were not opened in time');
      return;
    }
    if (this.#drainPingMs !== undefined && nowMs - this.#drainPingMs >= drainRoundTripMs) {
      this.#announceLastStream();
    }
    if (this.#streams.deadlines > 0) this.#endLateCalls(nowMs);
    this.#keepAlive(nowMs);
  }

  /** Tells the peer to open no more calls, and ends when those that are open are answered. */
  drain(): void {
    if (this.#state === 'ended' || this.#state === 'draining') return;
    if (this.#state !== 'open') {
      this.#end(errorCodes.noError, '');
      return;
    }
    this.#state = 'draining';
    // Two steps, so that calls which are under way are still served (RFC 9113 section 6.8).
    this.output.goaway(largestStreamId, errorCodes.noError, '');
    this.output.ping(drainPing, 0, false);
    this.#drainPingMs = this.#clock.monotonicMs();
    this.#tellOutput();
  }

  /** Ends streams of messages both ways; unary calls go on. */
  endStreams(text: string): void {
    for (const stream of this.#streams.list()) {
      if (stream.isStream) stream.end(grpcStatus.unavailable, text);
    }
  }

  /** The connection is gone. */
  close(): void {
    this.#state = 'ended';
    this.#rest = undefined;
    this.#block = undefined;
    for (const stream of this.#streams.list()) {
      if (stream.isPending) this.#abandoned++;
      this.#streams.delete(stream);
      stream.abandon();
    }
    this.#blocked.clear();
  }

  // What streams ask for.

  sendAnswer(stream: Stream, message: Uint8Array, length: number): boolean {
    const bytes = length + prefixBytes;
    if (
      bytes > stream.sendWindow ||
      bytes > this.#sendWindow ||
      bytes > defaultMaxFrameBytes ||
      this.#blocked.size > 0
    ) {
      return false;
    }
    // The stream ends with it, so its own window is of no more interest.
    this.#sendWindow -= bytes;
    this.output.answer(stream.id, messageHeaders, message, length, okTrailers);
    this.#tellOutput();
    return true;
  }

  sendHeaders(stream: Stream, block: Uint8Array, endStream: boolean): void {
    this.output.headers(stream.id, block, endStream);
    this.#tellOutput();
  }

  sendQueued(stream: Stream, queue: SendQueue): void {
    let progressed = false;
    let count: number | undefined;
    do {
      const isFull = this.output.length > limits.maxUnsentBytes;
      if (isFull && !queue.isEmpty) this.#isHeldUp = true;
      const room = isFull ? 0 : Math.min(stream.sendWindow, this.#sendWindow, defaultMaxFrameBytes);
      count = queue.next(room, (chunk, start, end, endStream) =>
        this.output.data(stream.id, chunk, start, end, endStream),
      );
      stream.sendWindow -= count ?? 0;
      this.#sendWindow -= count ?? 0;
      progressed ||= count !== undefined;
    } while (count !== undefined);
    this.#noteBlocked(stream, queue, progressed);
    if (queue.isEmpty && queue.end !== undefined && stream.localOpen) {
      stream.localOpen = false;
      if (queue.end !== 'endStream') this.output.headers(stream.id, queue.end, true);
      this.finished(stream);
    }
    this.#tellOutput();
  }

  finished(stream: Stream): void {
    if (stream.remoteOpen) {
      // The answer is complete, the rest of the request is not wanted (RFC 9113 section 8.1).
      this.output.rstStream(stream.id, errorCodes.noError);
      this.#rememberReset(stream.id);
    }
    this.#forget(stream);
    this.#endWhenDrained();
  }

  callAbandoned(): void {
    this.#abandoned++;
  }

  abandonedCallEnded(): void {
    this.#abandoned--;
  }

  consumed(stream: Stream): void {
    const due = limits.streamWindowBytes - stream.receiveWindow;
    if (due < limits.streamWindowBytes / 2) return;
    stream.receiveWindow += due;
    this.output.windowUpdate(stream.id, due);
    this.#tellOutput();
  }

  hold(bytes: number): boolean {
    if (this.#heldBytes + bytes > limits.maxBufferedBytes) return false;
    this.#heldBytes += bytes;
    return true;
  }

  release(bytes: number): void {
    this.#heldBytes -= bytes;
  }

  decompress(run: (done: () => void) => void): void {
    if (this.#decompressing === limits.maxDecompressions) {
      this.#waitingToDecompress.push(run);
      return;
    }
    this.#decompressing++;
    run(() => {
      this.#decompressing--;
      const next = this.#waitingToDecompress.shift();
      if (next !== undefined) this.decompress(next);
    });
  }

  peer(): string {
    return this.#deps.peer();
  }

  // Reading.

  #read(chunk: Buffer): void {
    let bytes = chunk;
    let position = 0;
    if (this.#rest !== undefined) {
      bytes = Buffer.concat([this.#rest, chunk]);
      this.#rest = undefined;
    }
    if (this.#state === 'preface') {
      const length = Math.min(bytes.length, clientPreface.length);
      if (clientPreface.compare(bytes, 0, length, 0, length) !== 0) {
        throw new ConnectionError(errorCodes.protocolError, 'not the preface of an HTTP/2 client');
      }
      if (length < clientPreface.length) {
        this.#rest = Buffer.from(bytes);
        return;
      }
      this.#state = 'settings';
      position = length;
    }
    const end = bytes.length;
    while (end - position >= frameHeaderBytes) {
      const length =
        ((bytes[position] as number) << 16) |
        ((bytes[position + 1] as number) << 8) |
        (bytes[position + 2] as number);
      if (length > limits.maxFrameBytes) {
        throw new ConnectionError(errorCodes.frameSizeError, `a frame of ${length} bytes`);
      }
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
      if (this.ended) return;
      position = payload + length;
    }
    if (position === end) {
      this.#restSinceMs = undefined;
      return;
    }
    // A copy, so that the rest of the chunk is not kept with it.
    this.#rest = Buffer.from(bytes.subarray(position));
    if (position > 0) this.#restSinceMs = undefined;
    this.#restSinceMs ??= this.#readMs;
  }

  #frame(
    bytes: Buffer,
    start: number,
    length: number,
    type: number,
    frameFlags: number,
    streamId: number,
  ): void {
    if (this.#state === 'settings') {
      if (type !== frameTypes.settings || (frameFlags & flags.ack) !== 0) {
        throw new ConnectionError(errorCodes.protocolError, 'the first frame is not SETTINGS');
      }
      this.#state = 'open';
    }
    if (this.#block !== undefined) {
      if (type !== frameTypes.continuation || streamId !== this.#block.streamId) {
        throw new ConnectionError(errorCodes.protocolError, 'a frame within a header block');
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
        this.#windowUpdate(bytes, start, length, streamId);
        return;
      case frameTypes.rstStream:
        this.#rstStream(length, streamId);
        return;
      case frameTypes.ping:
        this.#ping(bytes, start, length, frameFlags, streamId);
        return;
      case frameTypes.settings:
        this.#settings(bytes, start, length, frameFlags, streamId);
        return;
      case frameTypes.priority:
        this.#priority(bytes, start, length, streamId);
        return;
      case frameTypes.goaway:
        this.#goaway(length, streamId);
        return;
      case frameTypes.pushPromise:
        throw new ConnectionError(errorCodes.protocolError, 'PUSH_PROMISE from a client');
      case frameTypes.continuation:
        throw new ConnectionError(errorCodes.protocolError, 'CONTINUATION without HEADERS');
      default:
        // Extensions are ignored (section 5.5), but not without end.
        this.#countOverhead();
    }
  }

  #data(bytes: Buffer, start: number, length: number, frameFlags: number, streamId: number): void {
    if (streamId === 0) throw new ConnectionError(errorCodes.protocolError, 'DATA on stream 0');
    this.#receiveWindow -= length;
    if (this.#receiveWindow < 0) {
      throw new ConnectionError(errorCodes.flowControlError, 'more DATA than the window allows');
    }
    if (this.#receiveWindow < limits.connectionWindowBytes / 2) {
      this.output.windowUpdate(0, limits.connectionWindowBytes - this.#receiveWindow);
      this.#receiveWindow = limits.connectionWindowBytes;
    }
    let from = start;
    let to = start + length;
    if ((frameFlags & flags.padded) !== 0) {
      to -= readPadding(bytes, start, length);
      from++;
    }
    const stream = this.#streams.get(streamId);
    if (stream === undefined) {
      this.#frameOnClosedStream(streamId, 'DATA');
      return;
    }
    if (!stream.remoteOpen) {
      this.#faultOn(stream, errorCodes.streamClosed);
      return;
    }
    stream.receiveWindow -= length;
    if (stream.receiveWindow < 0) {
      this.#faultOn(stream, errorCodes.flowControlError);
      return;
    }
    stream.receivedBytes += to - from;
    const { contentLength } = stream.head;
    if ((frameFlags & flags.endStream) !== 0) {
      if (contentLength !== undefined && contentLength !== stream.receivedBytes) {
        this.#faultOn(stream, errorCodes.protocolError);
        return;
      }
      stream.remoteOpen = false;
      stream.data(bytes, from, to, true);
      return;
    }
    if (to === from) this.#countOverhead();
    if (contentLength !== undefined && contentLength < stream.receivedBytes) {
      this.#faultOn(stream, errorCodes.protocolError);
      return;
    }
    stream.data(bytes, from, to, false);
  }

  #headers(
    bytes: Buffer,
    start: number,
    length: number,
    frameFlags: number,
    streamId: number,
  ): void {
    if ((streamId & 1) === 0) {
      throw new ConnectionError(errorCodes.protocolError, `HEADERS on stream ${streamId}`);
    }
    let from = start;
    let to = start + length;
    if ((frameFlags & flags.padded) !== 0) {
      to -= readPadding(bytes, start, length);
      from++;
    }
    let dependsOnItself = false;
    if ((frameFlags & flags.priority) !== 0) {
      if (to - from < 5) throw new ConnectionError(errorCodes.frameSizeError, 'short HEADERS');
      dependsOnItself = (readUint32(bytes, from) & largestStreamId) === streamId;
      from += 5;
    }
    const endStream = (frameFlags & flags.endStream) !== 0;
    if ((frameFlags & flags.endHeaders) === 0) {
      this.#block = {
        streamId,
        endStream,
        fragments: [Buffer.from(bytes.subarray(from, to))],
        bytes: to - from,
        sinceMs: this.#readMs,
      };
      return;
    }
    this.#headerBlock(bytes, from, to, streamId, endStream);
    // RFC 7540 section 5.3.1; RFC 9113 no longer says what it means.
    if (dependsOnItself) this.#resetForFault(streamId, errorCodes.protocolError);
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
    if (
      block.bytes > limits.maxHeaderBlockBytes ||
      block.fragments.length > limits.maxContinuations
    ) {
      throw new ConnectionError(errorCodes.enhanceYourCalm, 'a header block without end');
    }
    if ((frameFlags & flags.endHeaders) === 0) return;
    this.#block = undefined;
    const whole = Buffer.concat(block.fragments);
    this.#headerBlock(whole, 0, whole.length, block.streamId, block.endStream);
  }

  #headerBlock(
    bytes: Buffer,
    start: number,
    end: number,
    streamId: number,
    endStream: boolean,
  ): void {
    if (streamId <= this.#highestStreamId) {
      this.#laterHeaderBlock(bytes, start, end, streamId, endStream);
      return;
    }
    const before = this.#highestStreamId;
    this.#highestStreamId = streamId;
    if (streamId > before + 2) this.#rememberPassedOver(before + 1, streamId - 1);
    let head: RequestHead;
    try {
      head = this.#readHead(bytes, start, end);
    } catch (error) {
      if (!(error instanceof MalformedRequest)) throw error;
      this.#resetForFault(streamId, errorCodes.protocolError);
      return;
    }
    this.#overhead.give(4);
    if (this.#state === 'draining' && this.#drainPingMs === undefined) {
      // Above the last stream that we said we would serve: as if it had never come.
      this.#rememberReset(streamId);
      return;
    }
    if (
      this.#streams.size + this.#abandoned >= limits.maxConcurrentStreams ||
      this.#blockedBytes > limits.maxUnsentBytes
    ) {
      this.#countOverhead();
      this.output.rstStream(streamId, errorCodes.refusedStream);
      if (!endStream) this.#rememberReset(streamId);
      return;
    }
    const { timeoutMs, refusal } = head;
    const method = this.#findMethod(head);
    const stream = new Stream(
      this,
      streamId,
      head,
      method,
      !endStream,
      limits.streamWindowBytes,
      this.#initialSendWindow,
      timeoutMs === undefined ? undefined : this.#readMs + timeoutMs,
    );
    this.#streams.add(stream);
    if (refusal !== undefined) this.#refuse(stream, refusal);
    else if (method === undefined) {
      stream.end(grpcStatus.unimplemented, unknownMethodText(head.path, this.#methods));
    } else {
      stream.open();
      if (!endStream) return;
      if (head.contentLength !== undefined && head.contentLength !== 0) {
        this.#faultOn(stream, errorCodes.protocolError);
      } else stream.deliver();
    }
  }

  #findMethod(head: RequestHead): GrpcMethod | undefined {
    if (head !== this.#lastHead) return this.#methods.get(head.path);
    this.#lastMethod ??= this.#methods.get(head.path);
    return this.#lastMethod;
  }

  #refuse(stream: Stream, { kind, status, text }: Refusal): void {
    if (kind === 'grpc') stream.end(status, text);
    else {
      const body = Buffer.from(`${text}\n`);
      const isHead = stream.header(':method') === 'HEAD';
      stream.endHttp(toHttpHeaders(status, body.length), isHead ? body.subarray(0, 0) : body);
    }
  }

  /** Trailers, or a block on a stream that is over; it has to be decoded in any case. */
  #laterHeaderBlock(
    bytes: Buffer,
    start: number,
    end: number,
    streamId: number,
    endStream: boolean,
  ): void {
    const stream = this.#streams.get(streamId);
    if (stream === undefined && !this.#resetByUs.has(streamId)) {
      const wasOpened = !this.#isPassedOver(streamId);
      throw new ConnectionError(
        wasOpened ? errorCodes.streamClosed : errorCodes.protocolError,
        `HEADERS on stream ${streamId}, which is over`,
      );
    }
    const fields: HeaderField[] = [];
    this.#decoder.decode(bytes, start, end, fields);
    if (stream === undefined) return;
    if (!stream.remoteOpen) {
      this.#faultOn(stream, errorCodes.streamClosed);
      return;
    }
    const { contentLength } = stream.head;
    const isWhole = contentLength === undefined || contentLength === stream.receivedBytes;
    if (!endStream || !isWhole || !areTrailers(fields)) {
      this.#faultOn(stream, errorCodes.protocolError);
      return;
    }
    stream.remoteOpen = false;
    stream.deliver();
  }

  #readHead(bytes: Buffer, start: number, end: number): RequestHead {
    const decoder = this.#decoder;
    if (
      this.#lastHead !== undefined &&
      decoder.generation === this.#lastGeneration &&
      isSame(this.#lastBlock, bytes, start, end)
    ) {
      return this.#lastHead;
    }
    const before = decoder.generation;
    const fields: HeaderField[] = [];
    decoder.decode(bytes, start, end, fields);
    if (decoder.oversized) return oversizedHead;
    const head = readRequestHead(fields);
    if (decoder.generation === before) {
      this.#lastBlock = Buffer.from(bytes.subarray(start, end));
      this.#lastHead = head;
      this.#lastMethod = undefined;
      this.#lastGeneration = before;
    }
    return head;
  }

  #windowUpdate(bytes: Buffer, start: number, length: number, streamId: number): void {
    if (length !== 4) throw new ConnectionError(errorCodes.frameSizeError, 'WINDOW_UPDATE');
    this.#countOverhead();
    const increment = readUint32(bytes, start) & largestWindowBytes;
    if (streamId === 0) {
      if (increment === 0) {
        throw new ConnectionError(errorCodes.protocolError, 'WINDOW_UPDATE by nothing');
      }
      this.#sendWindow += increment;
      if (this.#sendWindow > largestWindowBytes) {
        throw new ConnectionError(errorCodes.flowControlError, 'a window of more than 2^31-1');
      }
      if (this.#blocked.size > 0) this.#sendBlocked();
      return;
    }
    const stream = this.#streams.get(streamId);
    if (stream === undefined) {
      this.#checkNotIdle(streamId, 'WINDOW_UPDATE');
      return;
    }
    if (increment === 0) {
      this.#faultOn(stream, errorCodes.protocolError);
      return;
    }
    stream.sendWindow += increment;
    if (stream.sendWindow > largestWindowBytes) {
      this.#faultOn(stream, errorCodes.flowControlError);
    } else if (this.#blocked.has(stream)) this.#sendMore(stream);
  }

  #rstStream(length: number, streamId: number): void {
    if (length !== 4) throw new ConnectionError(errorCodes.frameSizeError, 'RST_STREAM');
    this.#countOverhead();
    const stream = this.#streams.get(streamId);
    if (stream === undefined) {
      this.#checkNotIdle(streamId, 'RST_STREAM');
      return;
    }
    if (streamId > this.#highestBeforeRead && !this.#rapidResets.take(this.#readMs)) {
      throw new ConnectionError(errorCodes.enhanceYourCalm, 'calls are reset as soon as begun');
    }
    this.#drop(stream);
  }

  #ping(bytes: Buffer, start: number, length: number, frameFlags: number, streamId: number): void {
    if (streamId !== 0) throw new ConnectionError(errorCodes.protocolError, 'PING on a stream');
    if (length !== 8) throw new ConnectionError(errorCodes.frameSizeError, 'PING');
    this.#countOverhead();
    if ((frameFlags & flags.ack) === 0) {
      this.output.ping(bytes, start, true);
    } else if (
      this.#drainPingMs !== undefined &&
      drainPing.compare(bytes, start, start + 8) === 0
    ) {
      this.#announceLastStream();
    }
  }

  #settings(
    bytes: Buffer,
    start: number,
    length: number,
    frameFlags: number,
    streamId: number,
  ): void {
    if (streamId !== 0) throw new ConnectionError(errorCodes.protocolError, 'SETTINGS on a stream');
    const isAck = (frameFlags & flags.ack) !== 0;
    if (isAck ? length !== 0 : length % 6 !== 0) {
      throw new ConnectionError(errorCodes.frameSizeError, 'SETTINGS');
    }
    this.#countOverhead();
    if (isAck) return;
    for (let position = start; position < start + length; position += 6) {
      // Each may move the window of every stream, so a frame full of them is not one frame's work.
      this.#countOverhead();
      const id = ((bytes[position] as number) << 8) | (bytes[position + 1] as number);
      this.#setting(id, readUint32(bytes, position + 2));
    }
    this.output.settingsAck();
    // Not before: who waits for the acknowledgement may take DATA before it for sent under the old ones.
    if (this.#blocked.size > 0) this.#sendBlocked();
  }

  #setting(id: number, value: number): void {
    switch (id) {
      case settingIds.enablePush:
        if (value > 1) throw new ConnectionError(errorCodes.protocolError, 'ENABLE_PUSH');
        return;
      case settingIds.maxFrameSize:
        if (value < defaultMaxFrameBytes || value > largestMaxFrameBytes) {
          throw new ConnectionError(errorCodes.protocolError, 'MAX_FRAME_SIZE');
        }
        return;
      case settingIds.initialWindowSize:
        this.#setInitialWindow(value);
        return;
      default:
        // The others are about what we never do: push, open streams, index fields.
        return;
    }
  }

  #setInitialWindow(value: number): void {
    if (value > largestWindowBytes) {
      throw new ConnectionError(errorCodes.flowControlError, 'INITIAL_WINDOW_SIZE');
    }
    const difference = value - this.#initialSendWindow;
    this.#initialSendWindow = value;
    for (const stream of this.#streams.list()) {
      stream.sendWindow += difference;
      if (stream.sendWindow > largestWindowBytes) {
        throw new ConnectionError(errorCodes.flowControlError, 'a window of more than 2^31-1');
      }
    }
  }

  #priority(bytes: Buffer, start: number, length: number, streamId: number): void {
    if (streamId === 0) throw new ConnectionError(errorCodes.protocolError, 'PRIORITY on stream 0');
    this.#countOverhead();
    const dependsOnItself =
      length === 5 && (readUint32(bytes, start) & largestStreamId) === streamId;
    if (length === 5 && !dependsOnItself) return;
    const code = length === 5 ? errorCodes.protocolError : errorCodes.frameSizeError;
    // A stream that was not opened cannot be reset (RFC 9113 section 6.4).
    if (this.#isIdle(streamId)) throw new ConnectionError(code, 'PRIORITY');
    this.#resetForFault(streamId, code);
  }

  #goaway(length: number, streamId: number): void {
    if (streamId !== 0) throw new ConnectionError(errorCodes.protocolError, 'GOAWAY on a stream');
    if (length < 8) throw new ConnectionError(errorCodes.frameSizeError, 'GOAWAY');
    this.#countOverhead();
    // The peer is about to leave, which needs no answer: it closes when its calls are answered.
  }

  // Errors and ends.

  #countOverhead(): void {
    if (this.#overhead.take(this.#readMs)) return;
    throw new ConnectionError(errorCodes.enhanceYourCalm, 'too many frames that bring no call on');
  }

  #frameOnClosedStream(streamId: number, what: string): void {
    this.#checkNotIdle(streamId, what);
    this.#countOverhead();
    if (!this.#resetByUs.has(streamId)) this.#resetForFault(streamId, errorCodes.streamClosed);
  }

  #isIdle(streamId: number): boolean {
    return streamId > this.#highestStreamId || (streamId & 1) === 0;
  }

  #checkNotIdle(streamId: number, what: string): void {
    if (this.#isIdle(streamId)) {
      throw new ConnectionError(
        errorCodes.protocolError,
        `${what} on stream ${streamId}, which was not opened`,
      );
    }
  }

  #faultOn(stream: Stream, code: ErrorCode): void {
    this.#resetForFault(stream.id, code);
  }

  /** A stream error of the peer's making (section 5.4.2). */
  #resetForFault(streamId: number, code: ErrorCode): void {
    if (!this.#faults.take(this.#readMs)) {
      throw new ConnectionError(errorCodes.enhanceYourCalm, 'too many streams with errors');
    }
    this.output.rstStream(streamId, code);
    this.#rememberReset(streamId);
    const stream = this.#streams.get(streamId);
    if (stream !== undefined) this.#drop(stream);
  }

  #rememberReset(streamId: number): void {
    this.#resetByUs.add(streamId);
    if (this.#resetByUs.size <= maxRemembered) return;
    const [oldest] = this.#resetByUs;
    this.#resetByUs.delete(oldest as number);
  }

  #rememberPassedOver(from: number, to: number): void {
    this.#passedOver.push({ from, to });
    if (this.#passedOver.length > maxRemembered) this.#passedOver.shift();
  }

  #isPassedOver(streamId: number): boolean {
    return this.#passedOver.some(({ from, to }) => streamId >= from && streamId <= to);
  }

  /** The stream is over, and nobody waits for its answer. */
  #drop(stream: Stream): void {
    if (stream.isPending) this.#abandoned++;
    this.#forget(stream);
    stream.abandon();
    this.#endWhenDrained();
  }

  #forget(stream: Stream): void {
    if (!this.#streams.delete(stream)) return;
    if (this.#blocked.delete(stream)) this.#blockedBytes -= stream.output?.counted ?? 0;
    if (this.#blocked.size === 0) this.#blockedSinceMs = undefined;
  }

  #isUnfinished(nowMs: number): boolean {
    if (this.#state === 'preface' || this.#state === 'settings') {
      return nowMs - this.#startMs >= limits.unfinishedMs;
    }
    if (this.#block !== undefined && nowMs - this.#block.sinceMs >= limits.unfinishedMs)
      return true;
    return this.#restSinceMs !== undefined && nowMs - this.#restSinceMs >= limits.stalledMs;
  }

  /** What the peer has begun may be finished long since, and we have not looked. */
  #waitForRead(nowMs: number): boolean {
    if (this.#restSinceMs !== undefined) this.#restSinceMs = nowMs;
    if (this.#block !== undefined) this.#block.sinceMs = nowMs;
    return false;
  }

  #endLateCalls(nowMs: number): void {
    const late = this.#streams
      .list()
      .filter(({ deadlineMs }) => deadlineMs !== undefined && deadlineMs <= nowMs);
    for (const stream of late)
      stream.end(grpcStatus.deadlineExceeded, 'the deadline of the call has passed');
  }

  #keepAlive(nowMs: number): void {
    if (this.#heard) {
      this.#heard = false;
      this.#heardMs = nowMs;
      this.#keepAliveSentMs = undefined;
    } else if (this.#keepAliveSentMs !== undefined) {
      if (nowMs - this.#keepAliveSentMs >= limits.keepAliveTimeoutMs) {
        this.#end(errorCodes.noError, 'no sign of life');
      }
    } else if (nowMs - this.#heardMs >= limits.keepAliveMs) {
      this.#keepAliveSentMs = nowMs;
      this.output.ping(keepAlivePing, 0, false);
      this.#tellOutput();
    }
  }

  #announceLastStream(): void {
    this.#drainPingMs = undefined;
    this.output.goaway(this.#highestStreamId, errorCodes.noError, '');
    this.#tellOutput();
    this.#endWhenDrained();
  }

  #endWhenDrained(): void {
    if (this.#state !== 'draining' || this.#drainPingMs !== undefined) return;
    if (this.#streams.size > 0) return;
    this.close();
    this.#deps.onEnd();
  }

  #end(code: ErrorCode, text: string): void {
    this.output.goaway(this.#highestStreamId, code, text);
    this.close();
    this.#tellOutput();
    this.#deps.onEnd();
  }

  // Sending.

  #tellOutput(): void {
    if (this.#isReading || this.#outputTold) return;
    this.#outputTold = true;
    this.#deps.onOutput();
  }

  /** To be called when the output was taken, so that the next one is told. */
  outputTaken(): void {
    this.#outputTold = false;
  }

  #noteBlocked(stream: Stream, queue: SendQueue, progressed: boolean): void {
    this.#blockedBytes += queue.bytes - queue.counted;
    queue.counted = queue.bytes;
    if (queue.bytes > 0) this.#blocked.add(stream);
    else this.#blocked.delete(stream);
    if (this.#blocked.size === 0) this.#blockedSinceMs = undefined;
    else if (progressed || this.#blockedSinceMs === undefined) {
      this.#blockedSinceMs = this.#clock.monotonicMs();
    }
  }

  #sendBlocked(): void {
    for (const stream of [...this.#blocked]) this.#sendMore(stream);
  }

  #sendMore(stream: Stream): void {
    if (stream.output !== undefined) this.sendQueued(stream, stream.output);
    // The method may have been kept waiting for its caller.
    stream.deliver();
  }
}

function areTrailers(fields: readonly HeaderField[]): boolean {
  try {
    checkTrailers(fields);
    return true;
  } catch (error) {
    if (error instanceof MalformedRequest) return false;
    throw error;
  }
}

function isSame(block: Buffer, bytes: Buffer, start: number, end: number): boolean {
  if (block.length !== end - start) return false;
  for (let index = 0; index < block.length; index++) {
    if (block[index] !== bytes[start + index]) return false;
  }
  return true;
}

/** The bytes at the end that are padding; the length's own byte comes first (section 6.1). */
function readPadding(bytes: Buffer, start: number, length: number): number {
  const padding = length === 0 ? -1 : (bytes[start] as number);
  if (padding < 0) throw new ConnectionError(errorCodes.frameSizeError, 'no room for padding');
  if (padding >= length) throw new ConnectionError(errorCodes.protocolError, 'too much padding');
  return padding;
}
