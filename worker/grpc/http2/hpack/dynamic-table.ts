// The fields that the peer has added, newest first (RFC 7541, section 2.3.2). The decoder checks the sizes that the
// peer requests.
import { createEntry, type TableEntry } from './static-table.ts';

/** Fills empty positions, so that evicted entries are freed. */
const vacant = createEntry('', '');

const smallestEntry = vacant.size;

export class DynamicTable {
  /** A ring whose size is a power of two: entries are found by their distance from the newest. */
  readonly #ring: TableEntry[];
  readonly #mask: number;
  /** Position of the next entry. */
  #next = 0;
  #count = 0;
  #size = 0;
  #maxSize: number;
  /** Changes with everything that may change the meaning of a block. */
  generation = 0;

  constructor(options: { maxSize: number; highestMaxSize: number }) {
    this.#maxSize = options.maxSize;
    const mostEntries = Math.ceil(
      Math.max(options.highestMaxSize, options.maxSize) / smallestEntry,
    );
    const length = 2 ** Math.ceil(Math.log2(Math.max(mostEntries, 1)));
    this.#ring = new Array<TableEntry>(length).fill(vacant);
    this.#mask = length - 1;
  }

  /** Index 0 is the newest entry. */
  get(index: number): TableEntry | undefined {
    return index < this.#count ? this.#ring[(this.#next - 1 - index) & this.#mask] : undefined;
  }

  add(entry: TableEntry): void {
    this.generation += 1;
    this.#evictDownTo(this.#maxSize - entry.size);
    // An entry that exceeds the size empties the table, which is not an error (section 4.4).
    if (entry.size > this.#maxSize) return;
    this.#ring[this.#next] = entry;
    this.#next = (this.#next + 1) & this.#mask;
    this.#count += 1;
    this.#size += entry.size;
  }

  resize(maxSize: number): void {
    if (maxSize === this.#maxSize) return;
    this.generation += 1;
    this.#maxSize = maxSize;
    this.#evictDownTo(maxSize);
  }

  #evictDownTo(size: number): void {
    while (this.#size > size && this.#count > 0) {
      const oldest = (this.#next - this.#count) & this.#mask;
      this.#size -= this.#ring[oldest]?.size ?? 0;
      this.#ring[oldest] = vacant;
      this.#count -= 1;
    }
  }
}
