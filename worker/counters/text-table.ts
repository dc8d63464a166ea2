// A map by text that grows in small steps. A `Map` copies all its entries at once when it is full: 20 to 60 ms where it
// has 260,000 or 520,000, and again and again where as many come as go.

/** So many entries are copied in two milliseconds. */
export const wholeSize = 32_768;
/** A million entries make parts of half that size. */
const partCount = 64;
/** Entries that move into the parts with each one that is added. */
const movedPerAddition = 4;

/** What is kept in the table: made by the caller, in one table at most. */
export abstract class TextEntry<Self> {
  /** Owned (owned-text.ts), and short: beside many others each search reads all of the text. */
  readonly key: string;
  /** Set by the table: the part that has the entry. */
  part: Map<string, Self> | undefined;

  constructor(key: string) {
    this.key = key;
    this.part = undefined;
  }
}

export class TextTable<Entry extends TextEntry<Entry>> {
  /** All entries while they are few: there they need no hash of ours. */
  readonly #whole = new Map<string, Entry>();
  /** The entries by a hash of the text, while they are many. */
  #parts: readonly Map<string, Entry>[] | undefined;
  #inParts = 0;
  /** Over the entries that have not moved into the parts yet. */
  #moving: MapIterator<Entry> | undefined;
  /** Random, so that callers cannot choose texts of one part. */
  readonly #seed = Math.floor(Math.random() * 2 ** 32);
  /** The text that was searched last, which is often added next, and its part. */
  #text = '';
  #part: Map<string, Entry> | undefined;

  get size(): number {
    return this.#whole.size + this.#inParts;
  }

  get(text: string): Entry | undefined {
    if (this.#parts === undefined) return this.#whole.get(text);
    this.#part = this.#partOf(this.#parts, text);
    this.#text = text;
    const entry = this.#part.get(text);
    return entry !== undefined || this.#whole.size === 0 ? entry : this.#whole.get(text);
  }

  /** There is no entry of its key yet. */
  add(entry: Entry): void {
    if (this.#parts === undefined) {
      this.#whole.set(entry.key, entry);
      if (this.#whole.size < wholeSize) return;
      this.#parts = Array.from({ length: partCount }, () => new Map<string, Entry>());
      this.#moving = this.#whole.values();
    } else this.#addTo(this.#parts, entry);
    this.#move(this.#parts);
  }

  delete(entry: Entry): void {
    if (entry.part === undefined) {
      this.#whole.delete(entry.key);
      return;
    }
    entry.part.delete(entry.key);
    entry.part = undefined;
    this.#inParts--;
    if (this.#inParts > 0) return;
    this.#parts = undefined;
    this.#part = undefined;
    this.#moving = undefined;
  }

  #addTo(parts: readonly Map<string, Entry>[], entry: Entry): void {
    const { key } = entry;
    entry.part =
      this.#part !== undefined && key === this.#text ? this.#part : this.#partOf(parts, key);
    entry.part.set(key, entry);
    this.#inParts++;
  }

  #partOf(parts: readonly Map<string, Entry>[], text: string): Map<string, Entry> {
    let hash = this.#seed;
    for (let index = 0; index < text.length; index++) {
      hash = Math.imul(hash ^ text.charCodeAt(index), 0x9e3779b1);
    }
    // The high bits of a product depend on all of its factors' bits, the low ones do not.
    return parts[hash >>> 26] as Map<string, Entry>;
  }

  #move(parts: readonly Map<string, Entry>[]): void {
    for (let moved = 0; this.#moving !== undefined && moved < movedPerAddition; moved++) {
      const { value: entry } = this.#moving.next();
      if (entry === undefined) {
        this.#moving = undefined;
      } else {
        this.#whole.delete(entry.key);
        this.#addTo(parts, entry);
      }
    }
  }
}
