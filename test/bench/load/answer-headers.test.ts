import test from 'ava';
import { createAnswerHeaders, facts } from './answer-headers.ts';
import { encodeHuffmanString } from './huffman.ts';

const text = (value: string) => Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]);
const read = (headers: ReturnType<typeof createAnswerHeaders>, ...parts: (Buffer | number[])[]) => {
  const block = Buffer.concat(parts.map((part) => Buffer.from(part)));
  return headers.read(block, 0, block.length);
};

test('HTTP status 200 is known from the static table, others are told apart', (t) => {
  const headers = createAnswerHeaders();
  t.is(read(headers, [0x88]), facts.httpOk);
  t.is(read(headers, [0x8e]), facts.httpOther);
  t.is(read(headers, [0x08], text('503')), facts.httpOther);
});

test('a grpc-status is read as text and in Huffman code, also when it is in the table', (t) => {
  const headers = createAnswerHeaders();
  t.is(read(headers, [0x00], text('grpc-status'), text('0')), facts.grpcOk);
  const inTable = [Buffer.from([0x40]), encodeHuffmanString('grpc-status'), text('0')];
  t.is(read(headers, ...inTable), facts.grpcOk);
  t.is(read(headers, [0xbe]), facts.grpcOk);
  t.is(read(headers, [0x88, 0xbe]), facts.httpOk | facts.grpcOk);
  // The name from the table, another value; then the first entry is the second newest.
  t.is(read(headers, [0x7e], text('14')), facts.grpcOther);
  t.is(headers.otherStatus, '14');
  t.is(read(headers, [0xbe]), facts.grpcOther);
  t.is(read(headers, [0xbf]), facts.grpcOk);
});

test('a block that is known is read again once the table has changed', (t) => {
  const headers = createAnswerHeaders();
  read(headers, [0x40], text('grpc-status'), text('0'));
  t.is(read(headers, [0xbe]), facts.grpcOk);
  t.is(read(headers, [0xbe]), facts.grpcOk);
  read(headers, [0x40], text('grpc-status'), text('14'));
  t.is(read(headers, [0xbe]), facts.grpcOther);
  t.is(headers.otherStatus, '14');
});

test('what is not HPACK is refused', (t) => {
  const headers = createAnswerHeaders();
  t.throws(() => read(headers, [0x40]));
});
