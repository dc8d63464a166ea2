// Collects frames for a single write.
import type { Socket } from 'node:net';
import { frameHeaderLength, writeFrameHeader } from './frames.ts';

const capacity = 64 * 1024;

export class FrameOutput {
  bytes: Buffer = Buffer.allocUnsafe(capacity);
  /** Where the next frame begins; code that appends to `bytes` must advance it. */
  end = 0;

  readonly #socket: Socket;
  readonly #spare: Buffer[] = [];

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  hasRoom(length: number): boolean {
    return this.end + length <= capacity;
  }

  appendFrame(type: number, flags: number, id: number, payload: Uint8Array): void {
    writeFrameHeader(this.bytes, this.end, payload.length, type, flags, id);
    this.bytes.set(payload, this.end + frameHeaderLength);
    this.end += frameHeaderLength + payload.length;
  }

  /** A frame whose payload is a single 32-bit number. */
  appendNumberFrame(type: number, id: number, value: number): void {
    writeFrameHeader(this.bytes, this.end, 4, type, 0, id);
    this.end = this.bytes.writeUInt32BE(value, this.end + frameHeaderLength);
  }

  write(): void {
    const { bytes } = this;
    this.#socket.write(bytes.subarray(0, this.end), () => this.#spare.push(bytes));
    this.bytes = this.#spare.pop() ?? Buffer.allocUnsafe(capacity);
    this.end = 0;
  }
}
