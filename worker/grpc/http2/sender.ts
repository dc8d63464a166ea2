// Sends frames within the peer's windows (RFC 9113 section 5.2).
import type { Clock } from '../../../shared/clock.ts';
import { prefixBytes } from '../../../shared/grpc/message-reader.ts';
import { messageHeaders, okTrailers } from './answer-blocks.ts';
import { ConnectionError } from './connection-error.ts';
import {
  defaultMaxFrameBytes,
  defaultWindowBytes,
  errorCodes,
  largestWindowBytes,
} from './frame.ts';
import { maxUnsentBytes } from './limits.ts';
import { Output } from './output.ts';
import type { SendQueue } from './send-queue.ts';

/** What the sender needs of a stream. */
export interface SendingStream {
  readonly id: number;
  /** The number of bytes that may be sent. */
  sendWindow: number;
  /** Output that waits for a window. */
  readonly output: SendQueue | undefined;
  /** Called when there is room for more output. */
  deliver(): void;
  /** Called when the queue and its end were sent. */
  endSent(): void;
}

export interface SenderDeps {
  readonly clock: Clock;
  /** Called for the first output since `outputWritten`, except while the sender is muted. */
  readonly onOutput: () => void;
}

export class Sender<Stream extends SendingStream> {
  readonly output = new Output();
  readonly #deps: SenderDeps;
  /** Set while the peer's frames are read: the output is taken afterwards in any case. */
  isMuted = false;
  #isAnnounced = false;

  #window = defaultWindowBytes;
  /** Initial window of new streams. */
  initialWindow = defaultWindowBytes;
  /** Streams with output that waits for a window. */
  readonly #blocked = new Set<Stream>();
  blockedBytes = 0;
  /** Since when no blocked output could be sent. */
  blockedSinceMs: number | undefined;
  /** Whether more can be sent after the output was written, by `resume`. */
  isBlocked = false;
  /** The prefix of an answer's message. */
  answerHeaders: Uint8Array = messageHeaders;

  constructor(deps: SenderDeps) {
    this.#deps = deps;
  }

  /** Sends a complete unary answer; false when the windows do not allow it, and nothing was sent. */
  sendAnswer(stream: Stream, message: Uint8Array, length: number): boolean {
    const bytes = length + prefixBytes;
    if (
      bytes > stream.sendWindow ||
      bytes > this.#window ||
      bytes > defaultMaxFrameBytes ||
      this.#blocked.size > 0
    ) {
      return false;
    }
    // The answer ends the stream, so its window no longer matters.
    this.#window -= bytes;
    this.output.answer(stream.id, this.answerHeaders, message, length, okTrailers);
    this.announceOutput();
    return true;
  }

  sendHeaders(stream: Stream, block: Uint8Array, endStream: boolean): void {
    this.output.headers(stream.id, block, endStream);
    this.announceOutput();
  }

  /** Sends as much of the stream's queue as possible, and its end once the queue is empty. */
  sendQueued(stream: Stream, queue: SendQueue): void {
    let progressed = false;
    let count: number | undefined;
    do {
      // The output never exceeds what may wait for the peer.
      const isFull = this.output.length > maxUnsentBytes;
      if (isFull && !queue.isEmpty) this.isBlocked = true;
      const room = isFull ? 0 : Math.min(stream.sendWindow, this.#window, defaultMaxFrameBytes);
      count = queue.next(room, (chunk, start, end, endStream) =>
        this.output.data(stream.id, chunk, start, end, endStream),
      );
      stream.sendWindow -= count ?? 0;
      this.#window -= count ?? 0;
      progressed ||= count !== undefined;
    } while (count !== undefined);
    this.#noteBlocked(stream, queue, progressed);
    const { end } = queue;
    if (queue.isEmpty && end !== undefined) {
      queue.end = undefined;
      if (end !== 'endStream') this.output.headers(stream.id, end, true);
      stream.endSent();
    }
    this.announceOutput();
  }

  /** Handles a WINDOW_UPDATE for the connection. */
  windowOpened(increment: number): void {
    this.#window += increment;
    if (this.#window > largestWindowBytes) throw windowTooLarge();
    this.sendBlocked();
  }

  /** Handles a WINDOW_UPDATE for a stream; false if the window would overflow. */
  streamWindowOpened(stream: Stream, increment: number): boolean {
    stream.sendWindow += increment;
    if (stream.sendWindow > largestWindowBytes) return false;
    if (this.#blocked.has(stream)) this.#sendMore(stream);
    return true;
  }

  /**
   * Handles SETTINGS_INITIAL_WINDOW_SIZE, which also applies to open streams (section 6.9.2). Call `sendBlocked`
   * afterwards.
   */
  setInitialWindow(bytes: number, streams: readonly Stream[]): void {
    const difference = bytes - this.initialWindow;
    this.initialWindow = bytes;
    for (const stream of streams) {
      stream.sendWindow += difference;
      if (stream.sendWindow > largestWindowBytes) throw windowTooLarge();
    }
  }

  /** Sends as much of the blocked output as possible. */
  sendBlocked(): void {
    if (this.#blocked.size === 0) return;
    for (const stream of [...this.#blocked]) this.#sendMore(stream);
  }

  /** Call it when the output has been written. */
  resume(): void {
    if (!this.isBlocked) return;
    this.isBlocked = false;
    this.sendBlocked();
  }

  /** Drops the blocked output of a closed stream. */
  forget(stream: Stream): void {
    if (this.#blocked.delete(stream)) this.blockedBytes -= stream.output?.counted ?? 0;
    if (this.#blocked.size === 0) this.blockedSinceMs = undefined;
  }

  /** Call it after adding output without a method of this class. */
  announceOutput(): void {
    if (this.isMuted || this.#isAnnounced) return;
    this.#isAnnounced = true;
    this.#deps.onOutput();
  }

  /** Call it when the output was taken, so that the next one is announced. */
  outputWritten(): void {
    this.#isAnnounced = false;
  }

  #noteBlocked(stream: Stream, queue: SendQueue, progressed: boolean): void {
    this.blockedBytes += queue.bytes - queue.counted;
    queue.counted = queue.bytes;
    if (queue.bytes > 0) this.#blocked.add(stream);
    else this.#blocked.delete(stream);
    if (this.#blocked.size === 0) this.blockedSinceMs = undefined;
    else if (progressed || this.blockedSinceMs === undefined) {
      this.blockedSinceMs = this.#deps.clock.monotonicMs();
    }
  }

  #sendMore(stream: Stream): void {
    if (stream.output !== undefined) this.sendQueued(stream, stream.output);
    // The method may have been waiting for its caller to read.
    stream.deliver();
  }
}

function windowTooLarge(): ConnectionError {
  return new ConnectionError(errorCodes.flowControlError, 'a window of more than 2^31-1');
}
