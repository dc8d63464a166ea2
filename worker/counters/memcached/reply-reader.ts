// Splits the bytes of a memcached server into lines and values. connection.ts assigns answers to commands.

export interface ReplyReader {
  /** Takes the next bytes. Returns a complaint about them, after which nothing more may be fed. */
  feed(chunk: Buffer): string | undefined;
}

export interface ReplyReaderDeps {
  /** A line without its end. */
  readonly onLine: (line: string) => void;
  /** One item of a `gets`; `text` is undefined for a value too long to be a counter. */
  readonly onValue: (key: string, text: string | undefined) => void;
}

/** The longest expected line is a `VALUE` with its key. */
const maxLineBytes = 2_048;
/** A counter has at most 20 digits; a longer value, which another program has set, is skipped without being
 * kept. */
const maxCounterBytes = 64;
const lineEnd = '\r\n';

export function createReplyReader({ onLine, onValue }: ReplyReaderDeps): ReplyReader {
  let rest: Buffer = Buffer.alloc(0);
  /** The value whose bytes follow. */
  let block: { readonly key: string; readonly length: number } | undefined;
  let bytesToSkip = 0;
  return { feed };

  function feed(chunk: Buffer): string | undefined {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    for (;;) {
      const taken = bytesToSkip > 0 ? skip() : block === undefined ? takeLine() : takeBlock(block);
      if (typeof taken === 'string') return taken;
      if (!taken) return undefined;
    }
  }

  /** The three below return false when more bytes are needed, and a text when they are wrong. */
  function skip(): boolean {
    const count = Math.min(bytesToSkip, rest.length);
    rest = rest.subarray(count);
    bytesToSkip -= count;
    return bytesToSkip === 0;
  }

  function takeBlock({ key, length }: { key: string; length: number }): boolean | string {
    if (rest.length < length + lineEnd.length) return false;
    const text = rest.toString('latin1', 0, length);
    if (rest.toString('latin1', length, length + lineEnd.length) !== lineEnd) {
      return 'a value of another length than was announced';
    }
    rest = rest.subarray(length + lineEnd.length);
    block = undefined;
    onValue(key, text);
    return true;
  }

  function takeLine(): boolean | string {
    const end = rest.indexOf(lineEnd);
    if (end > maxLineBytes || (end === -1 && rest.length > maxLineBytes)) return 'an endless line';
    if (end === -1) return false;
    const line = rest.toString('utf8', 0, end);
    rest = rest.subarray(end + lineEnd.length);
    if (!line.startsWith('VALUE ')) {
      onLine(line);
      return true;
    }
    const [, key, digits] = /^VALUE ([^ ]+) \d+ (\d{1,10})(?: \d+)?$/.exec(line) ?? [];
    if (key === undefined) return 'an unreadable value';
    const length = Number(digits);
    if (length <= maxCounterBytes) {
      block = { key, length };
    } else {
      bytesToSkip = length + lineEnd.length;
      onValue(key, undefined);
    }
    return true;
  }
}
