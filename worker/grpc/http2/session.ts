// One HTTP/2 connection, without its socket and without timers: receives bytes, calls methods and produces bytes (RFC
// 9113, the server's side, for gRPC). Strict: violations end the stream or the connection with the error that the RFC
// names. Bounded by limits.ts. Longer than most files, because all of it concerns one state: the streams of the
// connection and how it ends.
import type { Clock } from '../../../shared/clock.ts';
import { grpcStatus } from '../../../shared/grpc/status.ts';
import { createTokenBucket } from '../../../shared/grpc/token-bucket.ts';
import type { LargeRequests } from '../large-requests.ts';
import { type GrpcMethods, unknownMethodText } from '../method.ts';
import { toHttpHeaders } from './answer-blocks.ts';
import { ClosedStreams } from './closed-streams.ts';
import { ConcurrencyLimiter } from './concurrency-limiter.ts';
import { ConnectionError } from './connection-error.ts';
import {
  defaultHeaderTableBytes,
  defaultMaxFrameBytes,
  defaultWindowBytes,
  type ErrorCode,
  errorCodes,
  largestMaxFrameBytes,
  largestStreamId,
  largestWindowBytes,
  settingIds,
} from './frame.ts';
import { type FrameHandler, FrameReader } from './frame-reader.ts';
import { HeaderReader } from './header-reader.ts';
import { HpackError } from './hpack/decoder.ts';
import { KeepAlive } from './keep-alive.ts';
import * as limits from './limits.ts';
import type { Output } from './output.ts';
import type { Refusal } from './request-head.ts';
import { Sender } from './sender.ts';
import { Stream, type StreamHost } from './stream.ts';
import { StreamTable } from './stream-table.ts';

export interface SessionDeps {
  readonly methods: GrpcMethods;
  readonly clock: Clock;
  readonly largeRequests: LargeRequests;
  /** Whether methods can read any header. */
  readonly storesHeaders: boolean;
  readonly maxRequestBytes: number;
  /** The peer's address, for methods. */
  readonly peer: () => string;
  /** Called for the first output since output was last taken. */
  readonly onOutput: () => void;
  /** Called with the difference when the number of bytes of incomplete messages changes. */
  readonly onOccupied: (bytes: number) => void;
  /** Called at the end: the output contains the last bytes. */
  readonly onEnd: () => void;
}

/**
 * After the first GOAWAY of a drain, the second follows when our PING is answered, or after this time: requests that a
 * stalled peer had sent before are still served.
 */
const drainRoundTripMs = 5000;
const drainPing = Buffer.from('ratelane');
const keepAlivePing = Buffer.from('stillup?');

export class Session implements StreamHost, FrameHandler {
  readonly sender: Sender<Stream>;
  readonly decompressions = new ConcurrencyLimiter(limits.maxDecompressions);
  readonly largeRequests: LargeRequests;
  readonly maxRequestBytes: number;
  readonly #methods: GrpcMethods;
  readonly #clock: Clock;
  readonly #deps: SessionDeps;
  readonly #headerReader: HeaderReader;
  readonly #keepAlive: KeepAlive;

  readonly #frameReader: FrameReader;
  #state: 'open' | 'draining' | 'ended' = 'open';
  readMs = 0;
  /** When the PING of a drain was sent; undefined when it was answered. */
  #drainPingMs: number | undefined;
  /** The last stream that will be served, once it was announced to the peer. */
  #lastStreamId: number | undefined;

  readonly #streams = new StreamTable();
  readonly #closed = new ClosedStreams();
  /** Streams above this number were opened in the current read. */
  #highestBeforeRead = 0;
  /** Number of reset or dropped calls that their methods have not answered yet. */
  #abandoned = 0;
  /** Receive window of the whole connection; streams have their own. */
  #receiveWindow = limits.connectionWindowBytes;
  /** Bytes of incomplete messages. */
  #occupiedBytes = 0;

