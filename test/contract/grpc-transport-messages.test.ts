// The part of the gRPC transport contract about the contents of a call: header blocks, fragments of messages,
// compression, deadlines, and the answers to invalid input.
import { gzipSync } from 'node:zlib';
import test from 'ava';
import { maxRequestBytes } from '../../worker/decision/request-bounds.ts';
import { LargeRequests, largeRequestBytes } from '../../worker/grpc/large-requests.ts';
import type { UnaryMethod } from '../../worker/grpc/method.ts';
import { eventually } from '../support/eventually.ts';
import {
  errorCodes,
  flags,
  frameTypes,
  grpcRequest,
  settingIds,
  toCall,
  toData,
  toFrame,
  toHeaderBlock,
  toHeaders,
  toMessage,
  toReset,
  toSettings,
  toUInt32,
  toWindowUpdate,
} from '../support/http2-frames.ts';
import type { Http2Peer } from '../support/http2-peer.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { waitUntil } from '../support/wait-until.ts';
import type { Caller } from './grpc-transport-caller.ts';
import { echo, recordCalls, startTransport } from './grpc-transport-fixture.ts';

const path = '/test.Echo/Echo';
const text = Buffer.from('the message');

test('a header block may come in any number of frames', async (t) => {
  const peer = await (await startTransport(t)).connectPeer();
  const block = toHeaderBlock(grpcRequest(path, ['x-more', 'y'.repeat(15_000)]));
  for (const [index, count] of [1, 2, 3, 7, 20, 60].entries()) {
    const streamId = 2 * index + 1;
    const parts = split(block, Math.ceil(block.length / count));
    const frames = parts.map((part, number) =>
      toFrame(
        number === 0 ? frameTypes.headers : frameTypes.continuation,
        number === parts.length - 1 ? flags.endHeaders : flags.none,
        streamId,
        part,
      ),
    );
    peer.send(...frames, toData(streamId, toMessage(text), flags.endStream));
    t.deepEqual(await peer.answer(streamId), toMessage(text));
  }
});

test('a call may arrive byte by byte', async (t) => {
  const peer = await (await startTransport(t)).connectPeer();
  for (const byte of toCall(1, path, text)) await peer.sendAll(Buffer.of(byte));
  t.deepEqual(await peer.answer(1), toMessage(text));
});

test('DATA may be split anywhere, padded, and empty in between', async (t) => {
  const peer = await (await startTransport(t)).connectPeer();
  const message = toMessage(text);
  for (let cut = 0; cut <= message.length; cut++) {
    const streamId = 2 * cut + 1;
    const padding = cut * 10;
    const padded = Buffer.concat([
      Buffer.of(padding),
      message.subarray(0, cut),
      Buffer.alloc(padding),
    ]);
    peer.send(
      toHeaders(streamId, grpcRequest(path)),
      toData(streamId, padded, flags.padded),
      toData(streamId, Buffer.alloc(0)),
      toData(streamId, message.subarray(cut)),
      toData(streamId, Buffer.alloc(0), flags.endStream),
    );
    t.deepEqual(await peer.answer(streamId), message);
  }
});

test('the headers of a call may have padding and a priority', async (t) => {
  const peer = await (await startTransport(t)).connectPeer();
  const priority = Buffer.concat([toUInt32(0), Buffer.of(200)]);
  const block = toHeaderBlock(grpcRequest(path));
  peer.send(
    toFrame(
      frameTypes.headers,
      flags.endHeaders | flags.padded | flags.priority,
      1,
      Buffer.concat([Buffer.of(9), priority, block, Buffer.alloc(9)]),
    ),
    toData(1, toMessage(text), flags.endStream),
  );
  t.deepEqual(await peer.answer(1), toMessage(text));
});

test('trailers may end a request', async (t) => {
  const peer = await (await startTransport(t)).connectPeer();
  peer.send(
    toHeaders(1, grpcRequest(path)),
    toData(1, toMessage(text)),
    toHeaders(1, [['x-checksum', '1']], flags.endHeaders | flags.endStream),
  );
  t.deepEqual(await peer.answer(1), toMessage(text));
});

