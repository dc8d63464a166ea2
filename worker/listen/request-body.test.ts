import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import { createBodyReader } from './request-body.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function request(): PassThrough & IncomingMessage {
  return Object.assign(new PassThrough(), { headers: {} }) as never;
}

test('a body is read completely up to its bound', async (t) => {
  const read = createBodyReader({ maxBytes: 10, maxAllBytes: 100 });
  const fits = request();
  const fitting = read(fits);
  fits.end('0123456789');
  t.deepEqual(await fitting, { kind: 'whole', bytes: Buffer.from('0123456789') });
  const large = request();
  const refused = read(large);
  large.write('0123456789x');
  t.deepEqual(await refused, { kind: 'too-large' });
});

test('when bodies together are too large, the oldest is refused, even if it trickles', async (t) => {
  const read = createBodyReader({ maxBytes: 10, maxAllBytes: 33 });
  const begin = () => {
    const one = request();
    const body = read(one);
    one.write('01234567');
    return { one, body };
  };
  const stalled = begin();
  await pass();
  const [slow, left] = [begin(), begin()];
  await pass();
  stalled.one.write('8');
  await pass();
  const innocent = begin();
  t.deepEqual(await stalled.body, { kind: 'too-many' });
  innocent.one.end();
  t.like(await innocent.body, { kind: 'whole' });
  left.one.destroy();
  t.deepEqual(await left.body, { kind: 'aborted' });
  const [third, fourth] = [begin(), begin()];
  for (const { one } of [slow, third, fourth]) one.end();
  for (const { body } of [slow, third, fourth]) t.like(await body, { kind: 'whole' });
});

test('the pieces of a body are not stored individually: one of a single byte takes a hundred', async (t) => {
  const read = createBodyReader({ maxBytes: 1000, maxAllBytes: 1000 });
  const one = request();
  const body = read(one);
  const pieces = Array.from({ length: 300 }, () => {
    const piece = Buffer.alloc(1, 'x');
    one.emit('data', piece);
    return new WeakRef(piece);
  });
  await pass();
  collectGarbage();
  t.true(pieces.every((piece) => piece.deref() === undefined));
  one.end();
  t.deepEqual(await body, { kind: 'whole', bytes: Buffer.alloc(300, 'x') });
});

function pass(): Promise<void> {
  return new Promise(setImmediate);
}
