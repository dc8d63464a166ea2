// Takes the messages out of a gRPC request's bytes. What is in them is left to the stream.
import { type GrpcStatus, grpcStatus } from '../../shared/grpc/status.ts';

const prefixBytes = 5;
const nothing: Buffer = Buffer.alloc(0);

export interface MessageProblem {
  readonly status: GrpcStatus;
  readonly text: string;
}

export interface MessageReader {
  /** Hands the messages that `chunk` completes to `take`, until that gives false. A problem is
   * final. Holds at most one message, in memory that grows with what has come of it. */
  read(chunk: Buffer, take: (message: Buffer) => boolean): MessageProblem | undefined;
  /** Gives up what has come of a message. */
  clear(): void;
  /** What that takes: of memory, which is more than what has come. */
  readonly heldBytes: number;
  /** True between messages. */
  readonly isEmpty: boolean;
}

export function createMessageReader(maxMessageBytes: number): MessageReader {
  let begun = nothing;
  let length = 0;

  /** Doubles the memory when it is full: a message may come byte by byte. Never from the pool, of which
   * a few bytes would hold much more. */
  function append(chunk: Buffer): Buffer {
    const needed = length + chunk.length;
    if (needed > begun.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * begun.length));
      begun.copy(larger, 0, 0, length);
      begun = larger;
    }
    chunk.copy(begun, length);
    length = needed;
    return begun.subarray(0, length);
  }

  function clear(): void {
    begun = nothing;
    length = 0;
  }

  return {
    read(chunk, take) {
      const isContinued = length > 0;
      const bytes = isContinued ? append(chunk) : chunk;
      let at = 0;
      while (bytes.length - at >= prefixBytes) {
        if (bytes[at] !== 0) {
          return {
            status: grpcStatus.unimplemented,
            text: 'compressed requests are not supported',
          };
        }
        const size = bytes.readUInt32BE(at + 1);
        if (size > maxMessageBytes) {
          const text = `received message larger than max (${size} vs. ${maxMessageBytes})`;
          return { status: grpcStatus.resourceExhausted, text };
        }
        const end = at + prefixBytes + size;
        if (bytes.length < end) break;
        const message = bytes.subarray(at + prefixBytes, end);
        at = end;
        if (!take(message)) return undefined;
      }
      if (at > 0 || !isContinued) {
        clear();
        append(bytes.subarray(at));
      }
      return undefined;
    },
    clear,
    get heldBytes() {
      return begun.length;
    },
    get isEmpty() {
      return length === 0;
    },
  };
}
