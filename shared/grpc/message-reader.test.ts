import test from 'ava';
import fc from 'fast-check';
import { MessageReader } from './message-reader.ts';

const maxMessageBytes = 100_000;

function createBudget(limit = Number.POSITIVE_INFINITY) {
  const budget = {
    buffered: 0,
    hold(bytes: number) {
      if (budget.buffered + bytes > limit) return false;
      budget.buffered += bytes;
      return true;
    },
    release(bytes: number) {
      budget.buffered -= bytes;
    },
  };
  return budget;
}

function toMessage(bytes: Uint8Array, flag = 0): Buffer {
  const prefix = Buffer.of(flag, 0, 0, 0, 0);
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}

test('messages are read as they were written, however they are split', (t) => {
  const messages = fc.array(fc.tuple(fc.constantFrom(0, 1), fc.uint8Array({ maxLength: 300 })));
  const cuts = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1 });
  fc.assert(
    fc.property(messages, cuts, (sent, sizes) => {
      const budget = createBudget();
      const reader = new MessageReader(maxMessageBytes, budget);
      const wire = Buffer.concat(sent.map(([flag, bytes]) => toMessage(bytes, flag)));
      const received: [number, Buffer][] = [];
      for (let position = 0, turn = 0; position < wire.length; turn++) {
        const end = Math.min(wire.length, position + (sizes[turn % sizes.length] ?? 1));
        reader.add(wire, position, end);
        position = end;
        for (let next = reader.next(); next.kind === 'message'; next = reader.next())
          received.push([next.flag, Buffer.from(next.bytes)]);
      }
      t.deepEqual(
        received,
        sent.map(([flag, bytes]) => [flag, Buffer.from(bytes)]),
      );
      t.is(reader.remaining, 0);
      reader.drop();
      t.is(budget.buffered, 0);
    }),
  );
});

test('a message takes no more memory than it has bytes, also when it arrives in pieces', (t) => {
  const budget = createBudget();
  const reader = new MessageReader(maxMessageBytes, budget);
  const wire = toMessage(Buffer.alloc(maxMessageBytes));
  for (let position = 0; position < wire.length; position += 1000)
    reader.add(wire, position, Math.min(wire.length, position + 1000));
  t.is(reader.next().kind, 'message');
  t.is(budget.buffered, wire.length);
});

test('a message beyond the budget is refused, and its bytes return to the budget', (t) => {
  const budget = createBudget(1000);
  const reader = new MessageReader(maxMessageBytes, budget);
  const wire = toMessage(Buffer.alloc(2000));
  t.true(reader.add(wire, 0, 400));
  t.false(reader.add(wire, 400, 1500));
  t.is(reader.remaining, 400);
  reader.drop();
  t.is(budget.buffered, 0);
  t.is(reader.remaining, 0);
});

test('a message that is too large is refused by its prefix alone', (t) => {
  const reader = new MessageReader(maxMessageBytes, createBudget());
  const prefix = Buffer.of(0, 0, 0, 0, 0);
  prefix.writeUInt32BE(maxMessageBytes + 1, 1);
  t.true(reader.add(prefix, 0, 5));
  t.deepEqual(reader.next(), { kind: 'too-large', length: maxMessageBytes + 1 });
});
