// The open streams of a connection, by number.
import type { Stream } from './stream.ts';

/**
 * A power of two, as every size is; the table has twice as many slots as open calls, so that a call slightly longer
 * than the next ones keeps its slot.
 */
const fewestSlots = 8;
const mostSlots = 1024;

/**
 * A caller's streams have consecutive odd numbers, so each finds a free slot unless a call stays open much longer than
 * those around it. V8 rebuilds the table of a Map whose entries are added and removed often, and each old table retains
 * its entries and the next table until the next full collection: all calls would be promoted to the old generation.
 */
export class StreamTable {
  #slots: (Stream | undefined)[] = emptySlots(fewestSlots);
  /** Streams whose slot another stream occupies. */
  readonly #displaced = new Map<number, Stream>();
  /** The number of streams with a deadline. */
  deadlines = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: number): Stream | undefined {
    const stream = this.#slots[this.#slotOf(id)];
    if (stream?.id === id) return stream;
    return this.#displaced.size === 0 ? undefined : this.#displaced.get(id);
  }

  add(stream: Stream): void {
    this.#size++;
    if (stream.deadlineMs !== undefined) this.deadlines++;
    if (2 * this.#size > this.#slots.length && this.#slots.length < mostSlots) this.#grow();
    this.#put(stream);
  }

  /** False if it was not in the table. */
  delete(stream: Stream): boolean {
    const slot = this.#slotOf(stream.id);
    if (this.#slots[slot] === stream) this.#slots[slot] = undefined;
    else if (!this.#displaced.delete(stream.id)) return false;
    this.#size--;
    if (stream.deadlineMs !== undefined) this.deadlines--;
    return true;
  }

  /** A copy: streams may be added and removed during the iteration. */
  list(): Stream[] {
    const streams = [...this.#displaced.values()];
    for (const stream of this.#slots) if (stream !== undefined) streams.push(stream);
    return streams;
  }

  #slotOf(id: number): number {
    return (id >>> 1) & (this.#slots.length - 1);
  }

  #put(stream: Stream): void {
    const slot = this.#slotOf(stream.id);
    const before = this.#slots[slot];
    if (before !== undefined) this.#displaced.set(before.id, before);
    this.#slots[slot] = stream;
  }

  #grow(): void {
    const streams = this.list();
    this.#slots = emptySlots(2 * this.#slots.length);
    this.#displaced.clear();
    for (const stream of streams) this.#put(stream);
  }
}

function emptySlots(count: number): (Stream | undefined)[] {
  return new Array<Stream | undefined>(count).fill(undefined);
}
