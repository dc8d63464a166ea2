// Writes messages to a stream one after another, and large ones a slice at a time where they are encrypted. With TLS
// what is handed to node:http2 is encrypted as far as the client's window goes, into memory that the connection keeps
// from then on: with a thousand clients, a thousand copies of a response. Without TLS nothing is copied, and each slice
// costs as much as a small message. Slices refer to the message's bytes.
import type { Writable } from 'node:stream';

interface Message {
  readonly parts: readonly Buffer[];
  readonly onSent: () => void;
  next: Message | undefined;
}

const encryptedSliceBytes = 64 * 1024;

export class SliceSender {
  readonly #stream: Writable;
  readonly #sliceBytes: number;
  /** The one that is being written, and the last of those that follow it. */
  #first: Message | undefined;
  #last: Message | undefined;
  /** Where in the first message the next slice begins. */
  #part = 0;
  #at = 0;
  #isEnding = false;
  #isWriting = false;

  constructor(stream: Writable, isEncrypted: boolean) {
    this.#stream = stream;
    this.#sliceBytes = isEncrypted ? encryptedSliceBytes : Number.POSITIVE_INFINITY;
  }

  /** `onSent` is called when the last slice has been taken by the network, and never if it is not. */
  send(parts: readonly Buffer[], onSent: () => void): void {
    const message: Message = { parts, onSent, next: undefined };
    if (this.#last === undefined) this.#first = message;
    else this.#last.next = message;
    this.#last = message;
    if (!this.#isWriting) this.#writeNext();
  }

  /** Ends the stream after what was given to `send`. */
  end(): void {
    this.#isEnding = true;
    if (!this.#isWriting) this.#writeNext();
  }

  #writeNext(): void {
    const message = this.#first;
    if (message === undefined) {
      if (this.#isEnding) this.#stream.end();
      this.#isEnding = false;
      return;
    }
    this.#isWriting = true;
    const slice = this.#takeSlice(message);
    this.#stream.cork();
    for (let index = 0; index < slice.length - 1; index++) this.#stream.write(slice[index]);
    this.#stream.write(slice.at(-1) ?? '', (error) => this.#onWritten(message, error));
    this.#stream.uncork();
  }

  #onWritten(message: Message, error: Error | null | undefined): void {
    this.#isWriting = false;
    if (error != null) return;
    if (this.#part === message.parts.length) {
      this.#first = message.next;
      if (this.#first === undefined) this.#last = undefined;
      this.#part = 0;
      message.onSent();
    }
    // What was told may have written already.
    if (!this.#isWriting) this.#writeNext();
  }

  /** The next slice of the message; afterwards the place is behind it. */
  #takeSlice({ parts }: Message): Buffer[] {
    const slice: Buffer[] = [];
    let room = this.#sliceBytes;
    for (let bytes = parts[this.#part]; bytes && room > 0; bytes = parts[this.#part]) {
      const isWhole = this.#at === 0 && bytes.length <= room;
      const piece = isWhole ? bytes : bytes.subarray(this.#at, this.#at + room);
      if (piece.length > 0) slice.push(piece);
      room -= piece.length;
      this.#at += piece.length;
      if (this.#at < bytes.length) break;
      this.#part++;
      this.#at = 0;
    }
    return slice;
  }
}
