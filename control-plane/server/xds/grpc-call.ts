// One gRPC call on a stream of node:http2: messages in and out, and the final status. The handler chooses the method
// and interprets the messages.
import { constants, type ServerHttp2Stream } from 'node:http2';
import type { Writable } from 'node:stream';
import type { Clock } from '../../../shared/clock.ts';
import { type Budget, MessageReader, prefixBytes } from '../../../shared/grpc/message-reader.ts';
import { type GrpcStatus, grpcStatus, toGrpcMessage } from '../../../shared/grpc/status.ts';
import type { CallHandler, GrpcCall, OpenCall } from '../call-handler.ts';
import type { UnfinishedRequest, UnfinishedRequests } from '../unfinished-requests.ts';
import type { Connection } from './connection.ts';

/** The parts that all calls share. */
export interface CallDeps {
  readonly maxMessageBytes: number;
  readonly unfinishedRequests: UnfinishedRequests;
  readonly clock: Clock;
  /** Called after the handler is notified. */
  readonly onClose: (call: StreamCall) => void;
}

const closeTimeoutMs = 5_000;
const maxStatusTextLength = 1024;

/** `UnfinishedRequests` limits the bytes that all streams buffer together. */
const unfinishedBudget: Budget = { hold: () => true, release: () => {} };

const responseHeaders = {
  ':status': 200,
  'content-type': 'application/grpc',
  'grpc-accept-encoding': 'identity',
} as const;

/** Answers a request without opening a call: a status and no message. */
export function refuseCall(
  stream: ServerHttp2Stream,
  refusal: { readonly status: GrpcStatus; readonly text: string; readonly clock: Clock },
): void {
  const { status, text, clock } = refusal;
  stream.on('error', ignoreError);
  if (stream.destroyed) return;
  stream.respond({ ...responseHeaders, ...toTrailers(status, text) }, { endStream: true });
  // Further bytes from the client are dropped, so that its end is noticed.
  stream.resume();
  stream.once('close', closeLater(stream, clock));
}

/** The client has its answer and should close its side; a client that does not is not waited for. */
function closeLater(stream: ServerHttp2Stream, clock: Clock): () => void {
  return clock.after(closeTimeoutMs, () => stream.close(constants.NGHTTP2_NO_ERROR));
}

export class StreamCall implements GrpcCall {
  readonly #stream: ServerHttp2Stream;
  readonly #connection: Connection;
  readonly #deps: CallDeps;
  readonly #reader: MessageReader;
  readonly #sender: SliceSender;
  readonly #unfinished: UnfinishedRequest;
  readonly #handler: CallHandler;
  #isOpen = true;
  #hasAsked = false;
  #isCounted = true;
  #isBrokenOff = false;
  #trailers: Record<string, string> = {};

