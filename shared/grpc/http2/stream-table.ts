// The open streams of a connection, by number.
import type { Stream } from './stream.ts';

/** Powers of two; twice as many as calls are open at once, so that a call which is open for a little longer
 * than the next ones keeps its slot. */
const fewestSlots = 8;
const mostSlots = 1024;

/**
 * Streams of a caller have the odd numbers in turn, so each has a slot that is free unless a call is
 * open for much longer than those around it. A map in which calls come and go for ever would make itself
 * anew every few of them, and each of its former tables keeps what was in it, and the next table, until
 * the next full collection: so all calls would grow old.
 */
export class StreamTable {
  #slots: (Stream | undefined)[] = emptySlots(fewestSlots);
  /** Those whose slot another one has taken since. */
  readonly #displaced = new Map<number, Stream>();
  /** How many have a deadline. */
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

  /** False when it was not there. */
  delete(stream: Stream): boolean {
    const slot = this.#slotOf(stream.id);
    if (this.#slots[slot] === stream) this.#slots[slot] = undefined;
    else if (!this.#displaced.delete(stream.id)) return false;
    this.#size--;
    if (stream.deadlineMs !== undefined) this.deadlines--;
    return true;
  }

  /** As they are now: streams may come and go while the list is gone through. */
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
