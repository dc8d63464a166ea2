// What the gRPC transport does with calls. Messages, addresses and the end of connections have their own files; the
// services on it are tested next to them.
import test from 'ava';
import { maxRequestBytes } from '../../worker/decision/request-bounds.ts';
import type { UnaryMethod } from '../../worker/grpc/method.ts';
import { waitUntil } from '../support/wait-until.ts';
import { frame } from './grpc-transport-caller.ts';
import { recordCalls, startTransport, toStream } from './grpc-transport-fixture.ts';

test('a request reaches its method and the answer returns, byte for byte', async (t) => {
  const caller = await (await startTransport(t)).connect();
  for (const message of [Buffer.of(), Buffer.of(0, 255, 128), Buffer.alloc(100_000, 7)]) {
    const answer = await caller.call('/test.Echo/Echo', message);
    t.like(answer, { grpcStatus: 0, httpStatus: 200 });
    t.deepEqual(answer.messages, [message]);
  }
});

test('a message may arrive in any number of pieces', async (t) => {
  const caller = await (await startTransport(t)).connect();
  const call = caller.open('/test.Echo/Echo');
  for (const byte of frame(Buffer.from('in pieces')))
    await new Promise((resolve) => call.stream.write(Buffer.of(byte), resolve));
  call.stream.end();
  t.deepEqual((await call.answer).messages, [Buffer.from('in pieces')]);
});

test('a method receives the headers and the address of its caller', async (t) => {
  const echo: UnaryMethod = {
    kind: 'unary',
    answer(_bytes, _start, _end, call) {
      const echoed = [call.header('b3'), call.header('x-none'), call.peer()];
      call.succeed(Buffer.from(echoed.join('|')));
      return undefined;
    },
  };
  const caller = await (await startTransport(t, { '/test.Tell/Tell': echo })).connect();
  const [echoed] = (await caller.call('/test.Tell/Tell', Buffer.of(), { b3: 'one' })).messages;
  t.regex(String(echoed), /^one\|\|127\.0\.0\.1:\d+$/);
});

test('calls on one connection are answered independently of their order', async (t) => {
  const replies: (() => void)[] = [];
  const caller = await (
    await startTransport(t, {
      '/test.Echo/Echo': {
        kind: 'unary',
        answer(bytes, start, end, call) {
          const message = Buffer.from(bytes.subarray(start, end));
          replies.push(() => call.succeed(message));
          return undefined;
        },
      },
    })
  ).connect();
  const answers = Array.from({ length: 200 }, (_, index) =>
    caller.call('/test.Echo/Echo', Buffer.from(`${index}`)),
  );
  t.true(await waitUntil(() => replies.length === 200, 60_000));
  for (const reply of replies.reverse()) reply();
  for (const [index, answer] of (await Promise.all(answers)).entries()) {
    t.deepEqual(answer.messages, [Buffer.from(`${index}`)]);
  }
});

test('an error has its status and its text, whatever that contains', async (t) => {
  for (const text of ['plain', '100 % "quoted"\nand\tso on', 'naïve 😀', 'half \ud800 pair']) {
    const { connect } = await startTransport(t, {
      '/test.Echo/Echo': {
        kind: 'unary',
        answer(_bytes, _start, _end, call) {
          call.fail(2, text);
          return undefined;
        },
      },
    });
    const answer = await (await connect()).call('/test.Echo/Echo', Buffer.of());
    t.is(answer.grpcStatus, 2);
    t.is(answer.text, text.toWellFormed());
    t.deepEqual(answer.messages, []);
  }
});

test('unknown paths are UNIMPLEMENTED with the text of the reference', async (t) => {
  const caller = await (await startTransport(t)).connect();
  const texts = {
    '/other.Service/Echo': 'unknown service other.Service',
    '/test.Echo/Other': 'unknown method Other for service test.Echo',
    '/nonsense': 'malformed method name: "/nonsense"',
    '/test.Ech/Echo': 'unknown service test.Ech',
  };
  for (const [path, text] of Object.entries(texts)) {
    t.like(await caller.call(path, Buffer.from('body')), { grpcStatus: 12, text });
  }
});

