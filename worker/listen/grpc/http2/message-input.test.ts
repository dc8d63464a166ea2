import test from 'ava';
import fc from 'fast-check';
import { maxRequestBytes } from '../../../decision/request-bounds.ts';
import { MessageInput } from './message-input.ts';

function createBudget(limit = Number.POSITIVE_INFINITY) {
  const budget = {
    held: 0,
    hold(bytes: number) {
      if (budget.held + bytes > limit) return false;
      budget.held += bytes;
      return true;
    },
    release(bytes: number) {
      budget.held -= bytes;
    },
  };
  return budget;
}

function toMessage(bytes: Uint8Array, flag = 0): Buffer {
  const prefix = Buffer.of(flag, 0, 0, 0, 0);
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}

test('messages come out as they were put in, however they are cut', (t) => {
  const messages = fc.array(fc.tuple(fc.constantFrom(0, 1), fc.uint8Array({ maxLength: 300 })));
  const cuts = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1 });
  fc.assert(
    fc.property(messages, cuts, (sent, sizes) => {
      const budget = createBudget();
      const input = new MessageInput(budget);
      const wire = Buffer.concat(sent.map(([flag, bytes]) => toMessage(bytes, flag)));
      const received: [number, Buffer][] = [];
      for (let position = 0, turn = 0; position < wire.length; turn++) {
        const end = Math.min(wire.length, position + (sizes[turn % sizes.length] ?? 1));
        input.add(wire, position, end);
        position = end;
        for (let next = input.next(); next.kind === 'message'; next = input.next()) {
          received.push([next.flag, Buffer.from(next.bytes)]);
        }
      }
      t.deepEqual(
        received,
        sent.map(([flag, bytes]) => [flag, Buffer.from(bytes)]),
      );
      t.is(input.remaining, 0);
      input.drop();
      t.is(budget.held, 0);
    }),
  );
});

test('a message takes no more memory than it has bytes, in pieces too', (t) => {
  const budget = createBudget();
  const input = new MessageInput(budget);
  const wire = toMessage(Buffer.alloc(100_000));
  for (let position = 0; position < wire.length; position += 1000) {
    input.add(wire, position, Math.min(wire.length, position + 1000));
  }
  t.is(input.next().kind, 'message');
  t.is(budget.held, wire.length);
});

test('what the budget does not allow is refused, and nothing is lost of what it held', (t) => {
  const budget = createBudget(1000);
  const input = new MessageInput(budget);
  const wire = toMessage(Buffer.alloc(2000));
  t.true(input.add(wire, 0, 400));
  t.false(input.add(wire, 400, 1500));
  t.is(input.remaining, 400);
  input.drop();
  t.is(budget.held, 0);
  t.is(input.remaining, 0);
});

test('a message that is too large is refused by its prefix alone', (t) => {
  const input = new MessageInput(createBudget());
  const prefix = Buffer.of(0, 0, 0, 0, 0);
  prefix.writeUInt32BE(maxRequestBytes + 1, 1);
  t.true(input.add(prefix, 0, 5));
  t.deepEqual(input.next(), { kind: 'too-large', length: maxRequestBytes + 1 });
});
