// Limits the memory kept for open streams: the names that they request or hold, and their nodes, all together in bytes.
// A stream that wants everything keeps next to nothing.

/** A stream. */
export interface NameKeeper {
  /** The stream must close and free what it keeps. */
  keepsMost(): void;
}

/** Overhead of a string and its entries in sets and maps. */
const bytesPerName = 128;

export class KeptNames {
  readonly #maxBytes: number;
  readonly #keepers = new Map<NameKeeper, number>();
  #totalBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Sets the bytes that a stream keeps. Beyond the limit, the streams that keep the most are closed, so that greedy
   * streams never displace a modest one. */
  keep(keeper: NameKeeper, bytes: number): void {
    this.#set(keeper, bytes);
    while (this.#totalBytes > this.#maxBytes) {
      const largest = this.#findLargest();
      if (largest === undefined) return;
      this.#set(largest, 0);
      largest.keepsMost();
    }
  }

  #set(keeper: NameKeeper, bytes: number): void {
    this.#totalBytes += bytes - (this.#keepers.get(keeper) ?? 0);
    if (bytes > 0) this.#keepers.set(keeper, bytes);
    else this.#keepers.delete(keeper);
  }

  #findLargest(): NameKeeper | undefined {
    let largest: NameKeeper | undefined;
    let most = 0;
    for (const [keeper, bytes] of this.#keepers) {
      if (bytes > most) [largest, most] = [keeper, bytes];
    }
    return largest;
  }
}

/** Approximate bytes of these texts. */
export function toKeptBytes(texts: Iterable<string>): number {
  let bytes = 0;
  for (const text of texts) bytes += bytesPerName + text.length;
  return bytes;
}
