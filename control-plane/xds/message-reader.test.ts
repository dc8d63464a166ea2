// Messages out of bytes, however those are cut.
import test from 'ava';
import fc from 'fast-check';
import { createMessageReader } from './message-reader.ts';

function frame(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

test('messages come out whole and in order, however the bytes are cut', (t) => {
  const messages = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 6 });
  const cuts = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(messages, cuts, (given, sizes) => {
      const bytes = Buffer.concat(given.map(frame));
      const reader = createMessageReader(1000);
      const taken: Buffer[] = [];
      for (let at = 0, turn = 0; at < bytes.length; turn++) {
        const size = sizes[turn % sizes.length] ?? 1;
        const problem = reader.read(bytes.subarray(at, at + size), (message) => {
          taken.push(Buffer.from(message));
          return true;
        });
        t.is(problem, undefined);
        at += size;
      }
      t.deepEqual(
        taken,
        given.map((message) => Buffer.from(message)),
      );
      t.true(reader.isEmpty);
    }),
  );
});

test('nothing is taken after the taker has had enough', (t) => {
  const reader = createMessageReader(1000);
  let taken = 0;
  reader.read(Buffer.concat([frame(Buffer.of(1)), frame(Buffer.of(2))]), () => {
    taken++;
    return false;
  });
  t.is(taken, 1);
});

test('a length above the limit is refused before the message comes', (t) => {
  const reader = createMessageReader(10);
  const problem = reader.read(Buffer.from([0, 0, 0, 0, 11]), () => t.fail());
  t.deepEqual(problem, { status: 8, text: 'received message larger than max (11 vs. 10)' });
});
