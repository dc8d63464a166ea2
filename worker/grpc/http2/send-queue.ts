// The output of a stream while it waits for a window.

export class SendQueue {
  readonly #chunks: Uint8Array[] = [];
  /** The number of bytes of the first chunk that were sent. */
  #start = 0;
  /** The number of bytes that wait. */
  bytes = 0;
  /** The part of `bytes` that the session has counted as blocked. */
  counted = 0;
  /** Trailers to send after the last chunk; with `endStream` the last chunk itself ends the stream. */
  end: Uint8Array | 'endStream' | undefined;

  get isEmpty(): boolean {
    return this.#chunks.length === 0;
  }

  add(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
    this.bytes += chunk.length;
  }

  /**
   * Passes at most `room` bytes of the first chunk to `send`, and whether they end the stream; returns the number of
   * bytes. An empty chunk needs no room.
   */
  next(
    room: number,
    send: (chunk: Uint8Array, start: number, end: number, endStream: boolean) => void,
  ): number | undefined {
    const [chunk] = this.#chunks;
    if (chunk === undefined) return undefined;
    const start = this.#start;
    const count = Math.min(room, chunk.length - start);
    if (count <= 0 && chunk.length > 0) return undefined;
    const end = start + count;
    if (end === chunk.length) {
      this.#chunks.shift();
      this.#start = 0;
    } else this.#start = end;
    this.bytes -= count;
    send(chunk, start, end, this.end === 'endStream' && this.isEmpty);
    return count;
  }

  drop(): void {
    this.#chunks.length = 0;
    this.bytes = 0;
  }
}
