// Splits the bytes of a memcached server into lines and values. connection.ts assigns answers to commands.

export interface ReplyReaderDeps {
  /** Called with a line without its line end. */
  readonly onLine: (line: string) => void;
  /** Called with one item of a `gets`; `text` is undefined for a value too long to be a counter. */
  readonly onValue: (key: string, text: string | undefined) => void;
}

/** The longest expected line is a `VALUE` with its key. */
const maxLineBytes = 2_048;
/** A counter has at most 20 digits; a longer value, set by another program, is skipped without being stored. */
const maxCounterBytes = 64;
const carriageReturn = 0x0d;
const lineFeed = 0x0a;
const lineEndBytes = 2;
const nothing: Buffer = Buffer.alloc(0);

export class ReplyReader {
  readonly #deps: ReplyReaderDeps;
  /** Bytes up to `#at` were read. */
  #bytes = nothing;
  #at = 0;
  /** The value whose bytes follow. */
  #block: { readonly key: string; readonly length: number } | undefined;
  #bytesToSkip = 0;

  constructor(deps: ReplyReaderDeps) {
    this.#deps = deps;
  }

  /** Reads the next bytes. Returns the error in them, after which nothing more may be fed. */
  feed(chunk: Buffer): string | undefined {
    this.#bytes = this.#bytes === nothing ? chunk : Buffer.concat([this.#bytes, chunk]);
    for (;;) {
      const read = this.#readNext();
      if (typeof read === 'string') return read;
      if (!read) break;
    }
    const isRead = this.#at === this.#bytes.length;
    this.#bytes = isRead ? nothing : this.#bytes.subarray(this.#at);
    this.#at = 0;
    return undefined;
  }

  /**
   * This method and those that it calls return false when more bytes are needed, and a text when the bytes are wrong.
   */
  #readNext(): boolean | string {
    if (this.#bytesToSkip > 0) return this.#skip();
    return this.#block === undefined ? this.#readLine() : this.#readBlock(this.#block);
  }

  #skip(): boolean {
    const count = Math.min(this.#bytesToSkip, this.#bytes.length - this.#at);
    this.#at += count;
    this.#bytesToSkip -= count;
    return this.#bytesToSkip === 0;
  }

  #readBlock({ key, length }: { key: string; length: number }): boolean | string {
    const end = this.#at + length;
    if (this.#bytes.length < end + lineEndBytes) return false;
    if (!this.#isLineEnd(end)) return 'a value whose length differs from the announced one';
    const text = this.#bytes.toString('latin1', this.#at, end);
    this.#at = end + lineEndBytes;
    this.#block = undefined;
    this.#deps.onValue(key, text);
    return true;
  }

  #readLine(): boolean | string {
    const end = this.#findLineEnd();
    if (end === -1) {
      const isEndless = this.#bytes.length - this.#at >= maxLineBytes + lineEndBytes;
      return isEndless ? 'an endless line' : false;
    }
    const line = this.#bytes.toString('utf8', this.#at, end);
    this.#at = end + lineEndBytes;
    if (!line.startsWith('VALUE ')) {
      this.#deps.onLine(line);
      return true;
    }
    const [, key, digits] = /^VALUE ([^ ]+) \d+ (\d{1,10})(?: \d+)?$/.exec(line) ?? [];
    if (key === undefined) return 'an unreadable value';
    const length = Number(digits);
    if (length <= maxCounterBytes) {
      this.#block = { key, length };
    } else {
      this.#bytesToSkip = length + lineEndBytes;
      this.#deps.onValue(key, undefined);
    }
    return true;
  }

  /** -1 if there is none within the bound. Most lines are short: a call of `indexOf` would cost more. */
  #findLineEnd(): number {
    const last = Math.min(this.#at + maxLineBytes, this.#bytes.length - lineEndBytes);
    for (let end = this.#at; end <= last; end++) {
      if (this.#isLineEnd(end)) return end;
    }
    return -1;
  }

  #isLineEnd(at: number): boolean {
    return this.#bytes[at] === carriageReturn && this.#bytes[at + 1] === lineFeed;
  }
}
