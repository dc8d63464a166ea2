// What streams make us keep for as long as they are open: the names that they ask for and say that they
// have, and their nodes. Together so many bytes; a stream that wants everything keeps next to nothing.

export interface KeptNames {
  /** For one stream; `end` is called when it has to go, and must give up what it keeps. */
  open(end: () => void): (bytes: number) => void;
}

/** A string and its places in sets and maps, beside its characters. */
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

  /** Who keeps the most goes, so that no number of greedy streams takes the place of a modest one. */
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

/** About what these texts take. */
export function toKeptBytes(texts: Iterable<string>): number {
  let bytes = 0;
  for (const text of texts) bytes += bytesPerName + text.length;
  return bytes;
}