test('an answer respects the windows and the frame size of its caller', async (t) => {
  const peer = await (await startTransport(t)).connectPeer({ [settingIds.initialWindowSize]: 0 });
  const request = toMessage(Buffer.alloc(60_000, 3));
  peer.send(toHeaders(1, grpcRequest(path)));
  for (const part of split(request, 16_384)) peer.send(toData(1, part));
  peer.send(toData(1, Buffer.alloc(0), flags.endStream));
  await peer.frame('the headers', ({ type }) => type === frameTypes.headers);
  t.is(receivedBytes(peer, 1), 0);
  for (const allowed of [1, 2, 5, 100]) {
    const before = receivedBytes(peer, 1);
    peer.send(toWindowUpdate(1, allowed));
    t.true(await waitUntil(() => receivedBytes(peer, 1) === before + allowed, 60_000));
  }
  // RFC 9113 6.9.2: the difference also applies to open streams.
  peer.send(toSettings({ [settingIds.initialWindowSize]: 1000 }));
  t.true(await waitUntil(() => receivedBytes(peer, 1) === 1108, 60_000));
  peer.send(toWindowUpdate(1, 100_000));
  t.deepEqual(await peer.answer(1), request);
  t.true(peer.frames.every(({ payload }) => payload.length <= 16_384));
});

test('an answer respects the window of its connection', async (t) => {
  const peer = await (await startTransport(t)).connectPeer({
    [settingIds.initialWindowSize]: 200_000,
  });
  const { connectionBytes, request } = { connectionBytes: 65_535, request: largeRequest(40_000) };
  for (const streamId of [1, 3]) peer.send(...toParts(streamId, request));
  const received = () => receivedBytes(peer, 1) + receivedBytes(peer, 3);
  t.true(await waitUntil(() => received() === connectionBytes, 60_000), `${received()} bytes`);
  peer.send(toWindowUpdate(0, 100_000));
  t.deepEqual(await peer.answer(1), request);
  t.deepEqual(await peer.answer(3), request);
});

test('the answers of several streams share one window in turn', async (t) => {
  const peer = await (await startTransport(t)).connectPeer({ [settingIds.initialWindowSize]: 0 });
  const request = largeRequest(30_000);
  for (const streamId of [1, 3, 5]) peer.send(...toParts(streamId, request));
  // The first two never get a window, and do not block the others.
  peer.send(toWindowUpdate(5, 100_000));
  t.deepEqual(await peer.answer(5), request);
  t.is(receivedBytes(peer, 1) + receivedBytes(peer, 3), 0);
});

test('an error is one header block and nothing else', async (t) => {
  const { connect } = await startTransport(t, {
    [path]: {
      kind: 'unary',
      answer(_bytes, _start, _end, call) {
        call.fail(2, 'as asked');
        return undefined;
      },
    },
  });
  const answer = await (await connect()).call(path, text);
  t.true(answer.isTrailersOnly);
  t.is(answer.httpStatus, 200);
  t.regex(String(answer.fields['content-type']), /^application\/grpc(\+proto)?$/);
  t.like(answer, { grpcStatus: 2, text: 'as asked' });
});

test('metadata up to the allowed size reaches the method', async (t) => {
  const { connect } = await startTransport(t, {
    [path]: {
      kind: 'unary',
      answer(_bytes, _start, _end, call) {
        const received = ['x-0', 'x-99', 'x-large'].map((name) => call.header(name));
        call.succeed(Buffer.from(received.join('|')));
        return undefined;
      },
    },
  });
  const many = Array.from({ length: 100 }, (_, index) => [`x-${index}`, `value ${index}`]);
  const caller = await connect();
  for (let round = 0; round < 3; round++) {
    const large = `${round}`.repeat(30_000);
    const headers = { ...Object.fromEntries(many), 'x-large': large };
    const answer = await caller.call(path, text, headers);
    t.is(String(answer.messages[0]), `value 0|value 99|${large}`);
  }
});

test('compressed requests are decompressed', async (t) => {
  const caller = await (await startTransport(t)).connect();
  const message = Buffer.from('again and '.repeat(10_000));
  const call = (encoding: string, body: Buffer) => callCompressed(caller, encoding, body);
  t.deepEqual((await call('gzip', gzipSync(message))).messages, [message]);
  t.deepEqual((await call('gzip', gzipSync(Buffer.of()))).messages, [Buffer.of()]);
  // A message that is not worth compressing is sent uncompressed, whatever the header announces.
  const plain = await caller.call(path, message, { 'grpc-encoding': 'gzip' });
  t.deepEqual(plain.messages, [message]);
});

test('compressed requests are limited by their decompressed size', async (t) => {
  const calls = countCalls(echo);
  const caller = await (await startTransport(t, { [path]: calls.method })).connect();
  const largest = await callCompressed(caller, 'gzip', gzipSync(Buffer.alloc(maxRequestBytes)));
  t.is(largest.messages[0]?.length, maxRequestBytes);
  for (const size of [maxRequestBytes + 1, 64 * 1024 * 1024]) {
    t.like(await callCompressed(caller, 'gzip', gzipSync(Buffer.alloc(size))), { grpcStatus: 8 });
  }
  t.is(calls.count, 1);
});

