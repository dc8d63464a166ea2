// One stream, which is one gRPC call: passes its messages to the method, and sends the method's answers. The session
// handles frames, windows and connection-wide rules.
import { gunzip, inflate } from 'node:zlib';
import { errorText } from '../../../shared/errors.ts';
import { type Budget, MessageReader, prefixBytes } from '../../../shared/grpc/message-reader.ts';
import { type GrpcErrorStatus, grpcStatus } from '../../../shared/grpc/status.ts';
import { type LargeRequest, type LargeRequests, largeRequestBytes } from '../large-requests.ts';
import type {
  GrpcMethod,
  PendingAnswer,
  StreamHandler,
  StreamMethod,
  UnaryCall,
  UnaryMethod,
} from '../method.ts';
import { okTrailers, supportedEncodings, toErrorTrailers } from './answer-blocks.ts';
import type { ConcurrencyLimiter } from './concurrency-limiter.ts';
import { readUint32, writeUint32 } from './frame.ts';
import { noHead, type RequestHead } from './request-head.ts';
import { SendQueue } from './send-queue.ts';
import type { Sender } from './sender.ts';

/** The decompressors by their names in grpc-encoding. */
const decompressors = new Map([
  ['gzip', gunzip],
  ['deflate', inflate],
]);

/** A method with this much unsent output receives no further message. */
const maxQueuedBytes = 65_536;
/** Limit of the ignored body of a request that is not gRPC; below a stream's window. */
const maxIgnoredBytes = 16_384;

interface HttpAnswer {
  readonly headers: Uint8Array;
  readonly body: Uint8Array;
}

/**
 * What a call waits for. It begins with `receiving`, may reach `ending` from each of the first four, and always reaches
 * `ended`.
 *
 * - `receiving`: the rest of the request, or further messages of a bidirectional call
 * - `decompressing`: the content of a message; messages after it are not read meanwhile
 * - `queued`: the turn of a complete unary request that is large
 * - `dispatched`: the answer of a unary method, which has the request
 * - `ending`: the peer's windows; the answer is complete, and its end will be sent
 * - `ended`: nothing; the answer was sent, or was no longer awaited after a reset or the connection's end
 */
type StreamState = 'receiving' | 'decompressing' | 'queued' | 'dispatched' | 'ending' | 'ended';

/** What a stream needs of the connection. */
export interface StreamHost extends Budget {
  readonly sender: Sender<Stream>;
  /** Called when everything was sent, including the end. */
  finished(stream: Stream): void;
  /** Called when a call ends while its method or a decompression is at work: this continues until `abandonedCallEnded`. */
  callAbandoned(): void;
  abandonedCallEnded(): void;
  /** Lets the caller send more bytes, since earlier ones were processed. */
  consumed(stream: Stream): void;
  /** Limits concurrent decompression. */
  readonly decompressions: ConcurrencyLimiter;
  /** Turns of large requests, shared by all connections. */
  readonly largeRequests: LargeRequests;
  /** The largest size of a message. */
  readonly maxRequestBytes: number;
  peer(): string;
  /** Arrival time of the bytes that are or were last read, on the monotonic clock. */
  readonly readMs: number;
}

// Every call has a stream, so fields that most calls never need are allocated lazily.
export class Stream implements UnaryCall {
  readonly #host: StreamHost;
  readonly id: number;
  /** Replaced by `noHead` when the call is abandoned. */
  head: RequestHead;
  /** Bytes held for the head. */
  readonly headBytes: number;
  readonly #method: GrpcMethod | undefined;

  /** Whether the caller may still send. */
  remoteOpen: boolean;
  #state: StreamState = 'receiving';
  /**
   * Whether a method or a decompression is still at work after the end of its call, which ignores the result. Beside the
   * state, because that work may end before or after the state changes from `ending` to `ended`.
   */
  #isAbandoned = false;

  /** Windows: the bytes that the caller may send, and those that this side may send. */
  receiveWindow: number;
  sendWindow: number;
  /** Bytes of DATA without padding, compared with content-length. */
  receivedBytes = 0;
  /** On the monotonic clock; undefined without grpc-timeout. */
  readonly deadlineMs: number | undefined;

  #pending: PendingAnswer | undefined;
  /** Whether the answer has begun. */
  #headersSent = false;
  #input: MessageReader | undefined;
  #output: SendQueue | undefined;
  #exchange: Exchange | undefined;
  #httpAnswer: HttpAnswer | undefined;
  /** A unary call's message, until the request's end arrives. */
  #message: Buffer | undefined;
  /** A message whose decompression has not begun; undefined if the call ended before. */
  #compressed: Buffer | undefined;
  /** The request while it has, or waits for, a turn. */
  #large: LargeRequest | undefined;
  /** Arrival time of the first bytes of an incomplete message, or of one that waits for the request's end. */
  #inputSinceMs = 0;
  /** Arrival time of the request's end, if its message is in `#input`. */
  #endedMs = 0;