  constructor(stream: ServerHttp2Stream, connection: Connection, deps: CallDeps, open: OpenCall) {
    this.#stream = stream;
    this.#connection = connection;
    this.#deps = deps;
    this.#reader = new MessageReader(deps.maxMessageBytes, unfinishedBudget);
    this.#sender = new SliceSender(stream, stream.session?.encrypted === true);
    connection.callOpened();
    // For events that happen only once, `on` takes 200 bytes less than `once`, on thousands of streams that stay for
    // days.
    stream.on('error', ignoreError);
    // Responding on a stream that its client has reset meanwhile throws.
    if (!stream.destroyed) stream.respond(responseHeaders, { waitForTrailers: true });
    stream.on('wantTrailers', () => {
      stream.sendTrailers(this.#trailers);
      stream.on('close', closeLater(stream, deps.clock));
    });
    this.#unfinished = deps.unfinishedRequests.open((reason) => this.#handler.onUnfinished(reason));
    this.#handler = open(this);
    stream.on('data', (chunk: Buffer) => this.#receive(chunk));
    stream.on('end', () => this.#halfClose());
    // Emitted at once when the client resets the stream, whose connection may end before the stream is closed.
    stream.on('aborted', () => {
      this.#isBrokenOff = this.#isOpen && connection.isBroken;
      this.#stopReading();
    });
    stream.on('close', () => this.#close());
  }

  get peerAddress(): string {
    return this.#connection.peerAddress;
  }

  send(parts: readonly Buffer[], onSent: () => void): void {
    if (!this.#isOpen) return;
    this.#sender.send([toPrefix(parts), ...parts], () => {
      if (this.#isOpen) onSent();
    });
  }

  finish(status: GrpcStatus, text: string): void {
    if (!this.#isOpen) return;
    this.#stopReading();
    this.#trailers = toTrailers(status, text);
    this.#sender.end();
    // Further bytes are read and dropped; otherwise the end of the stream would never be noticed.
    this.#stream.resume();
  }

  abort(): void {
    this.#stopReading();
    this.#stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    this.#uncount();
    this.#connection.closeUnlessCalled();
  }

  #receive(chunk: Buffer): void {
    if (!this.#isOpen) return;
    const reader = this.#reader;
    reader.add(chunk, 0, chunk.length);
    const isNext = this.#readMessages();
    if (reader.remaining === 0) reader.drop();
    this.#unfinished.holds(reader.bufferedBytes, isNext);
  }

  /** True when there was at least one. */
  #readMessages(): boolean {
    const { maxMessageBytes } = this.#deps;
    let isNext = false;
    while (this.#isOpen) {
      const next = this.#reader.next();
      if (next.kind === 'incomplete') break;
      isNext = true;
      if (next.kind === 'too-large') {
        const text = `received message larger than max (${next.length} vs. ${maxMessageBytes})`;
        this.finish(grpcStatus.resourceExhausted, text);
      } else if (next.flag !== 0) {
        this.finish(grpcStatus.unimplemented, 'compressed requests are not supported');
      } else {
        this.#connection.callAsked(!this.#hasAsked);
        this.#hasAsked = true;
        this.#handler.onMessage(next.bytes);
      }
    }
    return isNext;
  }

  #halfClose(): void {
    if (!this.#isOpen) return;
    if (this.#reader.remaining === 0) this.#handler.onHalfClose();
    else this.finish(grpcStatus.internal, 'the request ended within a message');
  }

  /** Drops an incomplete request at once: the stream may stay for as long as its client does not read. */
  #stopReading(): void {
    this.#isOpen = false;
    this.#reader.drop();
    this.#unfinished.holds(0, false);
  }

  /** The call no longer keeps its connection open. */
  #uncount(): void {
    if (this.#isCounted) this.#connection.callClosed(this.#hasAsked);
    this.#isCounted = false;
  }

  #close(): void {
    this.#stopReading();
    this.#uncount();
    this.#deps.onClose(this);
    this.#handler.onClose(this.#isBrokenOff);
  }
}

interface Message {
  readonly parts: readonly Buffer[];
  readonly onSent: () => void;
  next: Message | undefined;
}

const encryptedSliceBytes = 64 * 1024;

/** Writes messages to a stream one after another; where they are encrypted, large ones in slices.
 *
 * With TLS, node:http2 encrypts whatever it is given, up to the client's window, into memory that the connection keeps:
 * with a thousand clients, a thousand copies of a response. Without TLS nothing is copied, and each slice costs as much
 * as a small message. Slices refer to the message's bytes. A discovery stream has one message at a time; only messages
 * for a worker's link queue up. */
export class SliceSender {
  readonly #stream: Writable;
  readonly #sliceBytes: number;
  /** The message being written, and the last one queued. */
  #first: Message | undefined;
  #last: Message | undefined;
  /** Where in the first message the next slice begins. */
  #part = 0;
  #at = 0;
  #isEnding = false;
  #isWriting = false;

  constructor(stream: Writable, isEncrypted: boolean) {
    this.#stream = stream;
    this.#sliceBytes = isEncrypted ? encryptedSliceBytes : Number.POSITIVE_INFINITY;
  }

  /** Calls `onSent` when the network has accepted the last slice, and never if it does not. */
  send(parts: readonly Buffer[], onSent: () => void): void {
    const message: Message = { parts, onSent, next: undefined };
    if (this.#last === undefined) this.#first = message;
    else this.#last.next = message;
    this.#last = message;
    if (!this.#isWriting) this.#writeNext();
  }

  /** Ends the stream after the messages given to `send`. */
  end(): void {
    this.#isEnding = true;
    if (!this.#isWriting) this.#writeNext();
  }

  #writeNext(): void {
    const message = this.#first;
    if (message === undefined) {
      if (this.#isEnding) this.#stream.end();
      this.#isEnding = false;
      return;
    }
    this.#isWriting = true;
    const slice = this.#cutSlice(message);
    this.#stream.cork();
    for (let index = 0; index < slice.length - 1; index++) this.#stream.write(slice[index]);
    this.#stream.write(slice.at(-1) ?? '', (error) => this.#onWritten(message, error));
    this.#stream.uncork();
  }

  #onWritten(message: Message, error: Error | null | undefined): void {
    this.#isWriting = false;
    if (error != null) return;
    if (this.#part === message.parts.length) {
      this.#first = message.next;
      if (this.#first === undefined) this.#last = undefined;
      this.#part = 0;
      message.onSent();
    }
    // The callback may have begun to write already.
    if (!this.#isWriting) this.#writeNext();
  }

  /** Returns the next slice of the message, and advances the position. */
  #cutSlice({ parts }: Message): Buffer[] {
    const slice: Buffer[] = [];
    let room = this.#sliceBytes;
    for (let bytes = parts[this.#part]; bytes && room > 0; bytes = parts[this.#part]) {
      const isComplete = this.#at === 0 && bytes.length <= room;
      const piece = isComplete ? bytes : bytes.subarray(this.#at, this.#at + room);
      slice.push(piece);
      room -= piece.length;
      this.#at += piece.length;
      if (this.#at < bytes.length) break;
      this.#part++;
      this.#at = 0;
    }
    return slice;
  }
}

/** The trailers that carry a status. */
export function toTrailers(status: GrpcStatus, text: string): Record<string, string> {
  const trailers: Record<string, string> = { 'grpc-status': String(status) };
  if (text !== '') trailers['grpc-message'] = toGrpcMessage(text.slice(0, maxStatusTextLength));
  return trailers;
}

/** The prefix of a message: its length, and a flag for no compression. */
function toPrefix(parts: readonly Buffer[]): Buffer {
  const prefix = Buffer.allocUnsafe(prefixBytes);
  prefix[0] = 0;
  prefix.writeUInt32BE(
    parts.reduce((sum, part) => sum + part.length, 0),
    1,
  );
  return prefix;
}

/** A broken stream closes; the reason has no receiver. */
function ignoreError(): void {}
