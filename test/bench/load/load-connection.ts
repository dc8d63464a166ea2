// One HTTP/2 connection that sends requests and checks their answers. It writes once per batch of answers, so that a
// request costs little; the caller decides which request is due when.
import type { Socket } from 'node:net';
import { flags as frameFlags, frameTypes, settingIds } from '../../support/http2-frames.ts';
import { createAnswerHeaders, facts } from './answer-headers.ts';
import { readAnswer } from './answer-message.ts';
import { FrameOutput } from './frame-output.ts';
import { createFrameReader, type FrameHandler } from './frame-reader.ts';
import { defaultWindow, frameHeaderLength, writeFrameHeader, writeStreamId } from './frames.ts';
import { createHeaderBlocks, type HeaderBlocks, maxBlockLength } from './header-blocks.ts';
import { type RequestTemplate, writeDigits } from './request-template.ts';
import { addFailure, type Tally } from './tally.ts';

/** How much the peer may send, on the connection and on each stream. */
const receiveWindow = 16 << 20;
/** Space for a frame that answers one of the peer's. */
const controlLength = 64;
const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const codeCancel = 8;

export interface LoadConnectionOptions {
  readonly socket: Socket;
  readonly tally: Tally;
  readonly template: RequestTemplate;
  readonly isTls: boolean;
  readonly hasTrace: boolean;
  readonly concurrency: number;
  readonly timeoutMs: number;
  readonly expected: { readonly overallCode: number; readonly statuses: number | undefined };
  /** The number of the next request's key. */
  readonly nextKey: () => number;
  /** Whether each answer causes a new request; otherwise only `enqueue` does. */
  readonly isClosedLoop: boolean;
}

interface Stream {
  id: number;
  /** When its latency begins: when it was written or, in an open loop, when it was due. */
  atMs: number;
  /** 0 until it is written. */
  sentMs: number;
  /** The facts in its headers and trailers. */
  found: number;
  /** The part received so far of a message in several frames. */
  body: Buffer | undefined;
  isExpected: boolean;
}

/** HEADERS and DATA of a request, with the message at `messageAt`. */
interface PreparedRequest {
  readonly bytes: Buffer;
  readonly messageAt: number;
}

export class LoadConnection implements FrameHandler {
  /** Requests begun before this moment are not measured. */
  measuredFromMs = Number.POSITIVE_INFINITY;
  isSending = false;

  readonly #options: LoadConnectionOptions;
  readonly #headers: HeaderBlocks;
  readonly #output: FrameOutput;
  readonly #reader = createFrameReader(this);
  readonly #answers = createAnswerHeaders();
  readonly #streams = new Map<number, Stream>();
  readonly #spare: Stream[] = [];
  /** Requests in the output buffer, whose time starts when they are written. */
  readonly #fresh: Stream[] = [];
  /** When the unsent requests of an open loop were due. */
  readonly #queue: number[] = [];
  #queueHead = 0;
  /** Undefined while the headers still change between requests. */
  #prepared: PreparedRequest | undefined;
  #nextId = 1;
  /** When the chunk being read arrived. */
  #nowMs = 0;
  #window = defaultWindow;
  #peerLimit = Number.POSITIVE_INFINITY;
  #received = 0;
  #isClosed = false;
  readonly #ready = Promise.withResolvers<void>();

