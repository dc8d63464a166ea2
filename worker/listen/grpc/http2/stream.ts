// One stream, which is one gRPC call: puts its messages together, hands them to the method, and sends
// what the method answers as far as the peer's windows allow. Frames and connection-wide rules are
// left to the session.
import { gunzip, inflate } from 'node:zlib';
import { errorText } from '../../../../shared/errors.ts';
import {
  type GrpcAnswer,
  type GrpcErrorStatus,
  type GrpcMethod,
  grpcStatus,
  type StreamHandler,
  type StreamMethod,
  type UnaryCaller,
  type UnaryMethod,
} from '../method.ts';
import { maxRequestBytes } from '../transport.ts';
import {
  messageHeaders,
  okTrailers,
  toErrorBlock,
  toErrorTrailers,
  toUnknownEncodingBlock,
} from './answer-blocks.ts';
import { readUint32, writeUint32 } from './frame.ts';
import type { RequestHead } from './request-head.ts';

/** By the names of grpc-encoding. */
const decompressors = new Map([
  ['gzip', gunzip],
  ['deflate', inflate],
]);

/** gRPC's prefix of a message: a flag and a length. */
const prefixBytes = 5;
/** A method that has this much waiting for its caller is given no further message. */
const maxQueuedBytes = 65_536;

/** What a stream needs of its connection. */
export interface StreamHost {
  /** Sends a whole unary answer at once when the windows allow it; false: nothing was sent. */
  sendAnswer(stream: Stream, message: Uint8Array): boolean;
  sendHeaders(stream: Stream, block: Uint8Array, endStream: boolean): void;
  /** Something was queued on the stream: sends as much as the windows allow. */
  sendQueued(stream: Stream): void;
  /** Everything was sent, the end included. */
  finished(stream: Stream): void;
  /** A call that was given up has been answered after all. */
  abandonedCallEnded(): void;
  /** The caller may send so many more bytes, now that they are out of the way. */
  consumed(stream: Stream): void;
  /** Counts bytes that are kept; false when the connection may not keep any more. */
  hold(bytes: number): boolean;
  release(bytes: number): void;
  peer(): string;
}

export class Stream {
  readonly id: number;
  readonly head: RequestHead;
  readonly #host: StreamHost;
  readonly #method: GrpcMethod | undefined;

  /** The caller may still send. */
  remoteOpen = true;
  /** The end was not sent yet. */
  localOpen = true;
  /** Reset by either side, or its connection is gone: nobody waits for an answer. */
  isGone = false;

  /** What the caller may send, and what we may. */
  receiveWindow: number;
  sendWindow: number;
  /** DATA without padding, to be compared with content-length. */
  receivedBytes = 0;
  /** On the monotonic clock, undefined without grpc-timeout. */
  readonly deadlineMs: number | undefined;

  /** Bytes of messages that are not delivered yet. */
  #held: Buffer | undefined;
  #heldStart = 0;
  #heldEnd = 0;
  /** As counted by the connection. */
  #countedBytes = 0;
  #isDecompressing = false;
  /** A unary call's one message, while its end has not come. */
  #message: Buffer | undefined;
  #isDispatched = false;
  #handler: StreamHandler | undefined;
  #halfCloseTold = false;
  #cancel: (() => void) | undefined;

  #headersSent = false;
  /** DATA that waits for a window, the first one partly sent. */
  readonly queue: Uint8Array[] = [];
  queueStart = 0;
  queuedBytes = 0;
  /** Of these, how many the session has counted as blocked. */
  blockedBytes = 0;
  /** Follows the queue. */
  trailers: Uint8Array | undefined;

  constructor(
    host: StreamHost,
    id: number,
    head: RequestHead,
    method: GrpcMethod | undefined,
    receiveWindow: number,
    sendWindow: number,
    deadlineMs: number | undefined,
  ) {
    this.#host = host;
    this.id = id;
    this.head = head;
    this.#method = method;
    this.receiveWindow = receiveWindow;
    this.sendWindow = sendWindow;
    this.deadlineMs = deadlineMs;
  }