  /** In the order of the fields. Not one object: it would be a further allocation for each call. */
  constructor(
    host: StreamHost,
    id: number,
    head: RequestHead,
    headBytes: number,
    method: GrpcMethod | undefined,
    remoteOpen: boolean,
    receiveWindow: number,
    sendWindow: number,
    deadlineMs: number | undefined,
  ) {
    this.#host = host;
    this.id = id;
    this.head = head;
    this.headBytes = headBytes;
    this.#method = method;
    this.remoteOpen = remoteOpen;
    this.receiveWindow = receiveWindow;
    this.sendWindow = sendWindow;
    this.deadlineMs = deadlineMs;
  }

  // The session calls the following methods.

  /** Starts a streaming method, which does not wait for a message. */
  open(): void {
    if (this.#method?.kind === 'stream') this.#openStream(this.#method);
  }

  /** Handles more of the request; `endStream` marks the last part. The bytes belong to the caller again afterwards. */
  data(bytes: Buffer, start: number, end: number, endStream: boolean): void {
    // The rest of a request that is already answered is ignored.
    if (this.#isOver()) return;
    if (this.#httpAnswer !== undefined) {
      this.#answerHttp(this.#httpAnswer);
      return;
    }
    const method = this.#method;
    if (
      endStream &&
      this.#input === undefined &&
      end - start >= prefixBytes &&
      bytes[start] === 0 &&
      readUint32(bytes, start + 1) === end - start - prefixBytes &&
      end - start <= largeRequestBytes &&
      method?.kind === 'unary'
    ) {
      this.#dispatchUnary(method, bytes, start + prefixBytes, end);
      return;
    }
    if (endStream) this.#endedMs = this.#host.readMs;
    if (end > start) {
      this.#input ??= new MessageReader(this.#host.maxRequestBytes, this.#host);
      if (this.#input.remaining === 0) this.#inputSinceMs = this.#host.readMs;
      if (!this.#input.add(bytes, start, end)) {
        this.#endOverfull();
        return;
      }
    }
    this.deliver();
  }

  /** Handles trailers, which end the request. */
  trailers(): void {
    this.remoteOpen = false;
    this.#endedMs = this.#host.readMs;
    this.deliver();
  }

  /** Passes on received messages while the method accepts them. */
  deliver(): void {
    const method = this.#method;
    if (this.#httpAnswer !== undefined) {
      this.#answerHttp(this.#httpAnswer);
      return;
    }
    if (method === undefined) return;
    this.#deliverMessages(method);
    if (!this.#canDeliver()) return;
    const input = this.#input;
    if (input?.remaining === 0 && this.#message === undefined) input.drop();
    if (this.remoteOpen) this.#host.consumed(this);
    else this.#requestEnded(method);
  }

  /** Ends the call, unless it is already answered. */
  end(status: GrpcErrorStatus, text: string): void {
    if (this.#isOver()) return;
    this.#abandonWork();
    this.#endWithError(status, text);
    this.#notifyMethod();
  }

  /** Answers a request that is not gRPC, but only at its end: until then it may turn out to be malformed. */
  endHttp(headers: Uint8Array, body: Uint8Array): void {
    this.#httpAnswer = { headers, body };
    this.#answerHttp(this.#httpAnswer);
  }

  /** Called when the answer is no longer awaited: after a reset, or when the connection ends. */
  abandon(): void {
    if (this.#state === 'ended') return;
    this.#abandonWork();
    this.#state = 'ended';
    this.#output?.drop();
    this.#dropInput();
    this.#notifyMethod();
  }

  /** Called when the end of the answer was sent. */
  endSent(): void {
    this.#state = 'ended';
    this.#host.finished(this);
  }

  /** Undefined if nothing was ever queued. */
  get output(): SendQueue | undefined {
    return this.#output;
  }

  get isStream(): boolean {
    return this.#exchange !== undefined;
  }

  /** Whether the method has the complete request, but has not answered. */
  get isAtWork(): boolean {
    return this.#state === 'dispatched' || this.#state === 'queued';
  }

  /** Bytes held because the caller does not continue its request. */
  get unfinished(): { readonly bytes: number; readonly sinceMs: number } | undefined {
    const bytes = this.#input?.bufferedBytes ?? 0;
    if (bytes === 0 || this.#state !== 'receiving') return undefined;
    return { bytes, sinceMs: this.#inputSinceMs };
  }

  // The following methods are for the method of a unary call.

  get receivedMs(): number {
    return this.#input === undefined ? this.#host.readMs : this.#endedMs;
  }

  peer(): string {
    return this.#host.peer();
  }

  header(name: string): string | undefined {
    return this.head.fields.find((field) => field.name === name)?.value;
  }

  succeed(message: Uint8Array, length = message.length): void {
    this.#pending = undefined;
    if (this.#large !== undefined) this.#endTurn();
    if (this.#isAbandoned) this.#host.abandonedCallEnded();
    else if (this.#state !== 'dispatched') return;
    else if (this.#host.sender.sendAnswer(this, message, length)) this.endSent();
    else {
      this.#queueMessage(message.subarray(0, length));
      this.#endWith(okTrailers);
    }
  }

  fail(status: GrpcErrorStatus, text: string): void {
    this.#pending = undefined;
    if (this.#large !== undefined) this.#endTurn();
    if (this.#isAbandoned) this.#host.abandonedCallEnded();
    else if (this.#state === 'dispatched') this.#endWithError(status, text);
  }

  /**
   * Whether nothing can be added to the answer. Not a getter: a private one costs a call of V8's runtime at each use.
   */
  #isOver(): boolean {
    return this.#state === 'ended' || this.#state === 'ending';
  }

  /** Whether the method accepts a message, if there is one. */
  #canDeliver(): boolean {
    return this.#state === 'receiving' && (this.#output?.bytes ?? 0) <= maxQueuedBytes;
  }

  /** The call ends by itself or by its peer: the result of work in progress will be ignored. */
  #abandonWork(): void {
    if (this.#state === 'queued') this.#endTurn();
    if (this.#state !== 'dispatched' && this.#state !== 'decompressing') return;
    this.#isAbandoned = true;
    this.head = noHead;
    this.#host.callAbandoned();
  }

  #answerHttp(answer: HttpAnswer): void {
    if (this.remoteOpen && this.receivedBytes <= maxIgnoredBytes) return;
    this.#httpAnswer = undefined;
    this.#headersSent = true;
    this.#host.sender.sendHeaders(this, answer.headers, false);
    this.#queue(answer.body);
    this.#endWith('endStream');
  }

  #notifyMethod(): void {
    this.#pending?.cancel();
    this.#pending = undefined;
    const handler = this.#exchange?.handler;
    if (this.#exchange !== undefined) this.#exchange.handler = undefined;
    handler?.closed();
  }

  #dispatchUnary(method: UnaryMethod, bytes: Buffer, start: number, end: number): void {
    this.#state = 'dispatched';
    const pending = method.answer(bytes, start, end, this);
    this.#dropInput();
    if (!this.#isOver()) this.#pending = pending;
  }

  /** The caller has sent everything; the method may receive it later. */
  #requestComplete(method: UnaryMethod, message: Buffer): void {
    if (message.length <= largeRequestBytes) {
      this.#dispatchUnary(method, message, 0, message.length);
      return;
    }
    const large = {
      bytes: message.length,
      begin: () => this.#dispatchUnary(method, message, 0, message.length),
    };
    if (this.#host.largeRequests.add(large)) {
      this.#large = large;
      this.#state = 'queued';
    } else this.end(grpcStatus.resourceExhausted, 'too many large requests are waiting');
  }

  #endTurn(): void {
    if (this.#large === undefined) return;
    this.#host.largeRequests.over(this.#large);
    this.#large = undefined;
  }

  #openStream(method: StreamMethod): void {
    const exchange: Exchange = { handler: undefined, isHalfClosed: false };
    this.#exchange = exchange;
    exchange.handler = method.open({
      send: (message) => {
        if (this.#isOver()) return;
        this.#host.sender.sendQueued(this, this.#queueMessage(message));
      },
      finish: (error) => {
        if (this.#isOver()) return;
        if (error !== undefined) this.end(error.status, error.text);
        else {
          this.#sendHeaders();
          this.#endWith(okTrailers);
          this.#notifyMethod();
        }
      },
    });
    // The method may have ended the call before it returned a handler.
    if (this.#isOver()) this.#notifyMethod();
  }

  #deliverMessages(method: GrpcMethod): void {
    while (this.#canDeliver()) {
      const next = this.#input?.next();
      if (next === undefined || next.kind === 'incomplete') return;
      if (next.kind === 'too-large') {
        this.end(
          grpcStatus.resourceExhausted,
          `grpc: received message larger than max (${next.length} vs. ${this.#host.maxRequestBytes})`,
        );
      } else if (next.flag === 0) this.#messageComplete(method, next.bytes);
      else if (next.flag === 1) this.#decompress(method, next.bytes);
      else this.end(grpcStatus.internal, `a message begins with ${next.flag}, not with 0 or 1`);
    }
  }

  #messageComplete(method: GrpcMethod, message: Buffer): void {
    if (method.kind === 'stream') this.#exchange?.handler?.message(message);
    else if (this.#message === undefined) this.#message = message;
    else this.end(grpcStatus.internal, 'a unary call has more than one message');
  }

  #requestEnded(method: GrpcMethod): void {
    if ((this.#input?.remaining ?? 0) > 0) {
      this.end(grpcStatus.internal, 'the request ended within a message');
    } else if (method.kind === 'stream') {
      const exchange = this.#exchange;
      if (exchange === undefined || exchange.isHalfClosed) return;
      exchange.isHalfClosed = true;
      exchange.handler?.halfClose();
    } else if (this.#message === undefined) {
      this.end(grpcStatus.internal, 'the request ended without a message');
    } else this.#requestComplete(method, this.#message);
  }

  #decompress(method: GrpcMethod, compressed: Buffer): void {
    const { encoding } = this.head;
    if (encoding === '' || encoding === 'identity') {
      const text = 'grpc: compressed flag set with identity or empty encoding';
      this.end(grpcStatus.internal, text);
      return;
    }
    const decompress = decompressors.get(encoding);
    if (decompress === undefined) {
      const shown = JSON.stringify(encoding);
      const text = `grpc: Decompressor is not installed for grpc-encoding ${shown}`;
      this.#endWithError(grpcStatus.unimplemented, text, supportedEncodings);
      this.#notifyMethod();
      return;
    }
    this.#state = 'decompressing';
    this.#compressed = compressed;
    this.#host.decompressions.run((done) => {
      const bytes = this.#compressed;
      this.#compressed = undefined;
      if (bytes === undefined) {
        this.#ignoreDecompressed();
        done();
        return;
      }
      decompress(bytes, { maxOutputLength: this.#host.maxRequestBytes }, (error, message) => {
        if (this.#state === 'decompressing') this.#decompressed(method, error, message);
        else this.#ignoreDecompressed();
        done();
      });
    });
  }

  #ignoreDecompressed(): void {
    if (this.#isAbandoned) this.#host.abandonedCallEnded();
  }

  #decompressed(method: GrpcMethod, error: Error | null, message: Buffer): void {
    this.#state = 'receiving';
    if (error !== null) this.#endDamaged(error);
    else if (this.#input?.hold(message.length) === false) this.#endOverfull();
    else {
      this.#messageComplete(method, message);
      this.deliver();
    }
  }

  #endDamaged(error: Error): void {
    if ('code' in error && error.code === 'ERR_BUFFER_TOO_LARGE') {
      const text = `grpc: received message after decompression larger than max ${this.#host.maxRequestBytes}`;
      this.end(grpcStatus.resourceExhausted, text);
    } else {
      const text = `grpc: failed to decompress the received message: ${errorText(error)}`;
      this.end(grpcStatus.internal, text);
    }
  }

  #endOverfull(): void {
    this.end(grpcStatus.resourceExhausted, 'too many unfinished messages on this connection');
  }

  #dropInput(): void {
    this.#input?.drop();
    this.#message = undefined;
    this.#compressed = undefined;
  }

  #sendHeaders(): void {
    if (this.#headersSent) return;
    this.#headersSent = true;
    this.#host.sender.sendHeaders(this, this.#host.sender.answerHeaders, false);
  }

  #queueMessage(message: Uint8Array): SendQueue {
    this.#sendHeaders();
    const framed = Buffer.allocUnsafe(prefixBytes + message.length);
    framed[0] = 0;
    writeUint32(framed, 1, message.length);
    framed.set(message, prefixBytes);
    return this.#queue(framed);
  }

  #queue(bytes: Uint8Array): SendQueue {
    this.#output ??= new SendQueue();
    this.#output.add(bytes);
    return this.#output;
  }

  #endWithError(status: GrpcErrorStatus, text: string, ...more: Uint8Array[]): void {
    const trailers = [toErrorTrailers(status, text), ...more];
    // Header blocks are independent of each other, so several can be concatenated.
    const { answerHeaders } = this.#host.sender;
    this.#endWith(Buffer.concat(this.#headersSent ? trailers : [answerHeaders, ...trailers]));
  }

  /** Sends the end after the queue; with `endStream` the last chunk has the end. */
  #endWith(end: Uint8Array | 'endStream'): void {
    this.#dropInput();
    this.#state = 'ending';
    const output = this.#output;
    if (output !== undefined && !output.isEmpty) {
      output.end = end;
      this.#host.sender.sendQueued(this, output);
    } else if (end !== 'endStream') {
      this.#host.sender.sendHeaders(this, end, true);
      this.endSent();
    }
  }
}

/** A bidirectional call. */
interface Exchange {
  /** Undefined after the handler was notified of the end. */
  handler: StreamHandler | undefined;
  isHalfClosed: boolean;
}
