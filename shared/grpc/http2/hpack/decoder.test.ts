import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import { HpackError } from './decoder.ts';
import {
  added,
  createDecoder,
  decode,
  decodeFields,
  drainTable,
  type Pair,
  sizeOf,
  text,
  toPairs,
} from './decoder-fixture.ts';
import type { HeaderField } from './header-field.ts';

const missing = 'no table entry of index';
const endsWithin = 'block ends within a field';
const passesEnd = 'string passes the end of the block';
const badHuffman = 'string is no Huffman code, or is padded wrongly';
const errors: readonly (readonly [title: string, hex: string, message: string])[] = [
  ['an indexed field of index 0 is an error', '80', `${missing} 0`],
  ['an index beyond an empty dynamic table is an error', 'be', `${missing} 62`],
  ['an index beyond the last entry is an error', `${added('a', 'b')} bf`, `${missing} 63`],
  ['an indexed name beyond the table is an error, to be added', '7e 0161', `${missing} 62`],
  ['an indexed name beyond the table is an error, not added', '0f2f 0161', `${missing} 62`],
  ['an indexed name beyond the table is an error, never added', '1f2f 0161', `${missing} 62`],
  ['a large integer is an index like another', 'ff ffffff 7f', `${missing} 268435582`],
  ['an integer with a fifth octet is an error', 'ff ffffffff 01', 'integer is too long'],
  ['an integer padded with zeroes is an error, too', 'ff 80808080 00', 'integer is too long'],
  ['a string with a length of that kind is an error', '41 ff ffffffff 01', 'integer is too long'],
  ['an index that ends with its prefix is an error', 'ff', 'block ends within an integer'],
  ['an index that ends in the midst is an error', 'ff 80', 'block ends within an integer'],
  ['a table size that ends in the midst is an error', '3f', 'block ends within an integer'],
  ['a literal without a name is an error', '40', endsWithin],
  ['a literal without a value is an error', '40 0161', endsWithin],
  ['an indexed name without a value is an error', '41', endsWithin],
  ['a repeatable literal without a value is an error', '04', endsWithin],
  ['a name that passes the end is an error', '40 0361', passesEnd],
  ['a value that passes the end is an error', '41 0361', passesEnd],
  ['a value that claims 256 MiB is an error', '41 ff ffffff 7f', passesEnd],
  ['a Huffman-coded value that passes the end is an error', '41 821f', passesEnd],
  ['a table size above ours is an error', '3f e21f', 'table size update to 4097, above 4096'],
  ['a table size after a field is an error', '82 20', 'table size update after a field'],
  ['a third table size is an error', '20 20 20', 'more than two table size updates'],
  ['padding with zeroes is an error', '41 8118', badHuffman],
  ['padding of an octet is an error', '41 821fff', badHuffman],
  ['padding without a string is an error', '41 81ff', badHuffman],
  ['a code that is not complete is an error', '41 81fe', badHuffman],
  ['the end of string alone is an error', '41 84ffffffff', badHuffman],
  ['the end of string inside of one is an error', '41 851fffffffe3', badHuffman],
  ['a name with bad padding is an error', '40 8118 0161', badHuffman],
];

for (const [title, hex, message] of errors) {
  test(title, (t) => {
    t.throws(() => decode(createDecoder(), hex), { instanceOf: HpackError, message });
  });
}

test('octets outside of the block are not read, whatever they would complete', (t) => {
  const whole = Buffer.from('8244016140016101624483f8fe3f', 'hex');
  for (let end = 1; end < whole.length; end++) {
    const decoder = createDecoder();
    const alone = createDecoder();
    t.deepEqual(
      outcome(() => decoder.decode(whole, 0, end, [])),
      outcome(() => alone.decode(Buffer.from(whole.subarray(0, end)), 0, end, [])),
    );
  }
});

function outcome(action: () => void): string {
  try {
    action();
    return 'decoded';
  } catch (error) {
    return String(error);
  }
}

test('an empty block is an empty list', (t) => {
  const decoder = createDecoder();
  t.deepEqual(decode(decoder, ''), []);
  t.true(decoder.onlyIndexed);
  t.false(decoder.oversized);
});

