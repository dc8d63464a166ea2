// Limits the memory kept for open streams: the names that they request or hold, and their nodes, all together in bytes.
// A stream that wants everything keeps next to nothing.

/** A stream. */
export interface NameHolder {
  /** The stream must close and free what it keeps. */
  closeAsLargest(): void;
}

/** Overhead of a string and its entries in sets and maps. */
const bytesPerName = 128;

export class RetainedNames {
  readonly #maxBytes: number;
  readonly #holders = new Map<NameHolder, number>();
  #totalBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Sets the bytes that a stream keeps. Beyond the limit, the streams that keep the most are closed, so that greedy
   * streams never displace a modest one. */
  retain(holder: NameHolder, bytes: number): void {
    this.#set(holder, bytes);
    while (this.#totalBytes > this.#maxBytes) {
      const largest = this.#findLargest();
      if (largest === undefined) return;
      this.#set(largest, 0);
      largest.closeAsLargest();
    }
  }

  #set(holder: NameHolder, bytes: number): void {
    this.#totalBytes += bytes - (this.#holders.get(holder) ?? 0);
    if (bytes > 0) this.#holders.set(holder, bytes);
    else this.#holders.delete(holder);
  }

  #findLargest(): NameHolder | undefined {
    let largest: NameHolder | undefined;
    let most = 0;
    for (const [holder, bytes] of this.#holders) {
      if (bytes > most) [largest, most] = [holder, bytes];
    }
    return largest;
  }
}

/** Approximate bytes of these texts. */
export function toRetainedBytes(texts: Iterable<string>): number {
  let bytes = 0;
  for (const text of texts) bytes += bytesPerName + text.length;
  return bytes;
}
