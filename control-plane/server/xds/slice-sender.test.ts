// Tests that messages are sent in order and one at a time, in slices where they are encrypted.
import { Writable } from 'node:stream';
import test from 'ava';
import { SliceSender } from './grpc-call.ts';

/** A stream whose reader accepts writes only on demand. */
function createSlowStream() {
  const received: Buffer[] = [];
  let pending:
    | { readonly chunks: readonly Buffer[]; readonly bytes: Buffer; readonly done: () => void }
    | undefined;
  let ended = false;
  const stream = new Writable({
    writev(chunks, callback) {
      const buffers = chunks.map(({ chunk }) => chunk as Buffer);
      pending = { chunks: buffers, bytes: Buffer.concat(buffers), done: callback };
    },
    final(callback) {
      ended = true;
      callback();
    },
  });
  return {
    stream,
    received,
    get pendingChunks() {
      return pending?.chunks ?? [];
    },
    get pendingBytes() {
      return pending?.bytes.length ?? 0;
    },
    get ended() {
      return ended;
    },
    async receive() {
      const now = pending;
      if (now === undefined) throw new Error('nothing is pending');
      pending = undefined;
      received.push(now.bytes);
      now.done();
      // The stream calls back in a later turn.
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

test('an encrypted message is passed on in slices, and is sent when the last one is accepted', async (t) => {
  const slow = createSlowStream();
  const sender = new SliceSender(slow.stream, true);
  const parts = [Buffer.alloc(5, 1), Buffer.alloc(150_000, 2), Buffer.of(), Buffer.alloc(7, 3)];
  let sent = 0;
  sender.send(parts, () => sent++);
  sender.end();
  while (slow.pendingBytes > 0) {
    t.is(sent, 0);
    t.true(slow.pendingBytes <= 65_536);
    await slow.receive();
  }
  t.is(sent, 1);
  t.true(slow.ended);
  t.is(slow.received.length, 3);
  t.deepEqual(Buffer.concat(slow.received), Buffer.concat(parts));
});

test('an unencrypted message is passed on as a whole', async (t) => {
  const slow = createSlowStream();
  const sender = new SliceSender(slow.stream, false);
  const parts = [Buffer.alloc(5, 1), Buffer.alloc(1_000_000, 2)];
  let sent = 0;
  sender.send(parts, () => sent++);
  t.is(slow.pendingBytes, 1_000_005);
  t.true(
    slow.pendingChunks.every((chunk, at) => chunk === parts[at]),
    'the buffers themselves',
  );
  await slow.receive();
  t.is(sent, 1);
  t.deepEqual(Buffer.concat(slow.received), Buffer.concat(parts));
});

test('a message queued while another is sent follows it, and the end comes after both', async (t) => {
  const slow = createSlowStream();
  const sender = new SliceSender(slow.stream, false);
  const order: string[] = [];
  sender.send([Buffer.from('one')], () => {
    order.push('one');
    sender.send([Buffer.from('two')], () => order.push('two'));
    sender.end();
  });
  await slow.receive();
  t.false(slow.ended);
  await slow.receive();
  t.deepEqual(order, ['one', 'two']);
  t.deepEqual(slow.received.map(String), ['one', 'two']);
  t.true(slow.ended);
});
