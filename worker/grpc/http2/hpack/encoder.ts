// Encodes header blocks (HPACK, RFC 7541) without state: they never use the dynamic table, so blocks can be encoded
// once and sent on every connection. Strings are not Huffman-coded: receivers decode them faster, and responses are
// short.
import { staticTable } from './static-table.ts';

const { fieldIndices, nameIndices } = indexStaticTable();

/** Names are in lower case; both are latin1, one character for each octet. */
export function encodeHeaderBlock(
  fields: readonly (readonly [name: string, value: string])[],
): Buffer {
  const octets: number[] = [];
  for (const [name, value] of fields) {
    const fieldIndex = fieldIndices.get(toKey(name, value));
    if (fieldIndex !== undefined) {
      writeInteger(octets, 0x80, 0x7f, fieldIndex);
      continue;
    }
    const nameIndex = nameIndices.get(name) ?? 0;
    // Literal without indexing (section 6.2.2).
    writeInteger(octets, 0x00, 0x0f, nameIndex);
    if (nameIndex === 0) writeString(octets, name);
    writeString(octets, value);
  }
  return Buffer.from(octets);
}

/** Writes an integer (section 5.1): `representation` has the bits above the prefix, whose mask is `mask`. */
function writeInteger(octets: number[], representation: number, mask: number, value: number): void {
  if (value < mask) {
    octets.push(representation | value);
    return;
  }
  octets.push(representation | mask);
  let rest = value - mask;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) octets.push((rest % 0x80) | 0x80);
  octets.push(rest);
}

function writeString(octets: number[], text: string): void {
  writeInteger(octets, 0x00, 0x7f, text.length);
  for (let index = 0; index < text.length; index++) octets.push(text.charCodeAt(index));
}

function indexStaticTable(): {
  fieldIndices: ReadonlyMap<string, number>;
  nameIndices: ReadonlyMap<string, number>;
} {
  const fields = new Map<string, number>();
  const names = new Map<string, number>();
  for (const [position, { name, value }] of staticTable.entries()) {
    fields.set(toKey(name, value), position + 1);
    if (!names.has(name)) names.set(name, position + 1);
  }
  return { fieldIndices: fields, nameIndices: names };
}

/** Static fields contain no line feed, so keys are unambiguous. */
function toKey(name: string, value: string): string {
  return `${name}\n${value}`;
}
