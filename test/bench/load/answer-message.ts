// Reads the answers' gRPC messages as far as a load generator needs to check them.

export interface Answer {
  readonly overallCode: number;
  readonly statuses: number;
}

const grpcHeaderLength = 5;
const overallCodeTag = 1 << 3;
const statusTag = (2 << 3) | 2;
const lengthDelimited = 2;
const overLimit = 2;

/** Undefined when the bytes are not exactly one uncompressed RateLimitResponse. */
export function readAnswer(bytes: Buffer, start: number, end: number): Answer | undefined {
  if (end - start < grpcHeaderLength || bytes[start] !== 0) return undefined;
  if (bytes.readUInt32BE(start + 1) !== end - start - grpcHeaderLength) return undefined;
  let overallCode = 0;
  let statuses = 0;
  let offset = start + grpcHeaderLength;
  while (offset + 1 < end) {
    const tag = bytes[offset++] as number;
    // A code or a length: one byte, or two if a field has more than 127 bytes.
    let value = bytes[offset++] as number;
    if (value >= 128) value = (value & 127) + ((bytes[offset++] as number) << 7);
    if (tag === overallCodeTag && value <= overLimit) {
      overallCode = value;
    } else if ((tag & 7) === lengthDelimited) {
      if (tag === statusTag) statuses++;
      offset += value;
    } else {
      return undefined;
    }
  }
  return offset === end ? { overallCode, statuses } : undefined;
}