test('a damaged compressed request is an error only for its caller', async (t) => {
  const calls = countCalls(echo);
  const caller = await (await startTransport(t, { [path]: calls.method })).connect();
  const full = gzipSync(text);
  for (const body of [Buffer.from('no gzip at all'), full.subarray(0, full.length - 9)])
    t.is((await callCompressed(caller, 'gzip', body)).grpcStatus, 13);
  t.is(calls.count, 0);
  t.is((await caller.call(path, text)).grpcStatus, 0);
});

test('an unknown compression is UNIMPLEMENTED, and the known ones are listed', async (t) => {
  const caller = await (await startTransport(t)).connect();
  const answer = await callCompressed(caller, 'zstd', text);
  t.is(answer.grpcStatus, 12);
  t.regex(answer.text, /zstd/);
  t.regex(String(answer.fields['grpc-accept-encoding']), /^identity,(deflate,)?gzip$/);
});

test('a compressed message without a declared compression is refused', async (t) => {
  const calls = countCalls(echo);
  const caller = await (await startTransport(t, { [path]: calls.method })).connect();
  t.is((await callCompressed(caller, undefined, text)).grpcStatus, 13);
  t.is((await callCompressed(caller, 'identity', text)).grpcStatus, 13);
  t.is(calls.count, 0);
});

test('a unary call has exactly one message', async (t) => {
  const calls = countCalls(echo);
  const caller = await (await startTransport(t, { [path]: calls.method })).connect();
  const full = toMessage(text);
  for (const body of [Buffer.of(), Buffer.concat([full, full])]) {
    const call = caller.open(path);
    call.stream.end(body);
    t.true([12, 13].includes((await call.answer).grpcStatus ?? 0), `${body.length} bytes`);
  }
  t.is((await caller.call(path, text)).grpcStatus, 0);
  t.is(calls.count, 1);
});

test('a message that ends too early does not reach its method', async (t) => {
  const calls = countCalls(echo);
  const caller = await (await startTransport(t, { [path]: calls.method })).connect();
  for (const length of [1, 4, 5, 8]) {
    const call = caller.open(path);
    call.stream.end(toMessage(text).subarray(0, length));
    t.true([12, 13].includes((await call.answer).grpcStatus ?? 0), `${length} bytes`);
  }
  t.is(calls.count, 0);
});

test('a call that is aborted before its end does not reach its method', async (t) => {
  const calls = countCalls(echo);
  const peer = await (await startTransport(t, { [path]: calls.method })).connectPeer();
  peer.send(toHeaders(1, grpcRequest(path)), toReset(1, errorCodes.cancel));
  peer.send(
    toHeaders(3, grpcRequest(path)),
    toData(3, toMessage(text).subarray(0, 7)),
    toReset(3, errorCodes.cancel),
  );
  peer.send(toCall(5, path, text));
  t.deepEqual(await peer.answer(5), toMessage(text));
  t.is(calls.count, 1);
});

test("a caller's timeout is read in every unit", async (t) => {
  const timeouts: (number | undefined)[] = [];
  const { connect } = await startTransport(t, {
    [path]: {
      kind: 'unary',
      answer(bytes, start, end, call) {
        timeouts.push(call.deadlineMs && Math.round(call.deadlineMs - call.receivedMs));
        return echo.answer(bytes, start, end, call);
      },
    },
  });
  const caller = await connect();
  t.is((await caller.call(path, text)).grpcStatus, 0);
  t.is(timeouts.pop(), undefined);
  const units = { '2H': 7_200_000, '3M': 180_000, '40S': 40_000, '50000m': 50_000 };
  for (const [value, expectedMs] of Object.entries({ ...units, '60000000u': 60_000 })) {
    t.is((await caller.call(path, text, { 'grpc-timeout': value })).grpcStatus, 0, value);
    const timeoutMs = timeouts.pop() ?? 0;
    t.true(timeoutMs <= expectedMs && timeoutMs > expectedMs - 20_000, `${value}: ${timeoutMs}`);
    t.true(timeoutMs > 0, value);
  }
  // The largest number of nanoseconds is a tenth of a second, which a busy machine may exceed.
  await eventually('nanoseconds are read', async () => {
    await caller.call(path, text, { 'grpc-timeout': '99999999n' });
    const [timeoutMs = 0] = timeouts.splice(0);
    t.true(timeoutMs <= 100, `${timeoutMs}`);
    return timeoutMs > 0;
  });
});