test('fields are appended to those of the caller', (t) => {
  const decoder = createDecoder();
  const fields: HeaderField[] = [];
  decoder.decode(Buffer.from('8286', 'hex'), 0, 1, fields);
  decoder.decode(Buffer.from('8286', 'hex'), 1, 2, fields);
  t.deepEqual(
    fields.map(({ value }) => value),
    ['GET', 'http'],
  );
});

test('empty strings and a string without padding are strings', (t) => {
  // Eight times the five bits of "a".
  const codes = '18c6 318c 63';
  t.deepEqual(decode(createDecoder(), `40 00 00 41 80 41 85 ${codes}`), [
    ['', ''],
    [':authority', ''],
    [':authority', 'aaaaaaaa'],
  ]);
});

test('padding of one to seven ones ends a string', (t) => {
  const padded = ['1f', '18ff', '18c7', '18c63f', '18c631ff', '18c6318f', '18c6318c7f'];
  t.deepEqual(
    padded.map((hex) => {
      const length = (0x80 | (hex.length / 2)).toString(16);
      return decode(createDecoder(), `41 ${length} ${hex}`)[0]?.[1];
    }),
    ['a', 'aa', 'aaa', 'aaaa', 'aaaaa', 'aaaaaa', 'aaaaaaa'],
  );
});

test('a Huffman-coded string may be longer than the memory that is kept for one', (t) => {
  const octets = 5 * 4096;
  const decoder = createDecoder();
  // 0x80 and the length less 127, in groups of seven bits.
  const rest = octets - 127;
  const length = Buffer.from([
    0xff,
    (rest & 0x7f) | 0x80,
    ((rest >>> 7) & 0x7f) | 0x80,
    rest >>> 14,
  ]);
  const [field] = decode(decoder, `01 ${length.toString('hex')} ${'18c6318c63'.repeat(4096)}`);
  t.is(field?.[1], 'a'.repeat(8 * 4096));
});

test('every octet may be in a name and a value', (t) => {
  for (let octet = 0; octet < 256; octet++) {
    const character = String.fromCharCode(octet);
    t.deepEqual(decode(createDecoder(), added(character, character)), [[character, character]]);
  }
});

test('an entry that exactly fills the table stays alone in it', (t) => {
  const decoder = createDecoder({ tableBytes: 40 });
  decode(decoder, `3f09 ${added('a', '1')} ${added('name', '1234')}`);
  t.deepEqual(drainTable(decoder), [['name', '1234']]);
});

test('an entry larger than the table is a field, and empties the table', (t) => {
  const decoder = createDecoder({ tableBytes: 40 });
  t.deepEqual(decode(decoder, `3f09 ${added('a', '1')} ${added('name', '12345')}`), [
    ['a', '1'],
    ['name', '12345'],
  ]);
  t.deepEqual(drainTable(decoder), []);
});

test('an entry may take its name from one that it evicts', (t) => {
  const decoder = createDecoder({ tableBytes: 40 });
  t.deepEqual(decode(decoder, `3f09 ${added('name', '1234')} 7e 0135 be`), [
    ['name', '1234'],
    ['name', '5'],
    ['name', '5'],
  ]);
  t.deepEqual(drainTable(decoder), [['name', '5']]);
});

test('the oldest entries leave first, over many times the length of the table', (t) => {
  const decoder = createDecoder();
  let held: Pair[] = [];
  for (let index = 0; index < 1000; index++) {
    const entry: Pair = [`name-${index}`, 'v'.repeat(index % 90)];
    decode(decoder, added(...entry));
    held = [entry, ...held];
    while (sizeOf(held) > 4096) held.pop();
  }
  t.deepEqual(drainTable(decoder), held);
});