test('a request of 512 KiB is accepted and a larger one refused', async (t) => {
  const caller = await (await startTransport(t)).connect();
  const largest = await caller.call('/test.Echo/Echo', Buffer.alloc(maxRequestBytes));
  t.is(largest.grpcStatus, 0);
  t.is(largest.messages[0]?.length, maxRequestBytes);
  const larger = await caller.call('/test.Echo/Echo', Buffer.alloc(maxRequestBytes + 1));
  t.is(larger.grpcStatus, 8);
  t.is(larger.text, 'grpc: received message larger than max (524289 vs. 524288)');
  t.is((await caller.call('/test.Echo/Echo', Buffer.of(1))).grpcStatus, 0);
});

test('a caller whose deadline passes is notified, and so is the method', async (t) => {
  const calls = recordCalls();
  const caller = await (await startTransport(t, { '/test.Echo/Echo': calls.method })).connect();
  const answer = await caller.call('/test.Echo/Echo', Buffer.of(), { 'grpc-timeout': '50m' });
  t.is(answer.grpcStatus, 4);
  t.true(await waitUntil(() => calls.gone === 1, 60_000));
  t.notThrows(() => calls.replies[0]?.());
});

test('a method learns that its caller has disconnected, and may still answer', async (t) => {
  const calls = recordCalls();
  const { connect } = await startTransport(t, { '/test.Echo/Echo': calls.method });
  const caller = await connect();
  const call = caller.open('/test.Echo/Echo');
  call.stream.end(frame(Buffer.of()));
  t.true(await waitUntil(() => calls.replies.length === 1, 60_000));
  call.stream.close(8);
  t.true(await waitUntil(() => calls.gone === 1, 60_000));
  t.notThrows(() => calls.replies[0]?.());

  caller.open('/test.Echo/Echo').stream.end(frame(Buffer.of()));
  t.true(await waitUntil(() => calls.replies.length === 2, 60_000));
  caller.session.socket.destroy();
  t.true(await waitUntil(() => calls.gone === 2, 60_000));
  t.notThrows(() => calls.replies[1]?.());
});

test('a stream carries messages both ways until either side ends it', async (t) => {
  const events: string[] = [];
  const { connect } = await startTransport(t, {
    '/test.Chat/Chat': toStream((caller) => ({
      message(bytes) {
        events.push(`message ${bytes}`);
        if (`${bytes}` === 'fail') caller.finish({ status: 5, text: 'as asked' });
        else caller.send(Buffer.from(`re: ${bytes}`));
      },
      halfClose() {
        events.push('half-close');
        caller.finish();
      },
      closed: () => events.push('closed'),
    })),
  });
  const caller = await connect();
  const ended = caller.open('/test.Chat/Chat');
  ended.send(Buffer.from('one'));
  ended.send(Buffer.from('two'));
  ended.stream.end();
  const answer = await ended.answer;
  t.is(answer.grpcStatus, 0);
  t.deepEqual(answer.messages.map(String), ['re: one', 're: two']);
  t.deepEqual(events.splice(0), ['message one', 'message two', 'half-close', 'closed']);

  const failed = caller.open('/test.Chat/Chat');
  failed.send(Buffer.from('fail'));
  const failure = await failed.answer;
  t.like(failure, { grpcStatus: 5, text: 'as asked' });
  t.deepEqual(events.splice(0), ['message fail', 'closed']);

  const left = caller.open('/test.Chat/Chat');
  left.send(Buffer.from('bye'));
  t.true(await waitUntil(() => events.length === 1, 60_000));
  left.stream.close(8);
  t.true(await waitUntil(() => events.includes('closed'), 60_000));
  t.is(events.filter((event) => event === 'closed').length, 1);
});

test('a caller that does not read is not read from endlessly', async (t) => {
  const chunk = Buffer.alloc(16_384, 1);
  let received = 0;
  const { connect } = await startTransport(t, {
    '/test.Chat/Chat': toStream((caller) => ({
      message() {
        received++;
        for (let index = 0; index < 8; index++) caller.send(chunk);
      },
      halfClose() {},
      closed() {},
    })),
  });
  const call = (await connect()).open('/test.Chat/Chat');
  call.stream.pause();
  const sent = 5000;
  for (let index = 0; index < sent; index++) call.send(Buffer.of(1));
  t.true(await waitUntil(() => received > 0, 60_000));
  let before = -1;
  // It has stopped when nothing more was accepted for a while.
  await waitUntil(
    () => {
      const halted = received === before;
      before = received;
      return halted;
    },
    5000,
    200,
  );
  t.true(received < 1000, `${received} of ${sent} messages were taken`);
  call.stream.close(8);
});