  readonly #overhead = createTokenBucket({
    capacity: limits.overheadBurst,
    perSecond: limits.overheadPerSecond,
  });
  readonly #rapidResets = createTokenBucket({
    capacity: limits.rapidResetBurst,
    perSecond: limits.rapidResetsPerSecond,
  });
  readonly #faults = createTokenBucket({
    capacity: limits.faultBurst,
    perSecond: limits.faultsPerSecond,
  });

  constructor(deps: SessionDeps) {
    this.#deps = deps;
    this.largeRequests = deps.largeRequests;
    this.maxRequestBytes = deps.maxRequestBytes;
    this.#methods = deps.methods;
    this.#clock = deps.clock;
    const startMs = deps.clock.monotonicMs();
    this.#frameReader = new FrameReader(this, startMs);
    this.#headerReader = new HeaderReader(deps.methods, deps.storesHeaders);
    this.#keepAlive = new KeepAlive(startMs);
    this.sender = new Sender({
      clock: deps.clock,
      onOutput: deps.onOutput,
    });
    this.output.settings({
      maxConcurrentStreams: limits.maxConcurrentStreams,
      maxHeaderListSize: limits.maxHeaderListBytes,
    });
    this.output.windowUpdate(0, limits.connectionWindowBytes - defaultWindowBytes);
  }

  /** The bytes to send; see `Sender.outputWritten`. */
  get output(): Output {
    return this.sender.output;
  }

  /** Whether input is ignored from now on. */
  get ended(): boolean {
    return this.#state === 'ended';
  }

  /** Approximate bytes held for this peer. */
  get occupiedBytes(): number {
    const calls = this.#streams.size + this.#abandoned;
    const { unfinished } = this.#frameReader;
    return (
      this.#occupiedBytes +
      this.sender.blockedBytes +
      (unfinished?.bytes ?? 0) +
      calls * limits.callBytes
    );
  }

  /**
   * The bytes that the peer could release, by sending the rest or by reading, and since when it has not. Work that
   * waits for this side, such as calls in progress, is not included.
   */
  get owed(): { readonly bytes: number; readonly sinceMs: number } {
    const { blockedBytes, blockedSinceMs = Infinity } = this.sender;
    const { unfinished } = this.#frameReader;
    let bytes = blockedBytes + (unfinished?.bytes ?? 0);
    let sinceMs = Math.min(blockedSinceMs, unfinished?.sinceMs ?? Infinity);
    for (const stream of this.#streams.list()) {
      if (stream.isAtWork) continue;
      bytes += limits.callBytes + stream.headBytes;
      if (stream.unfinished === undefined) continue;
      bytes += stream.unfinished.bytes;
      sinceMs = Math.min(sinceMs, stream.unfinished.sinceMs);
    }
    return { bytes, sinceMs };
  }

  /** When the peer last sent a request; undefined before its first call. */
  get lastAskedMs(): number | undefined {
    return this.#closed.highest === 0 ? undefined : this.readMs;
  }

  /** Whether the peer waits for an answer. */
  get isBusy(): boolean {
    return this.#streams.size > 0 && this.#streams.list().some((stream) => stream.isAtWork);
  }

  /** Whether open streams have deadlines. */
  get hasDeadlines(): boolean {
    return this.#streams.deadlines > 0;
  }

  /**
   * Handles bytes from the peer; never throws. The output contains the response afterwards, without a call of
   * `onOutput`.
   */
  receive(chunk: Buffer): void {
    if (this.#state === 'ended') return;
    this.#keepAlive.received();
    this.sender.isMuted = true;
    this.readMs = this.#clock.monotonicMs();
    this.#highestBeforeRead = this.#closed.highest;
    try {
      this.#frameReader.read(chunk, this.readMs);
    } catch (error) {
      if (error instanceof ConnectionError) this.#end(error.code, error.message);
      else if (error instanceof HpackError) this.#end(errorCodes.compressionError, error.message);
      else throw error;
    } finally {
      this.sender.isMuted = false;
    }
  }

  /**
   * Handles deadlines; call it about once a second, and more often while `hasDeadlines`. `isRead` is whether the peer's
   * input is being read.
   */
  sweep(nowMs: number, isRead: boolean): void {
    if (this.#state === 'ended') return;
    if (!isRead) this.#frameReader.excuse(nowMs);
    else if (this.#frameReader.isOverdue(nowMs)) {
      this.#end(errorCodes.protocolError, 'a frame or a header block was not completed in time');
      return;
    }
    const { blockedSinceMs } = this.sender;
    if (blockedSinceMs !== undefined && nowMs - blockedSinceMs >= limits.stalledMs) {
      this.#end(
        errorCodes.enhanceYourCalm,
        'the client did not open its windows for answers in time',
      );
      return;
    }
    if (this.#drainPingMs !== undefined && nowMs - this.#drainPingMs >= drainRoundTripMs) {
      this.#announceLastStream();
    }
    if (this.#streams.deadlines > 0) this.#endLateCalls(nowMs);
    this.#checkLife(nowMs);
  }

  /** Asks the peer to open no more calls, and ends the connection when the open ones are answered. */
  drain(): void {
    if (this.#state === 'ended' || this.#state === 'draining') return;
    if (!this.#frameReader.isGreeted) {
      this.#end(errorCodes.noError, '');
      return;
    }
    this.#state = 'draining';
    // In two steps, so that calls in flight are still served (RFC 9113 section 6.8).
    this.output.goaway(largestStreamId, errorCodes.noError, '');
    this.output.ping(drainPing, 0, false);
    this.#drainPingMs = this.#clock.monotonicMs();
    this.sender.announceOutput();
  }

  /** Ends the idle connection, to make room for another one. */
  leave(): void {
    if (this.#state !== 'ended')
      this.#end(errorCodes.noError, 'its memory is needed for other connections');
  }

  /** Ends bidirectional streams; unary calls continue. */
  endStreams(text: string): void {
    for (const stream of this.#streams.list()) {
      if (stream.isStream) stream.end(grpcStatus.unavailable, text);
    }
  }

  /** Call it when the connection was closed. */
  close(): void {
    this.#state = 'ended';
    this.#frameReader.stop();
    for (const stream of this.#streams.list()) {
      this.#forget(stream);
      stream.abandon();
    }
  }

  // The following methods are called by streams.

  finished(stream: Stream): void {
    if (stream.remoteOpen) {
      // The answer is complete: the rest of the request is not needed (RFC 9113 section 8.1).
      this.output.rstStream(stream.id, errorCodes.noError);
      this.#closed.reset(stream.id);
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
    this.sender.announceOutput();
  }

  hold(bytes: number): boolean {
    if (this.#occupiedBytes + bytes > limits.maxBufferedBytes) return false;
    this.#occupiedBytes += bytes;
    this.#deps.onOccupied(bytes);
    return true;
  }

  release(bytes: number): void {
    if (bytes === 0) return;
    this.#occupiedBytes -= bytes;
    this.#deps.onOccupied(-bytes);
  }

  peer(): string {
    return this.#deps.peer();
  }

  // The following methods handle frames.

  data(
    streamId: number,
    bytes: Buffer,
    start: number,
    end: number,
    flowBytes: number,
    endStream: boolean,
  ): void {
    this.#receiveWindow -= flowBytes;
    if (this.#receiveWindow < 0) {
      throw new ConnectionError(errorCodes.flowControlError, 'more DATA than the window allows');
    }
    if (this.#receiveWindow < limits.connectionWindowBytes / 2) {
      this.output.windowUpdate(0, limits.connectionWindowBytes - this.#receiveWindow);
      this.#receiveWindow = limits.connectionWindowBytes;
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
    stream.receiveWindow -= flowBytes;
    if (stream.receiveWindow < 0) {
      this.#faultOn(stream, errorCodes.flowControlError);
      return;
    }
    stream.receivedBytes += end - start;
    const { contentLength } = stream.head;
    if (endStream) {
      if (contentLength !== undefined && contentLength !== stream.receivedBytes) {
        this.#faultOn(stream, errorCodes.protocolError);
        return;
      }
      stream.remoteOpen = false;
      stream.data(bytes, start, end, true);
      return;
    }
    if (end === start) this.#countOverhead();
    if (contentLength !== undefined && contentLength < stream.receivedBytes) {
      this.#faultOn(stream, errorCodes.protocolError);
      return;
    }
    stream.data(bytes, start, end, false);
  }

  headers(
    streamId: number,
    bytes: Buffer,
    start: number,
    end: number,
    endStream: boolean,
    dependsOnItself: boolean,
  ): void {
    if (streamId > this.#closed.highest) this.#openStream(streamId, bytes, start, end, endStream);
    else this.#laterHeaderBlock(streamId, bytes, start, end, endStream);
    // Required by RFC 7540 section 5.3.1; RFC 9113 no longer defines it.
    if (dependsOnItself) this.#resetForFault(streamId, errorCodes.protocolError);
  }

  #openStream(
    streamId: number,
    bytes: Buffer,
    start: number,
    end: number,
    endStream: boolean,
  ): void {
    this.#closed.opened(streamId);
    const head = this.#headerReader.readHead(bytes, start, end);
    if (head === undefined) {
      this.#resetForFault(streamId, errorCodes.protocolError);
      return;
    }
    this.#overhead.give(4);
    if (this.#state === 'draining' && this.#drainPingMs === undefined) {
      // The stream is above the announced last one: it is ignored.
      this.#closed.reset(streamId);
      return;
    }
    const headBytes = head.listBytes > limits.smallHeadBytes ? head.listBytes : 0;
    if (!this.#hasRoom() || (headBytes > 0 && !this.hold(headBytes))) {
      this.#countOverhead();
      this.output.rstStream(streamId, errorCodes.refusedStream);
      if (!endStream) this.#closed.reset(streamId);
      return;
    }
    const { timeoutMs, refusal } = head;
    const method = this.#headerReader.findMethod(head);
    const stream = new Stream(
      this,
      streamId,
      head,
      headBytes,
      method,
      !endStream,
      limits.streamWindowBytes,
      this.sender.initialWindow,
      timeoutMs === undefined ? undefined : this.readMs + timeoutMs,
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

  /** Whether another call is allowed. */
  #hasRoom(): boolean {
    return (
      this.#streams.size + this.#abandoned < limits.maxConcurrentStreams &&
      this.sender.blockedBytes <= limits.maxUnsentBytes &&
      this.output.length <= limits.maxUnsentBytes
    );
  }

  #refuse(stream: Stream, { kind, status, text }: Refusal): void {
    if (kind === 'grpc') stream.end(status, text);
    else {
      const body = Buffer.from(`${text}\n`);
      const isHead = stream.header(':method') === 'HEAD';
      stream.endHttp(toHttpHeaders(status, body.length), isHead ? body.subarray(0, 0) : body);
    }
  }

  /** Handles trailers, or a block on a closed stream, which must be decoded in any case. */
  #laterHeaderBlock(
    streamId: number,
    bytes: Buffer,
    start: number,
    end: number,
    endStream: boolean,
  ): void {
    const stream = this.#streams.get(streamId);
    if (stream === undefined && !this.#closed.wasResetByUs(streamId)) {
      const wasOpened = !this.#closed.wasPassedOver(streamId);
      throw new ConnectionError(
        wasOpened ? errorCodes.streamClosed : errorCodes.protocolError,
        `HEADERS on stream ${streamId}, which has ended`,
      );
    }
    const isWellFormed = this.#headerReader.readTrailers(bytes, start, end);
    if (stream === undefined) return;
    if (!stream.remoteOpen) {
      this.#faultOn(stream, errorCodes.streamClosed);
      return;
    }
    const { contentLength } = stream.head;
    const isComplete = contentLength === undefined || contentLength === stream.receivedBytes;
    if (!endStream || !isComplete || !isWellFormed) {
      this.#faultOn(stream, errorCodes.protocolError);
      return;
    }
    stream.trailers();
  }

  windowUpdate(streamId: number, increment: number): void {
    this.#countOverhead();
    if (streamId === 0) {
      if (increment === 0) {
        throw new ConnectionError(errorCodes.protocolError, 'WINDOW_UPDATE by 0');
      }
      this.sender.windowOpened(increment);
      return;
    }
    const stream = this.#streams.get(streamId);
    if (stream === undefined) {
      this.#checkNotIdle(streamId, 'WINDOW_UPDATE');
      return;
    }
    if (increment === 0) this.#faultOn(stream, errorCodes.protocolError);
    else if (!this.sender.streamWindowOpened(stream, increment)) {
      this.#faultOn(stream, errorCodes.flowControlError);
    }
  }

  rstStream(streamId: number): void {
    this.#countOverhead();
    const stream = this.#streams.get(streamId);
    if (stream === undefined) {
      this.#checkNotIdle(streamId, 'RST_STREAM');
      return;
    }
    if (streamId > this.#highestBeforeRead && !this.#rapidResets.spend(1, this.readMs)) {
      throw new ConnectionError(
        errorCodes.enhanceYourCalm,
        'too many calls are reset as soon as they begin',
      );
    }
    this.#drop(stream);
  }

  ping(bytes: Buffer, start: number, isAck: boolean): void {
    this.#countOverhead();
    if (!isAck) this.output.ping(bytes, start, true);
    else if (this.#drainPingMs !== undefined && drainPing.compare(bytes, start, start + 8) === 0) {
      this.#announceLastStream();
    }
  }

  settings(entries: readonly (readonly [id: number, value: number])[]): void {
    this.#countOverhead();
    for (const [id, value] of entries) {
      // Each entry may change the window of every stream, so each costs a token.
      this.#countOverhead();
      this.#setting(id, value);
    }
    this.output.settingsAck();
    // Only now: a peer may treat DATA before the acknowledgement as sent under the old settings.
    this.sender.sendBlocked();
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
        if (value > largestWindowBytes) {
          throw new ConnectionError(errorCodes.flowControlError, 'INITIAL_WINDOW_SIZE');
        }
        this.sender.setInitialWindow(value, this.#streams.list());
        return;
      case settingIds.headerTableSize:
        if (value < defaultHeaderTableBytes) this.output.oweTableSize();
        return;
      default:
        // The other settings concern push and streams opened by this side, which are never used.
        return;
    }
  }

  priority(streamId: number, fault: 'size' | 'dependsOnItself' | undefined): void {
    this.#countOverhead();
    if (fault === undefined) return;
    const code = fault === 'size' ? errorCodes.frameSizeError : errorCodes.protocolError;
    // An unopened stream cannot be reset (RFC 9113 section 6.4).
    if (this.#closed.isIdle(streamId)) throw new ConnectionError(code, 'PRIORITY');
    this.#resetForFault(streamId, code);
  }

  other(): void {
    this.#countOverhead();
  }

  // The following methods handle errors and ends.

  #countOverhead(): void {
    if (this.#overhead.spend(1, this.readMs)) return;
    throw new ConnectionError(errorCodes.enhanceYourCalm, 'too many frames that advance no call');
  }

  #frameOnClosedStream(streamId: number, what: string): void {
    this.#checkNotIdle(streamId, what);
    this.#countOverhead();
    if (!this.#closed.wasResetByUs(streamId))
      this.#resetForFault(streamId, errorCodes.streamClosed);
  }

  #checkNotIdle(streamId: number, what: string): void {
    if (this.#closed.isIdle(streamId)) {
      throw new ConnectionError(
        errorCodes.protocolError,
        `${what} on stream ${streamId}, which was not opened`,
      );
    }
  }

  #faultOn(stream: Stream, code: ErrorCode): void {
    this.#resetForFault(stream.id, code);
  }

  /** Handles a stream error caused by the peer (section 5.4.2). */
  #resetForFault(streamId: number, code: ErrorCode): void {
    if (!this.#faults.spend(1, this.readMs)) {
      throw new ConnectionError(errorCodes.enhanceYourCalm, 'too many streams with errors');
    }
    this.output.rstStream(streamId, code);
    this.#closed.reset(streamId);
    const stream = this.#streams.get(streamId);
    if (stream !== undefined) this.#drop(stream);
  }

  /** Drops a closed stream, whose answer is not awaited. */
  #drop(stream: Stream): void {
    this.#forget(stream);
    stream.abandon();
    this.#endWhenDrained();
  }

  #forget(stream: Stream): void {
    if (this.#streams.delete(stream)) this.release(stream.headBytes);
    this.sender.forget(stream);
  }

  #endLateCalls(nowMs: number): void {
    const late = this.#streams
      .list()
      .filter(({ deadlineMs }) => deadlineMs !== undefined && deadlineMs <= nowMs);
    for (const stream of late)
      stream.end(grpcStatus.deadlineExceeded, 'the deadline of the call has passed');
  }

  #checkLife(nowMs: number): void {
    switch (this.#keepAlive.check(nowMs)) {
      case 'fine':
        return;
      case 'ask':
        this.output.ping(keepAlivePing, 0, false);
        this.sender.announceOutput();
        return;
      case 'gone':
        this.#end(errorCodes.noError, 'the client does not answer');
    }
  }

  #announceLastStream(): void {
    this.#drainPingMs = undefined;
    this.#lastStreamId = this.#closed.highest;
    this.output.goaway(this.#lastStreamId, errorCodes.noError, '');
    this.sender.announceOutput();
    this.#endWhenDrained();
  }

  #endWhenDrained(): void {
    if (this.#state !== 'draining' || this.#drainPingMs !== undefined) return;
    if (this.#streams.size > 0) return;
    this.close();
    this.#deps.onEnd();
  }

  #end(code: ErrorCode, text: string): void {
    // The announced number never grows (RFC 9113 section 6.8).
    this.output.goaway(this.#lastStreamId ?? this.#closed.highest, code, text);
    this.close();
    this.sender.announceOutput();
    this.#deps.onEnd();
  }
}