test('a smaller table evicts what no longer fits, and a larger one gives room again', (t) => {
  const entries = ['a', 'b', 'c'].map((name) => added(name, '1')).join('');
  const shrunk = createDecoder();
  decode(shrunk, `${entries}`);
  // The table shrinks to 68 octets, which is two entries.
  decode(shrunk, '3f25');
  t.deepEqual(drainTable(shrunk), [
    ['c', '1'],
    ['b', '1'],
  ]);

  const emptied = createDecoder();
  decode(emptied, entries);
  // The table shrinks to nothing and grows back to 4096.
  decode(emptied, `20 3fe11f ${added('d', '1')}`);
  t.deepEqual(drainTable(emptied), [['d', '1']]);
});

test('an evicted entry is let go', async (t) => {
  setFlagsFromString('--expose-gc');
  const collectGarbage: () => void = runInNewContext('gc');
  const decoder = createDecoder();
  const fields = decodeFields(decoder, `${added('a', '1')} ${added('b', '1')}`);
  const references = fields.splice(0).map((field) => new WeakRef(field));
  // The table shrinks to 34 octets, which is one entry.
  decode(decoder, '3f03');
  // A reference that was made in this turn of the loop holds on to its object until the next.
  await setImmediate();
  collectGarbage();
  t.deepEqual(
    references.map((reference) => reference.deref()?.name),
    [undefined, 'b'],
  );
  t.deepEqual(drainTable(decoder), [['b', '1']]);
});

test('a peer that was not notified of a larger table uses 4096 octets', (t) => {
  const decoder = createDecoder({ tableBytes: 65_536 });
  for (let index = 0; index < 41; index++) decode(decoder, added(`a${index % 10}`, 'v'.repeat(66)));
  t.is(drainTable(decoder).length, 40);
});

test('a larger table is used when the peer announces it', (t) => {
  const decoder = createDecoder({ tableBytes: 65_536 });
  decode(decoder, '3fe1ff03');
  for (let index = 0; index < 700; index++)
    decode(decoder, added(`a${index % 10}`, 'v'.repeat(66)));
  t.is(drainTable(decoder).length, 655);
});

test('the same entry is the same object each time', (t) => {
  const decoder = createDecoder();
  const [inserted, again] = decodeFields(decoder, `${added('a', '1')} be`);
  const [later, method] = decodeFields(decoder, 'be 82');
  t.is(inserted, again);
  t.is(inserted, later);
  t.is(decodeFields(createDecoder(), '82')[0], method);
});

test('a pseudo-header that is not indexed is the same object while its value is the same', (t) => {
  const decoder = createDecoder();
  const [first] = decodeFields(decoder, `04 ${text('/a')}`);
  t.is(decodeFields(decoder, `82 04 ${text('/a')}`)[1], first);
  t.is(decodeFields(decoder, `05 ${text('/a')}`)[0]?.value, '/a');
  t.deepEqual(decode(decoder, `04 ${text('/b')} 04 ${text('/bc')} 04 ${text('/')}`), [
    [':path', '/b'],
    [':path', '/bc'],
    [':path', '/'],
  ]);
});

test('the fields that Envoy sends with each call leave the table, and are the same objects each time', (t) => {
  const decoder = createDecoder();
  // Recorded. The path is a literal that is not added, in every block.
  const start = `8304 ab60 b577 3fa5 d05b 3b98 855e c1a4 b41a 9325 7eec afb4 692e 7352
    64ee 2d9d cc42 b1ba 73db 449b 4692 e735 264f`;
  const first = decodeFields(
    decoder,
    `${start} 4102 726c 8640 0274 6586 4d83 3505 b11f 4089 9aca c8b2 4d49 4f6a 7f82 1029
     5f8b 1d75 d062 0d26 3d4c 4d65 6440 8cf2 b16a ee7f 4b1a a496 ca87 4783 4d96 9740 8bf2
     b4a7 b3c0 ec90 b22d 29ec 870b e25c 0b89 717f 4096 f2b1 6aee 7f4b 17cd 6522 4b22 d676
     5926 a4a7 b52b 528f 0232 30`,
  );
  t.deepEqual(toPairs(first), [
    [':method', 'POST'],
    [':path', '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'],
    [':authority', 'rl'],
    [':scheme', 'http'],
    ['te', 'trailers'],
    ['grpc-timeout', '20m'],
    ['content-type', 'application/grpc'],
    ['x-envoy-internal', 'true'],
    ['x-forwarded-for', '192.0.2.2'],
    ['x-envoy-expected-rq-timeout-ms', '20'],
  ]);
  const { generation } = decoder;
  const second = decodeFields(decoder, `${start} c486 c3c2 c1c0 bfbe`);
  t.is(decoder.generation, generation);
  t.is(second.length, first.length);
  t.true(second.every((field, index) => field === first[index]));
});