  /** More of the request; `endStream`: the last of it. The bytes are the caller's again afterwards. */
  data(bytes: Buffer, start: number, end: number, endStream: boolean): void {
    // Answered already: the rest of the request interests nobody.
    if (this.#isAnswered) return;
    if (
      endStream &&
      this.#held === undefined &&
      !this.#isDispatched &&
      end - start >= prefixBytes &&
      bytes[start] === 0 &&
      readUint32(bytes, start + 1) === end - start - prefixBytes &&
      end - start <= maxRequestBytes &&
      this.#method?.kind === 'unary'
    ) {
      this.#dispatchUnary(this.#method, bytes.subarray(start + prefixBytes, end));
      return;
    }
    if (end === start || this.#hold(bytes, start, end)) this.deliver();
    else this.#failOverfull();
  }

  /** A method of messages both ways begins with its headers. */
  open(): void {
    if (this.#method?.kind === 'stream') this.#openStream(this.#method);
  }

  /** Hands over what has come, as far as the method takes it. */
  deliver(): void {
    const method = this.#method;
    if (method === undefined || this.#isAnswered || this.isGone) return;
    while (this.queuedBytes <= maxQueuedBytes && !this.#isDecompressing) {
      const available = this.#heldEnd - this.#heldStart;
      if (available < prefixBytes) break;
      const held = this.#held as Buffer;
      const length = readUint32(held, this.#heldStart + 1);
      if (length > maxRequestBytes) {
        this.#failTooLarge(length);
        return;
      }
      if (available < prefixBytes + length) break;
      const flag = held[this.#heldStart] as number;
      const from = this.#heldStart + prefixBytes;
      this.#heldStart = from + length;
      if (flag === 0) this.#messageComplete(method, held.subarray(from, from + length));
      else if (flag !== 1) {
        this.fail(grpcStatus.internal, `a message begins with ${flag}, not with 0 or 1`);
      } else if (!this.#decompress(method, Buffer.from(held.subarray(from, from + length)))) return;
      if (this.#isAnswered || this.isGone) return;
    }
    if (this.#heldStart === this.#heldEnd && this.#message === undefined) this.#dropHeld();
    if (!this.remoteOpen) this.#requestEnded(method);
    else if (this.queuedBytes <= maxQueuedBytes && !this.#isDecompressing) {
      this.#host.consumed(this);
    }
  }

  /** Ends the call; does nothing when that has happened already. */
  fail(status: GrpcErrorStatus | 4, text: string): void {
    if (this.#isAnswered || this.isGone) return;
    this.#endWith(this.#headersSent ? toErrorTrailers(status, text) : toErrorBlock(status, text));
    this.#tellMethod();
  }

  /** Nobody waits for an answer any more: reset, deadline, or the connection's end. */
  abandon(): void {
    if (this.isGone) return;
    this.isGone = true;
    this.#dropQueue();
    this.#dropHeld();
    this.#tellMethod();
  }

  /** The method has been asked and has not answered. */
  get isPending(): boolean {
    return this.#isDispatched && !this.#isAnswered;
  }

  /** What ends the answer is known, though it may have to wait. */
  get #isAnswered(): boolean {
    return !this.localOpen || this.trailers !== undefined;
  }

  get isStream(): boolean {
    return this.#handler !== undefined;
  }

  #tellMethod(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#handler?.closed();
    this.#handler = undefined;
  }

  #dispatchUnary(method: UnaryMethod, message: Buffer): void {
    this.#isDispatched = true;
    const cancel = method.answer(
      message,
      this.head.timeoutMs,
      (answer) => this.#reply(answer),
      method.needsCaller ? this.#toCaller() : undefined,
    );
    this.#dropHeld();
    if (this.localOpen) this.#cancel = cancel;
  }

  #reply(answer: GrpcAnswer): void {
    this.#cancel = undefined;
    if (this.isGone) {
      this.#host.abandonedCallEnded();
      return;
    }
    if (this.#isAnswered) return;
    if (!answer.ok) {
      this.#endWith(toErrorBlock(answer.status, answer.text));
      return;
    }
    if (this.#host.sendAnswer(this, answer.message)) {
      this.localOpen = false;
      this.#host.finished(this);
      return;
    }
    this.#queueMessage(answer.message);
    this.#endWith(okTrailers);
  }

  #toCaller(): UnaryCaller {
    const { fields } = this.head;
    return {
      peer: () => this.#host.peer(),
      header: (name) => fields.find((field) => field.name === name)?.value,
    };
  }

  #openStream(method: StreamMethod): void {
    this.#handler = method.open({
      send: (message) => {
        if (this.#isAnswered || this.isGone) return;
        this.#queueMessage(message);
        this.#host.sendQueued(this);
      },
      finish: (error) => {
        if (this.#isAnswered || this.isGone) return;
        if (error !== undefined) this.fail(error.status, error.text);
        else {
          if (!this.#headersSent) this.#sendHeaders();
          this.#endWith(okTrailers);
          this.#tellMethod();
        }
      },
    });
    // The method may have ended the call before it had a handler to tell.
    if (this.#isAnswered) this.#tellMethod();
  }

  #messageComplete(method: GrpcMethod, message: Buffer): void {
    if (method.kind === 'unary') {
      if (this.#message !== undefined) {
        this.fail(grpcStatus.internal, 'a unary call has more than one message');
      } else this.#message = message;
      return;
    }
    this.#handler?.message(message);
  }

  #requestEnded(method: GrpcMethod): void {
    if (this.#isDecompressing || this.queuedBytes > maxQueuedBytes) return;
    if (this.#heldStart !== this.#heldEnd) {
      this.fail(grpcStatus.internal, 'the request ended within a message');
    } else if (method.kind === 'stream') {
      if (this.#halfCloseTold) return;
      this.#halfCloseTold = true;
      this.#handler?.halfClose();
    } else if (this.#isDispatched) {
      return;
    } else if (this.#message === undefined) {
      this.fail(grpcStatus.internal, 'the request ended without a message');
    } else this.#dispatchUnary(method, this.#message);
  }

  /** False when the call has ended over it. */
  #decompress(method: GrpcMethod, compressed: Buffer): boolean {
    const { encoding } = this.head;
    if (encoding === '' || encoding === 'identity') {
      this.fail(grpcStatus.internal, 'grpc: compressed flag set with identity or empty encoding');
      return false;
    }
    const decompress = decompressors.get(encoding);
    if (decompress === undefined) {
      const text = `grpc: Decompressor is not installed for grpc-encoding ${JSON.stringify(encoding)}`;
      this.#endWith(toUnknownEncodingBlock(grpcStatus.unimplemented, text));
      this.#tellMethod();
      return false;
    }
    this.#isDecompressing = true;
    decompress(compressed, { maxOutputLength: maxRequestBytes }, (error, message) => {
      this.#isDecompressing = false;
      if (this.#isAnswered || this.isGone) return;
      if (error === null && !this.#count(message.length)) this.#failOverfull();
      else if (error === null) {
        this.#messageComplete(method, message);
        this.deliver();
      } else if ('code' in error && error.code === 'ERR_BUFFER_TOO_LARGE') {
        const text = `grpc: received message after decompression larger than max ${maxRequestBytes}`;
        this.fail(grpcStatus.resourceExhausted, text);
      } else {
        const text = `grpc: failed to decompress the received message: ${errorText(error)}`;
        this.fail(grpcStatus.internal, text);
      }
    });
    return true;
  }

  #failTooLarge(length: number): void {
    this.fail(
      grpcStatus.resourceExhausted,
      `grpc: received message larger than max (${length} vs. ${maxRequestBytes})`,
    );
  }

  #failOverfull(): void {
    this.fail(grpcStatus.resourceExhausted, 'too many unfinished messages on this connection');
  }

  #count(bytes: number): boolean {
    if (!this.#host.hold(bytes)) return false;
    this.#countedBytes += bytes;
    return true;
  }

  #release(bytes: number): void {
    this.#host.release(bytes);
    this.#countedBytes -= bytes;
  }

  /** Keeps a copy, beside what is already kept. */
  #hold(bytes: Buffer, start: number, end: number): boolean {
    const count = end - start;
    if (!this.#count(count)) return false;
    const before = this.#held;
    if (before === undefined || this.#heldEnd + count > before.length) {
      const kept = this.#heldEnd - this.#heldStart;
      const larger = Buffer.allocUnsafeSlow(Math.max(kept + count, 2 * kept));
      before?.copy(larger, 0, this.#heldStart, this.#heldEnd);
      this.#release(this.#heldStart);
      this.#held = larger;
      this.#heldStart = 0;
      this.#heldEnd = kept;
    }
    bytes.copy(this.#held as Buffer, this.#heldEnd, start, end);
    this.#heldEnd += count;
    return true;
  }

  #dropHeld(): void {
    if (this.#countedBytes === 0) return;
    this.#release(this.#countedBytes);
    this.#message = undefined;
    this.#held = undefined;
    this.#heldStart = 0;
    this.#heldEnd = 0;
  }

  #sendHeaders(): void {
    this.#headersSent = true;
    this.#host.sendHeaders(this, messageHeaders, false);
  }

  #queueMessage(message: Uint8Array): void {
    if (!this.#headersSent) this.#sendHeaders();
    const framed = Buffer.allocUnsafe(prefixBytes + message.length);
    framed[0] = 0;
    writeUint32(framed, 1, message.length);
    framed.set(message, prefixBytes);
    this.enqueue(framed);
  }

  /** For bodies that are not gRPC messages. */
  enqueue(bytes: Uint8Array): void {
    this.queue.push(bytes);
    this.queuedBytes += bytes.length;
  }

  /** Answers a request that is not gRPC. */
  answerHttp(headers: Uint8Array, body: Uint8Array): void {
    this.#headersSent = true;
    this.#host.sendHeaders(this, headers, false);
    this.enqueue(body);
    this.#endWith(undefined);
  }

  /** After the queue; with `undefined` the last DATA frame itself is the end. */
  #endWith(trailers: Uint8Array | undefined): void {
    this.#dropHeld();
    if (this.queue.length === 0 && trailers !== undefined) {
      this.localOpen = false;
      this.#host.sendHeaders(this, trailers, true);
      this.#host.finished(this);
      return;
    }
    this.trailers = trailers ?? noTrailers;
    this.#host.sendQueued(this);
  }

  #dropQueue(): void {
    this.queue.length = 0;
    this.queuedBytes = 0;
  }
}

/** The end is on the last DATA frame. */
export const noTrailers = new Uint8Array(0);
