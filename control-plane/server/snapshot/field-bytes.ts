// Encodes single protobuf fields for a message that no library can assemble: a response for a thousand streams, which
// share its parts. The worker's answers are encoded by worker/listen/grpc/wire-writer.ts.

/** The wire type of length-delimited fields: texts, bytes and messages. */
const bytesType = 2;

/** The tag and length of a field; its content of `length` bytes follows. */
export function toFieldHead(field: number, length: number): Buffer {
  return Buffer.concat([toVarint(field * 8 + bytesType), toVarint(length)]);
}

/** A complete field; empty for an empty text, as in proto3. */
export function toStringField(field: number, text: string): Buffer {
  if (text === '') return Buffer.alloc(0);
  const content = Buffer.from(text);
  return Buffer.concat([toFieldHead(field, content.length), content]);
}

/** `value` is an integer from 0 to 2^53. */
function toVarint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  return Buffer.from([...bytes, rest]);
}
