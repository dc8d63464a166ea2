// Fixtures for the tests of the decoder: blocks in hexadecimal, and the content of its table.
import { createHpackDecoder, type HpackDecoder, HpackError } from './decoder.ts';
import type { HeaderField } from './header-field.ts';

export type Pair = readonly [name: string, value: string];

export function createDecoder(
  options: { tableBytes?: number; maxListBytes?: number } = {},
): HpackDecoder {
  return createHpackDecoder({ tableBytes: 4096, maxListBytes: 65_536, ...options });
}

export function toPairs(fields: readonly HeaderField[]): Pair[] {
  return fields.map(({ name, value }): Pair => [name, value]);
}

/** Decodes the block from between other octets, as in a socket's buffer. */
export function decodeFields(decoder: HpackDecoder, hex: string): HeaderField[] {
  const block = Buffer.from(hex.replaceAll(/\s/g, ''), 'hex');
  const bytes = Buffer.concat([Buffer.from([0x80]), block, Buffer.from([0x82])]);
  const fields: HeaderField[] = [];
  decoder.decode(bytes, 1, 1 + block.length, fields);
  return fields;
}

export function decode(decoder: HpackDecoder, hex: string): Pair[] {
  return toPairs(decodeFields(decoder, hex));
}

/**
 * The content of the dynamic table, newest first. The decoder is unusable afterwards, since an error marks the end of
 * the table.
 */
export function drainTable(decoder: HpackDecoder): Pair[] {
  const fields: HeaderField[] = [];
  for (let index = 62; ; index++) {
    const rest = index - 127;
    const block = rest < 0 ? [0x80 | index] : [0xff, (rest & 0x7f) | 0x80, rest >>> 7];
    try {
      decoder.decode(Buffer.from(block), 0, block.length, fields);
    } catch (error) {
      if (error instanceof HpackError) return toPairs(fields);
      throw error;
    }
  }
}

export function sizeOf(entries: readonly Pair[]): number {
  return entries.reduce((sum, [name, value]) => sum + name.length + value.length + 32, 0);
}

/** A literal with incremental indexing, in hexadecimal. */
export function added(name: string, value: string): string {
  return `40${text(name)}${text(value)}`;
}

/** A string of up to 126 octets, in hexadecimal. */
export function text(value: string): string {
  return Buffer.concat([Buffer.from([value.length]), Buffer.from(value, 'latin1')]).toString('hex');
}