test('the time of a large request begins with its arrival, not with its turn', async (t) => {
  const clock = createManualClock();
  const largeRequests = new LargeRequests(() => clock.monotonicMs());
  const times: (number | undefined)[] = [];
  const started = await startTransport(
    t,
    {
      [path]: {
        kind: 'unary',
        answer(bytes, begin, end, call) {
          if (end - begin > largeRequestBytes) times.push(call.receivedMs, call.deadlineMs);
          return echo.answer(bytes, begin, end, call);
        },
      },
    },
    {},
    clock,
    largeRequests,
  );
  const message = Buffer.alloc(2000);
  const headers = [
    ...grpcRequest(path),
    ['grpc-timeout', '30S'],
    ['grpc-encoding', 'gzip'],
  ] as const;
  const zipped = gzipSync(message);
  const ends = {
    'with its bytes': (id: number) => [toData(id, toMessage(message), flags.endStream)],
    'in parts': (id: number) => [
      toData(id, toMessage(message).subarray(0, 500)),
      toData(id, toMessage(message).subarray(500), flags.endStream),
    ],
    'in a frame of its own': (id: number) => [
      toData(id, toMessage(message)),
      toData(id, Buffer.alloc(0), flags.endStream),
    ],
    'with compressed bytes': (id: number) => [
      toData(id, Buffer.concat([Buffer.of(1), toUInt32(zipped.length), zipped]), flags.endStream),
    ],
    'with trailers': (id: number) => [
      toData(id, toMessage(message)),
      toHeaders(id, [['x-checksum', '1']], flags.endHeaders | flags.endStream),
    ],
  };
  for (const [ended, toBody] of Object.entries(ends)) {
    const peer = await started.connectPeer();
    const atWork = { bytes: maxRequestBytes * 8, begin() {} };
    largeRequests.add(atWork);
    const arrivedMs = clock.monotonicMs();
    peer.send(toHeaders(1, headers), ...toBody(1));
    await eventually('it waits for its turn', () => largeRequests.waitingBytes === message.length);
    clock.advance(4000);
    peer.send(toCall(3, path, text));
    await peer.answer(3);
    largeRequests.over(atWork);
    t.deepEqual(await peer.answer(1), toMessage(message));
    t.deepEqual(times.splice(0), [arrivedMs, arrivedMs + 30_000], ended);
  }
});

test('the longest possible timeout does not expire at once', async (t) => {
  const calls = recordCalls();
  const caller = await (await startTransport(t, { [path]: calls.method })).connect();
  const answer = caller.call(path, text, { 'grpc-timeout': '99999999H' });
  t.true(await waitUntil(() => calls.replies.length === 1, 60_000));
  // Timers with the shortest delay run in the order in which they were set.
  await new Promise((resolve) => setTimeout(resolve, 1));
  calls.replies[0]?.();
  t.is((await answer).grpcStatus, 0);
});

test('a caller without any time left gets that answer', async (t) => {
  const calls = recordCalls();
  const caller = await (await startTransport(t, { [path]: calls.method })).connect();
  for (const value of ['0n', '1n', '1m'])
    t.is((await caller.call(path, text, { 'grpc-timeout': value })).grpcStatus, 4, value);
});

test('an invalid timeout, even a nearly valid one, is refused', async (t) => {
  const caller = await (await startTransport(t)).connect();
  for (const value of ['soon', '5', 'S', '-1S', '1.5S', '1SS', 's1S', '123456789S'])
    t.is((await caller.call(path, text, { 'grpc-timeout': value })).grpcStatus, 13, value);
});

function split(bytes: Buffer, size: number): Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
    bytes.subarray(index * size, (index + 1) * size),
  );
}

function largeRequest(length: number): Buffer {
  return toMessage(Buffer.alloc(length, 5));
}

/** A call whose message takes several frames; since it is sent at once, it must fit into the first window. */
function toParts(streamId: number, message: Buffer): Buffer[] {
  return [
    toHeaders(streamId, grpcRequest(path)),
    ...split(message, 16_384).map((part) => toData(streamId, part)),
    toData(streamId, Buffer.alloc(0), flags.endStream),
  ];
}

function receivedBytes(peer: Http2Peer, streamId: number): number {
  return peer.frames
    .filter((frame) => frame.streamId === streamId && frame.type === frameTypes.data)
    .reduce((sum, { payload }) => sum + payload.length, 0);
}

/** One message with the flag of a compressed one. */
function callCompressed(caller: Caller, encoding: string | undefined, body: Buffer) {
  const call = caller.open(path, encoding === undefined ? {} : { 'grpc-encoding': encoding });
  call.stream.end(Buffer.concat([Buffer.of(1), toUInt32(body.length), body]));
  return call.answer;
}

function countCalls(method: UnaryMethod) {
  const counted = {
    count: 0,
    method: {
      ...method,
      answer(bytes, start, end, call) {
        counted.count++;
        return method.answer(bytes, start, end, call);
      },
    } satisfies UnaryMethod as UnaryMethod,
  };
  return counted;
}
