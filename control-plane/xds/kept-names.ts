// Bounds what is kept for open streams: the names that they ask for or say they have, and their nodes, all
// together in bytes. A stream that wants everything keeps next to nothing.

export interface KeptNames {
  /** For one stream; `end` is called when it has to close, and must free what it keeps. */
  open(end: () => void): (bytes: number) => void;
}

/** Overhead of a string and its entries in sets and maps. */
const bytesPerName = 128;

export function createKeptNames(maxBytes: number): KeptNames {
  const streams = new Map<() => void, number>();
  let totalBytes = 0;

  function set(end: () => void, bytes: number): void {
    totalBytes += bytes - (streams.get(end) ?? 0);
    if (bytes > 0) streams.set(end, bytes);
    else streams.delete(end);
  }

  function findLargest(): (() => void) | undefined {
    let largest: (() => void) | undefined;
    let most = 0;
    for (const [end, bytes] of streams) {
      if (bytes > most) [largest, most] = [end, bytes];
    }
    return largest;
  }

  /** The stream that keeps most is closed, so that greedy streams never displace a modest one. */
  function relieve(): void {
    while (totalBytes > maxBytes) {
      const end = findLargest();
      if (end === undefined) return;
      set(end, 0);
      end();
    }
  }

  return {
    open: (end) => (bytes) => {
      set(end, bytes);
      relieve();
    },
  };
}

/** Approximate bytes of these texts. */
export function toKeptBytes(texts: Iterable<string>): number {
  let bytes = 0;
  for (const text of texts) bytes += bytesPerName + text.length;
  return bytes;
}
