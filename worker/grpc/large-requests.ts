// Large requests of all connections, in any encoding, take turns: a few per round of the event loop, so that others are
// served between them, and only as many at the same time as memory allows.

/**
 * Requests with a larger message take turns. One socket buffer has too few smaller ones to delay others. Envoy's
 * requests are mostly smaller.
 */
export const largeRequestBytes = 1024;

/** Time for large requests per round of the event loop; at least one is started in each. */
export const sliceMs = 2;

/**
 * Memory of a decision in relation to its message: keys and commands to the store repeat its texts, and a descriptor of
 * a few bytes, of which a request may have 256, takes about 2 kB.
 */
const decodedBytesPerByte = 4;
const overheadPerByte = 128;
const maxDecodedOverheadBytes = 1_048_576;

/** Memory for large requests in progress; others wait. */
export const maxAtWorkBytes = 16_777_216;

/** Bytes of large requests that wait for their turn; further ones are refused. */
export const maxWaitingBytes = 33_554_432;

/** A complete request. Its connection stores its bytes until it starts. */
export interface LargeRequest {
  readonly bytes: number;
  /** Starts the decision. */
  readonly begin: () => void;
}

export class LargeRequests {
  readonly #nowMs: () => number;
  readonly #waiting = new Set<LargeRequest>();
  /** Bytes of waiting messages, which their connections store. */
  waitingBytes = 0;
  readonly #atWork = new Set<LargeRequest>();
  #atWorkBytes = 0;
  #isScheduled = false;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** False when too many bytes are waiting already. */
  add(request: LargeRequest): boolean {
    if (this.waitingBytes + request.bytes > maxWaitingBytes) return false;
    this.#waiting.add(request);
    this.waitingBytes += request.bytes;
    this.#schedule();
    return true;
  }

  /** Call it when a request was answered, or abandoned before its turn. */
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
    } while (this.#nowMs() - startMs < sliceMs);
  }

  /** The first waiting request, if there is room for it; if none is in progress, whatever its size. */
  #next(): LargeRequest | undefined {
    const [first] = this.#waiting;
    if (first === undefined) return undefined;
    const bytes = this.#atWorkBytes + toDecodedBytes(first);
    return this.#atWork.size === 0 || bytes <= maxAtWorkBytes ? first : undefined;
  }
}

/** Approximate memory of the request's decision: several copies of its texts, and a share for each descriptor. */
function toDecodedBytes({ bytes }: LargeRequest): number {
  return bytes * decodedBytesPerByte + Math.min(bytes * overheadPerByte, maxDecodedOverheadBytes);
}