  constructor(options: LoadConnectionOptions) {
    this.#options = options;
    this.#headers = createHeaderBlocks(options);
    const { socket } = options;
    socket.on('error', (error) => this.#giveUp(`connection lost: ${error.message}`));
    socket.on('close', () => this.#giveUp('connection lost'));
    this.#output = new FrameOutput(socket);
    this.#output.end = preface.copy(this.#output.bytes);
    const ours = Buffer.alloc(12);
    ours.writeUInt16BE(settingIds.enablePush, 0);
    ours.writeUInt16BE(settingIds.initialWindowSize, 6);
    ours.writeUInt32BE(receiveWindow, 8);
    this.#output.appendFrame(frameTypes.settings, 0, 0, ours);
    this.#output.appendNumberFrame(frameTypes.windowUpdate, 0, receiveWindow - defaultWindow);
    this.flush();
  }

  /** Resolves with the peer's settings; nothing may be sent before that. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  get inFlight(): number {
    return this.#streams.size;
  }

  /** The number of requests that are due and not yet sent. */
  get queued(): number {
    return this.#queue.length - this.#queueHead;
  }

  enqueue(dueMs: number): void {
    this.#queue.push(dueMs);
  }

  receive(chunk: Buffer): void {
    if (this.#isClosed) return;
    this.#nowMs = performance.now();
    try {
      this.#reader.read(chunk);
    } catch (error) {
      this.#giveUp((error as Error).message);
      return;
    }
    this.pump();
    this.flush();
  }

  /** Sends requests as long as there are any and the limits allow it. */
  pump(): void {
    if (!this.isSending || this.#isClosed) return;
    const { concurrency, isClosedLoop, template } = this.#options;
    const limit = Math.min(concurrency, this.#peerLimit);
    while (this.#streams.size < limit && this.#window >= template.message.length) {
      if (isClosedLoop) {
        this.#send(0);
      } else if (this.#queueHead < this.#queue.length) {
        this.#send(this.#queue[this.#queueHead++] as number);
      } else {
        this.#queue.length = 0;
        this.#queueHead = 0;
        return;
      }
    }
  }

  /** Writes the output buffer; the time of its requests starts now. */
  flush(): void {
    if (this.#output.end === 0 || this.#isClosed) return;
    const nowMs = performance.now();
    for (const stream of this.#fresh) {
      stream.sentMs = nowMs;
      if (stream.atMs === 0) {
        stream.atMs = nowMs;
      } else if (stream.atMs >= this.measuredFromMs) {
        this.#options.tally.sendLag.add((nowMs - stream.atMs) * 1000);
      }
    }
    this.#fresh.length = 0;
    this.#output.write();
  }

  /** Aborts requests that have waited too long. */
  endOverdue(nowMs: number): void {
    for (const stream of this.#streams.values()) {
      if (stream.sentMs === 0 || nowMs - stream.sentMs <= this.#options.timeoutMs) continue;
      this.#ensureRoom(controlLength);
      this.#output.appendNumberFrame(frameTypes.rstStream, stream.id, codeCancel);
      this.#fail(stream, 'timeout');
    }
    this.pump();
    this.flush();
  }

  close(): void {
    this.#isClosed = true;
    this.#options.socket.destroy();
  }

  onData(id: number, bytes: Buffer, start: number, end: number, ends: boolean): void {
    this.#received += end - start;
    if (this.#received >= receiveWindow / 2) {
      this.#ensureRoom(controlLength);
      this.#output.appendNumberFrame(frameTypes.windowUpdate, 0, this.#received);
      this.#received = 0;
    }
    const stream = this.#streams.get(id);
    if (stream === undefined) return; // reset by us before it came
    if (stream.body === undefined && !stream.isExpected && this.#isExpected(bytes, start, end)) {
      stream.isExpected = true;
    } else if (start < end) {
      stream.body = Buffer.concat([stream.body ?? Buffer.alloc(0), bytes.subarray(start, end)]);
      stream.isExpected = this.#isExpected(stream.body, 0, stream.body.length);
    }
    if (ends) this.#finish(stream);
  }

  onHeaders(id: number, bytes: Buffer, start: number, end: number, ends: boolean): void {
    const found = this.#answers.read(bytes, start, end);
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    stream.found |= found;
    if (ends) this.#finish(stream);
  }

  onReset(id: number, code: number): void {
    const stream = this.#streams.get(id);
    if (stream !== undefined) this.#fail(stream, `reset ${code}`);
  }

  onSettings(bytes: Buffer, start: number, end: number): void {
    for (let offset = start; offset + 6 <= end; offset += 6) {
      const value = bytes.readUInt32BE(offset + 2);
      switch (bytes.readUInt16BE(offset)) {
        case settingIds.headerTableSize:
          this.#headers.setTableSize(value);
          this.#prepared = undefined;
          break;
        case settingIds.maxConcurrentStreams:
          this.#peerLimit = value;
          break;
        case settingIds.initialWindowSize:
          if (value >= this.#options.template.message.length) break;
          throw new Error('a stream window smaller than a request');
      }
    }
    this.#ensureRoom(controlLength);
    this.#output.appendFrame(frameTypes.settings, frameFlags.ack, 0, Buffer.alloc(0));
    this.#ready.resolve();
  }

  onPing(payload: Buffer): void {
    this.#ensureRoom(controlLength);
    this.#output.appendFrame(frameTypes.ping, frameFlags.ack, 0, payload);
  }

  onGoAway(code: number): void {
    throw new Error(`the service sent GOAWAY ${code}`);
  }

  onWindowUpdate(id: number, increment: number): void {
    // A request fits in any stream's first window.
    if (id === 0) this.#window += increment;
  }

  #send(dueMs: number): void {
    const { template, nextKey } = this.#options;
    const id = this.#nextId;
    this.#nextId += 2;
    const stream = this.#spare.pop() ?? ({} as Stream);
    stream.id = id;
    stream.atMs = dueMs;
    stream.sentMs = 0;
    stream.found = 0;
    stream.body = undefined;
    stream.isExpected = false;
    this.#streams.set(id, stream);
    this.#window -= template.message.length;
    this.#ensureRoom(2 * frameHeaderLength + maxBlockLength + template.message.length);
    this.#fresh.push(stream);

    this.#prepared ??= this.#prepare();
    const messageAt =
      this.#prepared === undefined ? this.#writeRequest(id) : this.#copyRequest(this.#prepared, id);
    const key = nextKey();
    for (const digits of template.digits) writeDigits(this.#output.bytes, messageAt + digits, key);
    this.#output.end = messageAt + template.message.length;
  }

  /** Returns where the message begins. */
  #writeRequest(id: number): number {
    const { bytes, end } = this.#output;
    const { message } = this.#options.template;
    const blockAt = end + frameHeaderLength;
    const dataAt = this.#headers.append(bytes, blockAt);
    const { endHeaders, endStream } = frameFlags;
    writeFrameHeader(bytes, end, dataAt - blockAt, frameTypes.headers, endHeaders, id);
    writeFrameHeader(bytes, dataAt, message.length, frameTypes.data, endStream, id);
    bytes.set(message, dataAt + frameHeaderLength);
    return dataAt + frameHeaderLength;
  }

  #copyRequest(prepared: PreparedRequest, id: number): number {
    const { bytes, end } = this.#output;
    bytes.set(prepared.bytes, end);
    writeStreamId(bytes, end + frameHeaderLength - 4, id);
    writeStreamId(bytes, end + prepared.messageAt - 4, id);
    return end + prepared.messageAt;
  }

  #prepare(): PreparedRequest | undefined {
    const block = this.#headers.constantBlock();
    if (block === undefined) return undefined;
    const { message } = this.#options.template;
    const dataAt = frameHeaderLength + block.length;
    const bytes = Buffer.alloc(dataAt + frameHeaderLength + message.length);
    const { endHeaders, endStream } = frameFlags;
    writeFrameHeader(bytes, 0, block.length, frameTypes.headers, endHeaders, 0);
    bytes.set(block, frameHeaderLength);
    writeFrameHeader(bytes, dataAt, message.length, frameTypes.data, endStream, 0);
    bytes.set(message, dataAt + frameHeaderLength);
    return { bytes, messageAt: dataAt + frameHeaderLength };
  }

  #isExpected(bytes: Buffer, start: number, end: number): boolean {
    const answer = readAnswer(bytes, start, end);
    if (answer === undefined) return false;
    const { overallCode, statuses } = this.#options.expected;
    // During the warm-up, no key is over its limit yet.
    const isWarmingUp = this.measuredFromMs === Number.POSITIVE_INFINITY;
    return (
      (answer.overallCode === overallCode || isWarmingUp) &&
      (statuses === undefined || answer.statuses === statuses)
    );
  }

  #finish(stream: Stream): void {
    if ((stream.found & facts.httpOk) === 0) {
      this.#fail(stream, 'malformed: the HTTP status is not 200');
    } else if ((stream.found & facts.grpcOther) !== 0) {
      this.#fail(stream, `grpc-status ${this.#answers.otherStatus}`);
    } else if ((stream.found & facts.grpcOk) === 0) {
      this.#fail(stream, 'malformed: no grpc-status');
    } else if (!stream.isExpected) {
      this.#fail(stream, 'not the expected answer');
    } else {
      const { tally } = this.#options;
      tally.answered++;
      if (stream.atMs >= this.measuredFromMs) tally.latency.add((this.#nowMs - stream.atMs) * 1000);
      this.#release(stream);
    }
  }

  #fail(stream: Stream, kind: string): void {
    addFailure(this.#options.tally, kind);
    this.#release(stream);
  }

  #release(stream: Stream): void {
    this.#streams.delete(stream.id);
    this.#spare.push(stream);
  }

  /** Ends a connection that the load still needs, with a reason. */
  #giveUp(reason: string): void {
    if (this.#isClosed) return;
    this.#ready.reject(new Error(reason));
    for (const stream of this.#streams.values()) this.#fail(stream, reason);
    // Counted even if no request was in flight: some load was not generated.
    addFailure(this.#options.tally, reason);
    this.close();
  }

  #ensureRoom(length: number): void {
    if (!this.#output.hasRoom(length)) this.flush();
  }
}
