// Large requests of all connections take turns: a few per round of the event loop, so that others are served
// between them, and no more at work at once than memory allows for what is made of them.
import {
  decodedBytesPerByte,
  largeRequestSliceMs,
  maxDecodedOverheadBytes,
  maxLargeRequestsAtWorkBytes,
  maxLargeRequestsWaitingBytes,
  overheadPerByte,
} from './limits.ts';

/** A request that is whole. Its bytes are held by its connection until it is begun. */
export interface LargeRequest {
  readonly bytes: number;
  /** Gives it to its method. */
  readonly begin: () => void;
}

export class LargeRequests {
  readonly #nowMs: () => number;
  readonly #waiting = new Set<LargeRequest>();
  /** Of messages, held by their connections. */
  waitingBytes = 0;
  readonly #atWork = new Set<LargeRequest>();
  #atWorkBytes = 0;
  #isScheduled = false;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** False when too much waits already. */
  add(request: LargeRequest): boolean {
    if (this.waitingBytes + request.bytes > maxLargeRequestsWaitingBytes) return false;
    this.#waiting.add(request);
    this.waitingBytes += request.bytes;
    this.#schedule();
    return true;
  }

  /** It was answered, or given up before its turn. */
  over(request: LargeRequest): void {
    if (this.#waiting.delete(request)) this.waitingBytes -= request.bytes;
    if (!this.#atWork.delete(request)) return;
    this.#atWorkBytes -= toDecodedBytes(request);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#next() === undefined) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#beginSome();
      this.#schedule();
    });
  }

  #beginSome(): void {
    const startMs = this.#nowMs();
    do {
      const request = this.#next();
      if (request === undefined) return;
      this.#waiting.delete(request);
      this.waitingBytes -= request.bytes;
      this.#atWork.add(request);
      this.#atWorkBytes += toDecodedBytes(request);
      request.begin();
    } while (this.#nowMs() - startMs < largeRequestSliceMs);
  }

  /** The first one, if there is room for it; one always is at work, however large. */
  #next(): LargeRequest | undefined {
    const [first] = this.#waiting;
    if (first === undefined) return undefined;
    const bytes = this.#atWorkBytes + toDecodedBytes(first);
    return this.#atWork.size === 0 || bytes <= maxLargeRequestsAtWorkBytes ? first : undefined;
  }
}

/** About what a decision makes of it: its texts several times, and something for each descriptor. */
function toDecodedBytes({ bytes }: LargeRequest): number {
  return bytes * decodedBytesPerByte + Math.min(bytes * overheadPerByte, maxDecodedOverheadBytes);
}
