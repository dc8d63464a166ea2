// Stores how streams were closed, to distinguish late frames on them: in flight when this side reset the stream, or a
// protocol error (RFC 9113 section 5.1, closed).

import { maxConcurrentStreams } from './limits.ts';

/** As many as a peer may regard as open: each may have frames in flight. */
const maxReset = maxConcurrentStreams;
const maxPassedOver = 256;

export class ClosedStreams {
  /** The number of the newest stream that the peer has opened. */
  highest = 0;
  readonly #resetByUs = new Set<number>();
  /** Skipped numbers are closed without having been opened. */
  readonly #passedOver: { readonly from: number; readonly to: number }[] = [];

  /** Call it when the peer opens a stream; `id` is above `highest`. */
  opened(id: number): void {
    if (id > this.highest + 2) {
      this.#passedOver.push({ from: this.highest + 1, to: id - 1 });
      if (this.#passedOver.length > maxPassedOver) this.#passedOver.shift();
    }
    this.highest = id;
  }

  /** Call it when this side ends the stream while the peer may still be sending on it. */
  reset(id: number): void {
    this.#resetByUs.add(id);
    if (this.#resetByUs.size <= maxReset) return;
    const [oldest] = this.#resetByUs;
    this.#resetByUs.delete(oldest as number);
  }

  wasResetByUs(id: number): boolean {
    return this.#resetByUs.has(id);
  }

  /** True if the stream is neither open nor closed. */
  isIdle(id: number): boolean {
    return id > this.highest || (id & 1) === 0;
  }

  wasPassedOver(id: number): boolean {
    return this.#passedOver.some(({ from, to }) => id >= from && id <= to);
  }
}
