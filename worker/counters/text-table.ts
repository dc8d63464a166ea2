// A map with texts as keys that grows in small steps. A full `Map` copies all its entries at once, which takes 20 to 60
// ms with 260,000 or 520,000 of them, and repeatedly when entries are added and removed equally often.

/** This many entries are copied in two milliseconds. */
export const fullSize = 32_768;
/** A million entries make parts of half that size. */
const partCount = 64;
/** How many entries move into the parts with each entry added. */
const movedPerAddition = 4;

/** An entry of the table: made by the caller, in at most one table. */
export abstract class TextEntry<Self> {
  /** An owned text (owned-text.ts), and a short one: among many entries each search reads the whole text. */
  readonly key: string;
  /** The part that has the entry; set by the table. */
  part: Map<string, Self> | undefined;

  constructor(key: string) {
    this.key = key;
    this.part = undefined;
  }
}

export class TextTable<Entry extends TextEntry<Entry>> {
  /** All entries while they are few: they then need no hash. */
  readonly #byText = new Map<string, Entry>();
  /** The entries by a hash of the text, while they are many. */
  #parts: readonly Map<string, Entry>[] | undefined;
  #inParts = 0;
  /** Iterates over the entries that have not moved into the parts yet. */
  #moving: MapIterator<Entry> | undefined;
  /** Random, so that callers cannot choose texts that share a part. */
  readonly #seed = Math.floor(Math.random() * 2 ** 32);
  /** The text that was searched last, often the next to be added, and its part. */
  #text = '';
  #part: Map<string, Entry> | undefined;

  get size(): number {
    return this.#byText.size + this.#inParts;
  }

  get(text: string): Entry | undefined {
    if (this.#parts === undefined) return this.#byText.get(text);
    this.#part = this.#partOf(this.#parts, text);
    this.#text = text;
    const entry = this.#part.get(text);
    return entry !== undefined || this.#byText.size === 0 ? entry : this.#byText.get(text);
  }

  /** Adds an entry whose key is new. */
  add(entry: Entry): void {
    if (this.#parts === undefined) {
      this.#byText.set(entry.key, entry);
      if (this.#byText.size < fullSize) return;
      this.#parts = Array.from({ length: partCount }, () => new Map<string, Entry>());
      this.#moving = this.#byText.values();
    } else this.#addTo(this.#parts, entry);
    this.#move(this.#parts);
  }

  delete(entry: Entry): void {
    if (entry.part === undefined) {
      this.#byText.delete(entry.key);
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
        this.#byText.delete(entry.key);
        this.#addTo(parts, entry);
      }
    }
  }
}
