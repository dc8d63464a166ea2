// Blocks of headers in hexadecimal, and the content of the decoder's table.
import {
  createHpackDecoder,
  type HpackDecoder,
  HpackError,
} from '../../worker/grpc/http2/hpack/decoder.ts';
import type { HeaderField } from '../../worker/grpc/http2/hpack/header-field.ts';
import { toHpackInteger, toHpackString } from './http2-frames.ts';

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
    const block = toHpackInteger(index, 7, 0x80);
    try {
      decoder.decode(block, 0, block.length, fields);
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

/** A string, in hexadecimal. */
export function text(value: string): string {
  return toHpackString(value).toString('hex');
}
