import test from 'ava';
import { HeaderReader } from './header-reader.ts';
import { listHuffmanCodes } from './hpack/huffman-code.ts';

type Field = readonly [name: string, value: string];

const request: readonly Field[] = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':path', '/a'],
  ['te', 'trailers'],
  ['content-type', 'application/grpc'],
];
const codes = listHuffmanCodes();

/** A string literal (RFC 7541, section 5.2). */
function toLiteral(text: string, isHuffman: boolean): number[] {
  if (!isHuffman) return [text.length, ...Buffer.from(text, 'latin1')];
  let bits = '';
  for (const octet of Buffer.from(text, 'latin1')) {
    const { bits: code = 0, length = 0 } = codes[octet] ?? {};
    bits += code.toString(2).padStart(length, '0');
  }
  while (bits.length % 8 !== 0) bits += '1';
  const octets = bits.match(/.{8}/g)?.map((eight) => Number.parseInt(eight, 2)) ?? [];
  return [0x80 | octets.length, ...octets];
}

/** A block in which every field is a literal that is added to the table. */
function toBlock(fields: readonly Field[], isHuffman: boolean): Buffer {
  return Buffer.from(
    fields.flatMap(([name, value]) => [
      0x40,
      ...toLiteral(name, isHuffman),
      ...toLiteral(value, isHuffman),
    ]),
  );
}

function read(reader: HeaderReader, block: Buffer) {
  return reader.readHead(block, 0, block.length);
}

const badValues = [
  '',
  'a',
  ' a',
  'a ',
  '\ta',
  'a\t',
  'a\0b',
  'a\nb',
  'a\rb',
  'é',
  'a b',
  'x'.repeat(60),
];
const names = ['x-trace', 'user-agent', 'te', 'Upper', 'connection', 'host', 'content-length'];

for (const isHuffman of [false, true]) {
  const how = isHuffman ? 'with' : 'without';

  test(`unread fields are refused like read ones, ${how} Huffman codes`, (t) => {
    for (const name of names) {
      for (const value of badValues) {
        const block = toBlock([...request, [name, value]], isHuffman);
        const all = read(new HeaderReader(new Map(), true), block);
        const some = read(new HeaderReader(new Map(), false), block);
        t.is(some === undefined, all === undefined, JSON.stringify([name, value]));
        t.is(some?.listBytes, all?.listBytes);
      }
    }
  });

  test(`a repeated request has the same head although its trace headers differ, ${how} Huffman codes`, (t) => {
    const reader = new HeaderReader(new Map(), false);
    read(reader, toBlock([...request, ['x-trace', 'aaaa']], isHuffman));
    // Table indices from the newest entry on: the trace header, and the fields before it.
    const again = (value: string) =>
      Buffer.from([0xc2, 0xc1, 0xc0, 0xbf, 0xbe].map((index) => index + 1))
        .toString('latin1')
        .concat(Buffer.from([0x0f, 0x2f, ...toLiteral(value, isHuffman)]).toString('latin1'));
    const first = read(reader, Buffer.from(again('bbbb'), 'latin1'));
    const second = read(reader, Buffer.from(again('cccc'), 'latin1'));
    t.is(first?.path, '/a');
    t.is(second, first);
  });
}

test('a pseudo-header after an unread header is malformed', (t) => {
  const [method, ...rest] = request;
  if (method === undefined) return t.fail('the request has no method');
  const block = toBlock([...rest.slice(0, 2), ['x-trace', 'a'], method, ...rest.slice(2)], false);
  t.is(read(new HeaderReader(new Map(), false), block), undefined);
});
