// Puts gRPC's length-prefixed messages together from the pieces in which they come. What flags and messages
// mean is left to the call.

/** A flag and a length before each message. */
export const prefixBytes = 5;

/** What may be kept in all, by all readers that share it. */
export interface Budget {
  /** Counts bytes that are kept; false when there may be no more. */
  hold(bytes: number): boolean;
  release(bytes: number): void;
}

export type NextMessage =
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'too-large'; readonly length: number }
  /** `bytes` are good until `drop`. */
  | { readonly kind: 'message'; readonly flag: number; readonly bytes: Buffer };

const incomplete: NextMessage = { kind: 'incomplete' };
const nothing = Buffer.alloc(0);

export class MessageReader {
  readonly #maxMessageBytes: number;
  readonly #budget: Budget;
  #bytes: Buffer = nothing;
  #start = 0;
  #end = 0;
  #held = 0;

  constructor(maxMessageBytes: number, budget: Budget) {
    this.#maxMessageBytes = maxMessageBytes;
    this.#budget = budget;
  }

  /** As counted by the budget. */
  get heldBytes(): number {
    return this.#held;
  }

  /** Bytes that belong to no message that was taken. */
  get remaining(): number {
    return this.#end - this.#start;
  }

  /** Keeps a copy of bytes[start, end); false when the budget does not allow it. */
  add(bytes: Buffer, start: number, end: number): boolean {
    const count = end - start;
    if (this.#end + count > this.#bytes.length && !this.#grow(count)) return false;
    bytes.copy(this.#bytes, this.#end, start, end);
    this.#end += count;
    return true;
  }

  /** Room for `count` more bytes. What counts is the memory, not how much of it is used. */
  #grow(count: number): boolean {
    const kept = this.remaining;
    const before = this.#bytes.length;
    // Twice as much, so that a message in many pieces is not copied for each of them, but no more than
    // the message needs.
    const wanted = kept < prefixBytes ? 0 : prefixBytes + this.#bytes.readUInt32BE(this.#start + 1);
    const size = Math.max(kept + count, Math.min(2 * kept, wanted));
    if (!this.hold(size)) return false;
    const larger = Buffer.allocUnsafeSlow(size);
    this.#bytes.copy(larger, 0, this.#start, this.#end);
    this.#release(before);
    this.#bytes = larger;
    this.#start = 0;
    this.#end = kept;
    return true;
  }

  /** Takes the next message. */
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

  /** Counts bytes that are kept elsewhere, until `drop`. */
  hold(bytes: number): boolean {
    if (!this.#budget.hold(bytes)) return false;
    this.#held += bytes;
    return true;
  }

  /** Forgets everything. */
  drop(): void {
    this.#release(this.#held);
    this.#bytes = nothing;
    this.#start = 0;
    this.#end = 0;
  }

  #release(bytes: number): void {
    this.#budget.release(bytes);
    this.#held -= bytes;
  }
}