test('a pseudo-header that continues beyond its block is an error, though it was whole before', (t) => {
  const decoder = createDecoder();
  const bytes = Buffer.from(`04${text('/path')}`, 'hex');
  decoder.decode(bytes, 0, bytes.length, []);
  t.throws(() => decoder.decode(bytes, 0, bytes.length - 1, []), {
    instanceOf: HpackError,
    message: passesEnd,
  });
});

test('a very long pseudo-header decodes each time', (t) => {
  const decoder = createDecoder();
  const path = `/${'a'.repeat(400)}`;
  const hex = `04 7f 9202 ${Buffer.from(path).toString('hex')}`;
  t.deepEqual(decode(decoder, hex), [[':path', path]]);
  t.deepEqual(decode(decoder, hex), [[':path', path]]);
});

test('only a block of nothing but indexed fields counts as that', (t) => {
  const decoder = createDecoder();
  const isOnlyIndexed = (hex: string) => {
    decode(decoder, hex);
    return decoder.onlyIndexed;
  };
  t.false(isOnlyIndexed(added('a', '1')));
  t.true(isOnlyIndexed('82 be'));
  t.false(isOnlyIndexed('82 04012f 82'));
  t.false(isOnlyIndexed('04012f'));
  t.false(isOnlyIndexed('20 82'));
  // An index of two octets.
  t.false(isOnlyIndexed(`3fe11f ${added('x', '').repeat(70)}`));
  t.true(isOnlyIndexed('ff00'));
});

test('the generation changes with the table, and with nothing else', (t) => {
  const decoder = createDecoder();
  const changes = (hex: string) => {
    const before = decoder.generation;
    decode(decoder, hex);
    return decoder.generation !== before;
  };
  t.true(changes(added('a', '1')));
  t.false(changes('82 be'));
  t.false(changes('04012f 10 0161 0162'));
  t.true(changes(added('a', '1')));
  t.true(changes('20'), 'entries were evicted');
  t.false(changes('20'), 'the table has this size');
  t.true(changes('3fe11f'), 'the table has grown');
  decode(decoder, added('a', '1'));
  t.true(changes(`40 0162 7f801f ${'61'.repeat(4095)}`), 'an entry too large emptied the table');
});

test('a list within the limit is whole, and one octet more drops what follows', (t) => {
  // 42 octets, and 34.
  const hex = `82 ${added('a', '1')}`;
  const within = createDecoder({ maxListBytes: 42 + 34 });
  t.is(decode(within, hex).length, 2);
  t.false(within.oversized);

  const beyond = createDecoder({ maxListBytes: 42 + 33 });
  t.deepEqual(decode(beyond, `${hex} ${added('b', '')} 84`), [[':method', 'GET']]);
  t.true(beyond.oversized);
  // The table is what the peer believes it to be.
  t.deepEqual(decode(beyond, 'be'), [['b', '']]);
  t.false(beyond.oversized);
  t.deepEqual(drainTable(beyond), [
    ['b', ''],
    ['a', '1'],
  ]);
});

test('a block of references to one large entry keeps no more than the limit', (t) => {
  const decoder = createDecoder({ maxListBytes: 65_536 });
  // 4000 octets of value: 127 and 3873.
  decode(decoder, `40 0162 7f a11e ${'61'.repeat(4000)}`);
  t.is(decode(decoder, 'be'.repeat(100_000)).length, 16);
  t.true(decoder.oversized);
});

test('an error in a list that is too large is an error', (t) => {
  const decoder = createDecoder({ maxListBytes: 0 });
  t.throws(() => decode(decoder, '82 80'), { instanceOf: HpackError, message: `${missing} 0` });
});
