// Length-delimited protobuf fields, encoded here: responses are assembled from parts that are encoded once
// and shared, which a protobuf library cannot do.

/** Tag and length of a field whose content of `length` bytes follows. `field` is below 16. */
export function toFieldHead(field: number, length: number): Buffer {
  const bytes = [(field << 3) | 2];
  let rest = length;
  for (; rest > 0x7f; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  bytes.push(rest);
  return Buffer.from(bytes);
}

/** A whole field; nothing for an empty text, as in proto3. */
export function toStringField(field: number, text: string): Buffer {
  if (text === '') return Buffer.alloc(0);
  const content = Buffer.from(text);
  return Buffer.concat([toFieldHead(field, content.length), content]);
}
