// Assembles gRPC's length-prefixed messages from pieces. The call interprets flags and messages.

/** The bytes before each message: a flag and a length. */
export const prefixBytes = 5;

/** A budget of retained bytes, which readers can share. */
export interface Budget {
  /** Adds retained bytes; false when the budget is exhausted. */
  hold(bytes: number): boolean;
  release(bytes: number): void;
}

export type NextMessage =
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'too-large'; readonly length: number }
  /** `bytes` are valid until `drop`. */
  | { readonly kind: 'message'; readonly flag: number; readonly bytes: Buffer };

const incomplete: NextMessage = { kind: 'incomplete' };
const nothing = Buffer.alloc(0);

export class MessageReader {
  readonly #maxMessageBytes: number;
  readonly #budget: Budget;
  #bytes: Buffer = nothing;
  #start = 0;
  #end = 0;
  #buffered = 0;

  constructor(maxMessageBytes: number, budget: Budget) {
    this.#maxMessageBytes = maxMessageBytes;
    this.#budget = budget;
  }

  /** Bytes counted in the budget. */
  get bufferedBytes(): number {
    return this.#buffered;
  }

  /** Bytes after the last message returned. */
  get remaining(): number {
    return this.#end - this.#start;
  }

  /** Retains a copy of bytes[start, end); false when the budget is exhausted. */
  add(bytes: Buffer, start: number, end: number): boolean {
    const count = end - start;
    if (this.#end + count > this.#bytes.length && !this.#grow(count)) return false;
    bytes.copy(this.#bytes, this.#end, start, end);
    this.#end += count;
    return true;
  }

  /** Makes room for `count` more bytes. The budget counts allocated memory, not the used part. */
  #grow(count: number): boolean {
    const rest = this.remaining;
    const before = this.#bytes.length;
    // Doubled, so that a message in many pieces is not copied for each piece, but never beyond what the message needs.
    const wanted = rest < prefixBytes ? 0 : prefixBytes + this.#bytes.readUInt32BE(this.#start + 1);
    const size = Math.max(rest + count, Math.min(2 * rest, wanted));
    if (!this.hold(size)) return false;
    const larger = Buffer.allocUnsafeSlow(size);
    this.#bytes.copy(larger, 0, this.#start, this.#end);
    this.#release(before);
    this.#bytes = larger;
    this.#start = 0;
    this.#end = rest;
    return true;
  }

  /** Returns the next message. */
  next(): NextMessage {
    if (this.remaining < prefixBytes) return incomplete;
    const length = this.#bytes.readUInt32BE(this.#start + 1);
    if (length > this.#maxMessageBytes) return { kind: 'too-large', length };
    if (this.remaining < prefixBytes + length) return incomplete;
    const flag = this.#bytes[this.#start] as number;
    const from = this.#start + prefixBytes;
    this.#start = from + length;
    return { kind: 'message', flag, bytes: this.#bytes.subarray(from, this.#start) };
  }

  /** Counts bytes that are retained elsewhere, until `drop`. */
  hold(bytes: number): boolean {
    if (!this.#budget.hold(bytes)) return false;
    this.#buffered += bytes;
    return true;
  }

  /** Forgets everything. */
  drop(): void {
    this.#release(this.#buffered);
    this.#bytes = nothing;
    this.#start = 0;
    this.#end = 0;
  }

  #release(bytes: number): void {
    this.#budget.release(bytes);
    this.#buffered -= bytes;
  }
}
