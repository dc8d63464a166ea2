import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import test from 'ava';
import { createBodyReader } from './request-body.ts';

function request(): PassThrough & IncomingMessage {
  return Object.assign(new PassThrough(), { headers: {} }) as never;
}

test('a body is read whole up to its bound', async (t) => {
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

test('bodies that are too many together are refused, and leave room when they are over', async (t) => {
  const read = createBodyReader({ maxBytes: 10, maxAllBytes: 25 });
  const begin = () => {
    const one = request();
    const body = read(one);
    one.write('01234567');
    return { one, body };
  };
  const early = [begin(), begin(), begin()];
  t.deepEqual(await begin().body, { kind: 'too-many' });
  early[0]?.one.end('8');
  t.like(await early[0]?.body, { kind: 'whole' });
  early[1]?.one.destroy();
  t.deepEqual(await early[1]?.body, { kind: 'aborted' });
  const late = begin();
  late.one.end();
  t.like(await late.body, { kind: 'whole' });
});
