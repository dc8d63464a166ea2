// Writes messages to a stream one after another, and large ones a slice at a time where they are encrypted. With TLS
// what is handed to node:http2 is encrypted as far as the client's window goes, into memory that the connection keeps
// from then on: with a thousand clients, a thousand copies of a response. Without TLS nothing is copied, and each slice
// costs as much as a small message. Slices refer to the message's bytes.
import type { Writable } from 'node:stream';

export interface SliceSender {
  /** `onSent` is called when the last slice has been taken by the network, and never if it is not. */
  send(parts: readonly Buffer[], onSent: () => void): void;
  /** Ends the stream after what was given to `send`. */
  end(): void;
}

interface Message {
  readonly parts: readonly Buffer[];
  readonly onSent: () => void;
}

const encryptedSliceBytes = 64 * 1024;

export function createSliceSender(stream: Writable, isEncrypted: boolean): SliceSender {
  const sliceBytes = isEncrypted ? encryptedSliceBytes : Number.POSITIVE_INFINITY;
  const waiting: Message[] = [];
  let isEnding = false;
  let isWriting = false;
  /** Where in the first message the next slice begins. */
  let part = 0;
  let at = 0;

  /** The next slice of the message, and how far that gets. */
  function takeSlice({ parts }: Message): Buffer[] {
    const slice: Buffer[] = [];
    let room = sliceBytes;
    for (let bytes = parts[part]; bytes !== undefined && room > 0; bytes = parts[part]) {
      const piece = bytes.subarray(at, at + room);
      if (piece.length > 0) slice.push(piece);
      room -= piece.length;
      at += piece.length;
      if (at < bytes.length) break;
      part++;
      at = 0;
    }
    return slice;
  }

  function writeNext(): void {
    const message = waiting[0];
    if (message === undefined) {
      if (isEnding) stream.end();
      isEnding = false;
      return;
    }
    isWriting = true;
    const slice = takeSlice(message);
    stream.cork();
    for (const piece of slice.slice(0, -1)) stream.write(piece);
    stream.write(slice.at(-1) ?? '', (error) => {
      isWriting = false;
      if (error != null) return;
      if (part === message.parts.length) {
        waiting.shift();
        part = 0;
        message.onSent();
      }
      // What was told may have written already.
      if (!isWriting) writeNext();
    });
    stream.uncork();
  }

  return {
    send(parts, onSent) {
      waiting.push({ parts, onSent });
      if (!isWriting) writeNext();
    },
    end() {
      isEnding = true;
      if (!isWriting) writeNext();
    },
  };
}
