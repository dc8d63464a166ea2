// Tests the decoder of header blocks, mostly by reviewed lines: decoder.txt has blocks, in the notation below, and the
// result of each. `REWRITE=1` rewrites the results.
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import {
  added,
  createDecoder,
  decode,
  decodeFields,
  drainTable,
  type Pair,
  text,
  toPairs,
} from '../../../../test/support/hpack-blocks.ts';
import { toHpackInteger } from '../../../../test/support/http2-frames.ts';
import { pluck } from '../../../../test/support/pluck.ts';
import { testLines } from '../../../../test/support/reviewed-lines.ts';
import { type HpackDecoder, HpackError } from './decoder.ts';
import type { HeaderField } from './header-field.ts';

const passesEnd = 'string passes the end of the block';

/**
 * `BLOCK ; BLOCK`: consecutive blocks of octets and `+NAME=VALUE`, a literal that is added to the table; `*COUNT`
 * repeats one of these. `table` stands for the content of the table at the end. `(table=OCTETS list=OCTETS)` may
 * precede them.
 */
testLines(test, new URL('decoder.txt', import.meta.url), (given) => {
  const [, sizes = '', blocks = ''] = /^(?:\((.*?)\) )?(.*)$/.exec(given) ?? [];
  const [tableBytes = 4096, maxListBytes = 65_536] = ['table', 'list'].map((name) => {
    const size = new RegExp(`${name}=(\\d+)`).exec(sizes)?.[1];
    return size === undefined ? undefined : Number(size);
  });
  const decoder = createDecoder({ tableBytes, maxListBytes });
  return blocks
    .split(' ; ')
    .map((block) => (block === 'table' ? show(drainTable(decoder)) : tryBlock(decoder, block)))
    .join(' ; ');
});

function tryBlock(decoder: HpackDecoder, block: string): string {
  const { generation } = decoder;
  const parts = block.split(' ').map((part) => {
    const [, name, value, octets = '', count = '1'] =
      /^(?:\+(\w*)=(\w*)|([\da-f]*))(?:\*(\d+))?$/.exec(part) ?? [];
    return (name === undefined ? octets : added(name, value ?? '')).repeat(Number(count));
  });
  try {
    return [
      show(decode(decoder, parts.join(''))),
      decoder.onlyIndexed ? 'only indexed' : [],
      decoder.oversized ? 'oversized' : [],
      decoder.generation === generation ? [] : 'the table has changed',
    ]
      .flat()
      .join(', ');
  } catch (error) {
    if (error instanceof HpackError) return `error: ${error.message}`;
    throw error;
  }
}

function show(pairs: readonly Pair[]): string {
  const counted = (value: string) => (value.length > 99 ? `${value.length} octets` : value);
  const texts = pairs.map(([name, value]) => `[${name} ${counted(value)}]`);
  return texts.length > 9
    ? `${texts.length} times ${[...new Set(texts)].join()}`
    : texts.join('') || 'nothing';
}

test('octets outside the block are not read, whatever they would complete', (t) => {
  const full = Buffer.from('8244016140016101624483f8fe3f', 'hex');
  for (let end = 1; end < full.length; end++) {
    const decoder = createDecoder();
    const alone = createDecoder();
    t.deepEqual(
      outcome(() => decoder.decode(full, 0, end, [])),
      outcome(() => alone.decode(Buffer.from(full.subarray(0, end)), 0, end, [])),
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

test('fields are appended to those of the caller', (t) => {
  const decoder = createDecoder();
  const fields: HeaderField[] = [];
  decoder.decode(Buffer.from('8286', 'hex'), 0, 1, fields);
  decoder.decode(Buffer.from('8286', 'hex'), 1, 2, fields);
  t.deepEqual(pluck(fields, 'value'), ['GET', 'http']);
});

test('a Huffman-coded string may be longer than the shared buffer for one', (t) => {
  const octets = 5 * 4096;
  const decoder = createDecoder();
  const length = toHpackInteger(octets, 7, 0x80).toString('hex');
  const [field] = decode(decoder, `01 ${length} ${'18c6318c63'.repeat(4096)}`);
  t.is(field?.[1], 'a'.repeat(8 * 4096));
});

test('an evicted entry is freed', async (t) => {
  setFlagsFromString('--expose-gc');
  const collectGarbage: () => void = runInNewContext('gc');
  const decoder = createDecoder();
  const fields = decodeFields(decoder, `${added('a', '1')} ${added('b', '1')}`);
  const references = fields.splice(0).map((field) => new WeakRef(field));
  // The table shrinks to 34 octets, which is one entry.
  decode(decoder, '3f03');
  // A WeakRef made in this turn of the loop retains its object until the next turn.
  await setImmediate();
  collectGarbage();
  t.deepEqual(
    references.map((reference) => reference.deref()?.name),
    [undefined, 'b'],
  );
  t.deepEqual(drainTable(decoder), [['b', '1']]);
});

test('the same entry is the same object each time', (t) => {
  const decoder = createDecoder();
  const [inserted, again] = decodeFields(decoder, `${added('a', '1')} be`);
  const [later, method] = decodeFields(decoder, 'be 82');
  t.is(inserted, again);
  t.is(inserted, later);
  t.is(decodeFields(createDecoder(), '82')[0], method);
});

test('an unindexed pseudo-header is the same object while its value is the same', (t) => {
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

test('the fields that Envoy sends with each call leave the table unchanged, and are the same objects each time', (t) => {
  const decoder = createDecoder();
  // Recorded from Envoy. The path is a literal that is not added, in every block.
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

test('a pseudo-header that exceeds its block is an error, even if it was complete in an earlier block', (t) => {
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
