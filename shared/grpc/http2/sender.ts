// What a connection says, as far as the peer's windows allow it (RFC 9113 section 5.2).
import type { Clock } from '../../clock.ts';
import { prefixBytes } from '../message-reader.ts';
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

/** What a sender has to know of a stream. */
export interface SendingStream {
  readonly id: number;
  /** How much we may send. */
  sendWindow: number;
  /** The end was not sent yet. */
  localOpen: boolean;
  /** What could not be sent yet. */
  readonly output: SendQueue | undefined;
  /** There is room again: it may have more. */
  deliver(): void;
}

export interface SenderDeps<Stream extends SendingStream> {
  readonly clock: Clock;
  /** There is output, for the first time since `outputTaken`; not while the sender is muted. */
  readonly onOutput: () => void;
  /** The stream's end was sent. */
  readonly onSent: (stream: Stream) => void;
}

export class Sender<Stream extends SendingStream> {
  readonly output = new Output();
  readonly #deps: SenderDeps<Stream>;
  /** While the peer's frames are read: who reads takes the output afterwards. */
  isMuted = false;
  #isTold = false;

  #window = defaultWindowBytes;
  /** What a new stream may send. */
  initialWindow = defaultWindowBytes;
  /** Streams with output that waits for a window. */
  readonly #blocked = new Set<Stream>();
  blockedBytes = 0;
  /** Since when nothing of what is blocked could be sent. */
  blockedSinceMs: number | undefined;
  /** There is more to be sent when the output has gone: `goOn`. */
  isHeldUp = false;
  /** Before the message of an answer. */
  answerHeaders: Uint8Array = messageHeaders;

  constructor(deps: SenderDeps<Stream>) {
    this.#deps = deps;
  }

  /** A whole unary answer, at once; false: the windows do not allow it and nothing was sent. */
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
    // The stream ends with it, so its own window is of no more interest.
    this.#window -= bytes;
    this.output.answer(stream.id, this.answerHeaders, message, length, okTrailers);
    this.tell();
    return true;
  }

  sendHeaders(stream: Stream, block: Uint8Array, endStream: boolean): void {
    this.output.headers(stream.id, block, endStream);
    this.tell();
  }

  /** As much of the stream's queue as can be sent, and its end when nothing is left. */
  sendQueued(stream: Stream, queue: SendQueue): void {
    let progressed = false;
    let count: number | undefined;
    do {
      // No more is put into the output at once than may wait for the peer.
      const isFull = this.output.length > maxUnsentBytes;
      if (isFull && !queue.isEmpty) this.isHeldUp = true;
      const room = isFull ? 0 : Math.min(stream.sendWindow, this.#window, defaultMaxFrameBytes);
      count = queue.next(room, (chunk, start, end, endStream) =>
        this.output.data(stream.id, chunk, start, end, endStream),
      );
      stream.sendWindow -= count ?? 0;
      this.#window -= count ?? 0;
      progressed ||= count !== undefined;
    } while (count !== undefined);
    this.#noteBlocked(stream, queue, progressed);
    if (queue.isEmpty && queue.end !== undefined && stream.localOpen) {
      stream.localOpen = false;
      if (queue.end !== 'endStream') this.output.headers(stream.id, queue.end, true);
      this.#deps.onSent(stream);
    }
    this.tell();
  }

  /** WINDOW_UPDATE for the connection. */
  windowOpened(increment: number): void {
    this.#window += increment;
    if (this.#window > largestWindowBytes) throw windowTooLarge();
    this.sendBlocked();
  }

  /** WINDOW_UPDATE for a stream; false: the window would be larger than a window can be. */
  streamWindowOpened(stream: Stream, increment: number): boolean {
    stream.sendWindow += increment;
    if (stream.sendWindow > largestWindowBytes) return false;
    if (this.#blocked.has(stream)) this.#sendMore(stream);
    return true;
  }

  /** SETTINGS_INITIAL_WINDOW_SIZE: counts for the streams there are, too (section 6.9.2). What that
   * allows is left to `sendBlocked`. */
  setInitialWindow(bytes: number, streams: readonly Stream[]): void {
    const difference = bytes - this.initialWindow;
    this.initialWindow = bytes;
    for (const stream of streams) {
      stream.sendWindow += difference;
      if (stream.sendWindow > largestWindowBytes) throw windowTooLarge();
    }
  }

  /** As much as can be sent of what waits. */
  sendBlocked(): void {
    if (this.#blocked.size === 0) return;
    for (const stream of [...this.#blocked]) this.#sendMore(stream);
  }

  /** To be called when the output has gone. */
  goOn(): void {
    if (!this.isHeldUp) return;
    this.isHeldUp = false;
    this.sendBlocked();
  }

  /** The stream is over: what it had to say is no longer waited for. */
  forget(stream: Stream): void {
    if (this.#blocked.delete(stream)) this.blockedBytes -= stream.output?.counted ?? 0;
    if (this.#blocked.size === 0) this.blockedSinceMs = undefined;
  }

  /** To be called after output was added that no method of this class has added. */
  tell(): void {
    if (this.isMuted || this.#isTold) return;
    this.#isTold = true;
    this.#deps.onOutput();
  }

  /** To be called when the output was taken, so that the next one is told. */
  outputTaken(): void {
    this.#isTold = false;
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
    // The method may have been kept waiting for its caller.
    stream.deliver();
  }
}

function windowTooLarge(): ConnectionError {
  return new ConnectionError(errorCodes.flowControlError, 'a window of more than 2^31-1');
}
