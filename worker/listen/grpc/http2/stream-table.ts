// The open streams of a connection, by number.
import type { Stream } from './stream.ts';

export class StreamTable {
  /** All but the latest. */
  readonly #earlier = new Map<number, Stream>();
  /** Most calls are answered before the next one begins, and never get into the map. */
  #latest: Stream | undefined;
  /** How many have a deadline. */
  deadlines = 0;

  get size(): number {
    return this.#earlier.size + (this.#latest === undefined ? 0 : 1);
  }

  get(id: number): Stream | undefined {
    return this.#latest?.id === id ? this.#latest : this.#earlier.get(id);
  }

  add(stream: Stream): void {
    if (this.#latest !== undefined) this.#earlier.set(this.#latest.id, this.#latest);
    this.#latest = stream;
    if (stream.deadlineMs !== undefined) this.deadlines++;
  }

  /** False when it was not there. */
  delete(stream: Stream): boolean {
    if (this.#latest === stream) this.#latest = undefined;
    else if (!this.#earlier.delete(stream.id)) return false;
    if (stream.deadlineMs !== undefined) this.deadlines--;
    return true;
  }

  /** As they are now: streams may come and go while the list is gone through. */
  list(): Stream[] {
    const streams = [...this.#earlier.values()];
    if (this.#latest !== undefined) streams.push(this.#latest);
    return streams;
  }
}
