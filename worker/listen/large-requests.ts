// Large requests of all connections, whatever their encoding, take turns: a few per round of the event loop, so
// that others are served between them, and no more at work at once than memory allows for what is made of them.

/** A request with a larger message takes its turn; of the others, a socket's buffer has not enough to hold
 * anybody up. Requests of Envoy are mostly below. */
export const largeRequestBytes = 1024;

/** How long large requests may take of a round of the event loop; one is begun in any case. */
const sliceMs = 2;

/** What a decision makes of a message: keys and what is sent to the store repeat its texts, and a descriptor
 * of a few bytes takes about 2 kB, of which a request may bring 256. */
const decodedBytesPerByte = 4;
const overheadPerByte = 128;
const maxDecodedOverheadBytes = 1_048_576;

/** What large requests at work may take; the others wait. */
const maxAtWorkBytes = 16_777_216;

/** Messages of large requests that wait for their turn; further ones are refused. */
export const maxWaitingBytes = 33_554_432;

/** A request that is whole. Its bytes are held by its connection until it is begun. */
export interface LargeRequest {
  readonly bytes: number;
  /** Has it decided. */
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
    if (this.waitingBytes + request.bytes > maxWaitingBytes) return false;
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
    } while (this.#nowMs() - startMs < sliceMs);
  }

  /** The first one, if there is room for it; one always is at work, however large. */
  #next(): LargeRequest | undefined {
    const [first] = this.#waiting;
    if (first === undefined) return undefined;
    const bytes = this.#atWorkBytes + toDecodedBytes(first);
    return this.#atWork.size === 0 || bytes <= maxAtWorkBytes ? first : undefined;
  }
}

/** About what a decision makes of it: its texts several times, and something for each descriptor. */
function toDecodedBytes({ bytes }: LargeRequest): number {
  return bytes * decodedBytesPerByte + Math.min(bytes * overheadPerByte, maxDecodedOverheadBytes);
}
