// Every known attack on HTTP/2 servers, against the engine: where it is stopped, and that another caller is still
// served. limits.ts has the limits.
import { execFile } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import test, { type ExecutionContext } from 'ava';
import { maxRequestBytes } from '../../worker/decision/request-bounds.ts';
import * as limits from '../../worker/grpc/http2/limits.ts';
import { maxWaitingBytes } from '../../worker/grpc/large-requests.ts';
import type { GrpcMethod } from '../../worker/grpc/method.ts';
import { toStream } from '../contract/grpc-transport-fixture.ts';
import {
  errorCodes,
  type Frame,
  flags,
  frameTypes,
  grpcRequest,
  preface,
  settingIds,
  settingsAck,
  toCall,
  toData,
  toFrame,
  toHeaderBlock,
  toHeaders,
  toHpackInteger,
  toHpackString,
  toMessage,
  toPing,
  toPriority,
  toReset,
  toSettings,
  toUInt32,
  toWindowUpdate,
} from '../support/http2-frames.ts';
import type { Http2Peer } from '../support/http2-peer.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { waitUntil } from '../support/wait-until.ts';
import {
  type Attacked,
  defineAttacks,
  flood,
  passTime,
  residentBytes,
  settle,
} from './attack-fixture.ts';

const attack = defineAttacks(test);

const small = Buffer.from('x');
const { enhanceYourCalm, protocol, noError } = errorCodes;

/** The server serves this call of the attacker's own. */
async function echoes(t: ExecutionContext, peer: Http2Peer, streamId: number): Promise<void> {
  peer.send(toCall(streamId, '/test.Echo/Echo', small));
  t.deepEqual(await peer.answer(streamId), toMessage(small));
}

/** The greeting has used up a few; the PINGs of the test count, too. */
const overhead = { first: limits.overheadBurst - 20, step: 3, most: limits.overheadBurst + 20 };
/** Opens all windows, so that only the server's own limits and kernel buffers apply. */
const openWindows = { [settingIds.initialWindowSize]: 2 ** 31 - 1 };
const openConnection = toWindowUpdate(0, 2 ** 31 - 1 - 65_535);
const kernelBytes = 16 * 1024 * 1024;

/** Reads nothing until `resume`, and opens all windows. */
async function connectSlowReader(connectPeer: Attacked['connectPeer']): Promise<Http2Peer> {
  const peer = await connectPeer(openWindows);
  peer.send(openConnection);
  await settle(peer);
  peer.pause();
  return peer;
}

// Frames without end.

const floods: Readonly<Record<string, (index: number) => Buffer>> = {
  PING: () => toPing(),
  'PING answers': () => toPing(flags.ack),
  SETTINGS: () => toSettings(),
  'SETTINGS answers': () => settingsAck,
  'PRIORITY on streams that never come': (index) => toPriority(2 * index + 1_000_001, 0),
  'PRIORITY on one stream': (index) => toPriority(1, 2 * index + 3),
  'WINDOW_UPDATE of the connection': () => toWindowUpdate(0, 1),
  'WINDOW_UPDATE of a stream': () => toWindowUpdate(1, 1),
  'WINDOW_UPDATE of a stream that is over': () => toWindowUpdate(3, 1),
  'RST_STREAM of a stream that is over': () => toReset(3, errorCodes.cancel),
  GOAWAY: () => toFrame(frameTypes.goAway, flags.none, 0, Buffer.alloc(8)),
  'unknown frames': () => toFrame(frameTypes.unknown, 0xff, 77, small),
  'empty DATA': () => toData(1, Buffer.alloc(0)),
  'DATA of nothing but padding': () => toData(1, Buffer.alloc(1), flags.padded),
};

for (const [what, frame] of Object.entries(floods)) {
  attack(`flood of ${what}`, async (t, { connectPeer }) => {
    const peer = await connectPeer();
    peer.send(toHeaders(1, grpcRequest('/attacked')));
    await echoes(t, peer, 3);
    const sent = await flood(t, peer, frame, overhead);
    t.is((await peer.goAway()).code, enhanceYourCalm);
    return `GOAWAY after ${sent} frames`;
  });
}

attack('flood in small portions, for a long time', async (t, { connectPeer, clock }) => {
  const peer = await connectPeer();
  const { overheadPerSecond } = limits;
  let seconds = 0;
  // Half of the sustained rate that is allowed, then twice that rate.
  for (; seconds < 600; seconds += 60) {
    await peer.sendAll(Buffer.concat(Array(60 * (overheadPerSecond / 2)).fill(toPing())));
    await settle(peer);
    await passTime(clock, 60_000);
  }
  t.false(peer.isEnded);
  for (; seconds < 1200 && !peer.isEnded; seconds += 20) {
    await peer.sendAll(Buffer.concat(Array(20 * (overheadPerSecond * 2)).fill(toPing())));
    await settle(peer);
    await passTime(clock, 20_000);
  }
  t.true(peer.isEnded);
  t.is((await peer.goAway()).code, enhanceYourCalm);
  return `${overheadPerSecond / 2}/s borne for 600 s, ${overheadPerSecond * 2}/s for ${seconds - 600} s`;
});

attack('SETTINGS of thousands of windows over a thousand streams', async (t, { connectPeer }) => {
  const peer = await connectPeer();
  const streams = limits.maxConcurrentStreams;
  for (let index = 0; index < streams; index++)
    peer.send(toHeaders(2 * index + 1, grpcRequest('/attacked')));
  await settle(peer);
  t.false(peer.isEnded);
  const entry = (value: number) =>
    toSettings({ [settingIds.initialWindowSize]: value }).subarray(9);
  const entries = Array.from({ length: 2700 }, (_, index) => entry(65_535 - (index % 2)));
  const frame = toFrame(frameTypes.settings, flags.none, 0, Buffer.concat(entries));
  let frames = 0;
  for (; frames < 100 && !peer.isEnded; frames++) {
    await peer.sendAll(frame);
    await settle(peer);
  }
  t.true(peer.isEnded, 'not ended after 270,000 settings');
  t.is((await peer.goAway()).code, enhanceYourCalm);
  return `GOAWAY after ${frames} frames of ${entries.length} settings`;
});

// Streams that are begun and thrown away.

attack('rapid reset, in one breath', async (t, { connectPeer }) => {
  const peer = await connectPeer();
  let pairs = 0;
  while (!peer.isEnded && pairs < 3 * limits.rapidResetBurst) {
    const portion: Buffer[] = [];
    for (const end = pairs + 10; pairs < end; pairs++) {
      const streamId = 2 * pairs + 1;
      portion.push(toCall(streamId, '/attacked', small), toReset(streamId, errorCodes.cancel));
    }
    await peer.sendAll(Buffer.concat(portion));
    await settle(peer);
  }
  t.true(peer.isEnded);
  t.is((await peer.goAway()).code, enhanceYourCalm);
  t.true(pairs <= 2 * limits.rapidResetBurst, `${pairs} calls`);
  return `GOAWAY after ${pairs} calls`;
});

attack('rapid reset, a little later', async (t, { connectPeer, calls }) => {
  const peer = await connectPeer();
  let begun = 0;
  for (let round = 0; round < 20 && !peer.isEnded; round++) {
    const ids = Array.from({ length: 500 }, () => 2 * begun++ + 1);
    await peer.sendAll(Buffer.concat(ids.map((id) => toCall(id, '/attacked', small))));
    await settle(peer);
    await peer.sendAll(Buffer.concat(ids.map((id) => toReset(id, errorCodes.cancel))));
    await settle(peer);
  }
  t.true(calls.replies.length <= limits.maxConcurrentStreams, `${calls.replies.length} calls`);
  t.is(calls.gone, calls.replies.length);
  const refused = countResets(peer, errorCodes.refusedStream);
  t.is(refused + calls.replies.length, begun);
  // When the store has answered them, there is room again.
  for (const reply of calls.replies.splice(0)) reply();
  await echoes(t, peer, 2 * begun + 1);
  return `${limits.maxConcurrentStreams} of ${begun} calls were begun, the others refused`;
});

attack('no attack: a burst of calls while the store hangs', async (t, { connectPeer, calls }) => {
  const peer = await connectPeer();
  const burst = limits.maxConcurrentStreams;
  const ids = (from: number) => Array.from({ length: burst }, (_, index) => 2 * (from + index) + 1);
  await peer.sendAll(Buffer.concat(ids(0).map((id) => toCall(id, '/attacked', small))));
  await settle(peer);
  await peer.sendAll(Buffer.concat(ids(0).map((id) => toReset(id, errorCodes.cancel))));
  await settle(peer);
  // Clients in Go write all headers before the first message.
  await peer.sendAll(
    Buffer.concat([
      ...ids(burst).map((id) => toHeaders(id, grpcRequest('/attacked'))),
      ...ids(burst).map((id) => toData(id, toMessage(small), flags.endStream)),
    ]),
  );
  await settle(peer);
  t.false(peer.isEnded);
  t.is(countResets(peer, errorCodes.refusedStream), burst);
  t.is(countResets(peer), burst, 'and for no other reason');
  for (const reply of calls.replies.splice(0)) reply();
  await echoes(t, peer, 4 * burst + 1);
  return `${burst} given up, ${burst} refused, and the connection stays`;
});

attack('no attack: a late read of calls that were abandoned', async (t, { connectPeer }) => {
  const peer = await connectPeer();
  // Collected in the socket while the server was busy for longer than its callers wait.
  const waited = 500;
  const wire: Buffer[] = [];
  for (let index = 0; index < waited; index++) {
    wire.push(toCall(2 * index + 1, '/attacked', small));
    if (index >= 100) wire.push(toReset(2 * (index - 100) + 1, errorCodes.cancel));
  }
  await peer.sendAll(Buffer.concat(wire));
  await settle(peer);
  t.false(peer.isEnded);
  return `${waited - 100} calls given up in few reads, and the connection stays`;
});

attack('calls whose deadline passes at once', async (t, { connectPeer, calls, clock }) => {
  const peer = await connectPeer();
  let begun = 0;
  for (let round = 0; round < 10; round++) {
    const portion = Array.from({ length: 500 }, () => {
      const streamId = 2 * begun++ + 1;
      return Buffer.concat([
        toHeaders(streamId, grpcRequest('/attacked', ['grpc-timeout', '1n'])),
        toData(streamId, toMessage(small), flags.endStream),
      ]);
    });
    await peer.sendAll(Buffer.concat(portion));
    await settle(peer);
    await passTime(clock, 1000);
    await settle(peer);
  }
  t.true(calls.replies.length <= limits.maxConcurrentStreams, `${calls.replies.length} calls`);
  for (const reply of calls.replies.splice(0)) reply();
  await echoes(t, peer, 2 * begun + 1);
  return `${limits.maxConcurrentStreams} of ${begun} calls were begun, the others refused`;
});

/** Ways to make the server reset a running call; each takes the call's number. */
const faults: Readonly<Record<string, (streamId: number) => Buffer>> = {
  'WINDOW_UPDATE by 0': (streamId) => toWindowUpdate(streamId, 0),
  'a window beyond its limit': (streamId) => toWindowUpdate(streamId, 2 ** 31 - 1),
  'DATA after the end': (streamId) => toData(streamId, small),
  'HEADERS after the end': (streamId) => toHeaders(streamId, grpcRequest('/attacked')),
  'PRIORITY of a wrong length': (streamId) =>
    toFrame(frameTypes.priority, flags.none, streamId, Buffer.alloc(4)),
  'PRIORITY on itself': (streamId) => toPriority(streamId, streamId),
};

for (const [what, fault] of Object.entries(faults)) {
  attack(`resets by the server: ${what}`, async (t, { connectPeer, calls }) => {
    const peer = await connectPeer();
    let begun = 0;
    while (!peer.isEnded && begun < 2 * limits.faultBurst) {
      const streamId = 2 * begun++ + 1;
      peer.send(toCall(streamId, '/attacked', small), fault(streamId));
      if (begun % 10 === 0) await settle(peer);
    }
    await peer.ended();
    t.is((await peer.goAway()).code, enhanceYourCalm);
    t.true(calls.replies.length <= limits.faultBurst + 1, `${calls.replies.length} calls`);
    t.true(countResets(peer) <= limits.faultBurst);
    t.true(await waitUntil(() => calls.gone === calls.replies.length, 60_000));
    return `GOAWAY after ${calls.replies.length} calls`;
  });
}

attack('resets by the server: requests that are malformed', async (t, { connectPeer }) => {
  const peer = await connectPeer();
  const malformed = (index: number) =>
    toHeaders(2 * index + 1, [[':method', 'POST']], flags.endHeaders | flags.endStream);
  const bounds = { first: limits.faultBurst - 5, step: 1, most: 2 * limits.faultBurst + 10 };
  let index = 0;
  const sent = await flood(t, peer, () => malformed(index++), bounds);
  t.is((await peer.goAway()).code, enhanceYourCalm);
  return `GOAWAY after ${index} of ${sent} frames`;
});

attack('more calls than allowed', async (t, { connectPeer, calls }) => {
  const peer = await connectPeer();
  const wanted = 3 * limits.maxConcurrentStreams;
  for (let index = 0; index < wanted; index++) peer.send(toCall(2 * index + 1, '/attacked', small));
  const refused = wanted - limits.maxConcurrentStreams;
  t.true(
    await waitUntil(() => countResets(peer, errorCodes.refusedStream) === refused, 60_000),
    `${countResets(peer)} refused`,
  );
  t.is(calls.replies.length, limits.maxConcurrentStreams);
  for (const reply of calls.replies) reply();
  t.deepEqual(await peer.answer(1), toMessage(small));
  t.deepEqual(await peer.answer(2 * limits.maxConcurrentStreams - 1), toMessage(small));
  return `${calls.replies.length} of ${wanted} were begun, the others refused`;
});

// Header blocks.

for (const { what, size } of [
  { what: 'full', size: 1024 },
  { what: 'small', size: 1 },
  { what: 'empty', size: 0 },
]) {
  attack(`CONTINUATION without end, ${what}`, async (t, { connectPeer }) => {
    const peer = await connectPeer();
    peer.send(toFrame(frameTypes.headers, flags.none, 1, Buffer.alloc(0)));
    const more = toFrame(frameTypes.continuation, flags.none, 1, Buffer.alloc(size));
    let sent = 0;
    while (!peer.isEnded && sent < 1000) {
      await peer.sendAll(more);
      sent++;
      await new Promise(setImmediate);
    }
    await peer.ended();
    t.is((await peer.goAway()).code, enhanceYourCalm);
    t.true(sent < 2 * limits.maxContinuations, `${sent} frames`);
    return `GOAWAY after ${sent} frames`;
  });
}

attack('CONTINUATION of large frames without end', async (t, { connectPeer }) => {
  const peer = await connectPeer();
  const part = Buffer.alloc(limits.maxFrameBytes);
  peer.send(toFrame(frameTypes.headers, flags.none, 1, part));
  for (let index = 0; index < 10 && !peer.isEnded; index++)
    await peer.sendAll(toFrame(frameTypes.continuation, flags.none, 1, part));
  await peer.ended();
  t.is((await peer.goAway()).code, enhanceYourCalm);
  return `GOAWAY after at most ${limits.maxHeaderBlockBytes + limits.maxFrameBytes} bytes`;
});

attack('a header list that is too large', async (t, { connectPeer }) => {
  const peer = await connectPeer();
  // Each field counts for 32 bytes more than its text.
  const fields = Array.from({ length: 2000 }, (_, index) => [`x-${index}`, 'value'] as const);
  const block = toHeaderBlock(grpcRequest('/attacked', ...fields));
  t.true(block.length < limits.maxHeaderBlockBytes);
  const parts = [block.subarray(0, 16_384), block.subarray(16_384)];
  peer.send(
    toFrame(frameTypes.headers, flags.endStream, 1, parts[0]),
    toFrame(frameTypes.continuation, flags.endHeaders, 1, parts[1]),
  );
  t.regex(String(await peer.answer(1)), /header list is larger than 65536/);
  await echoes(t, peer, 3);
  return 'answered with 431, the connection stays';
});

attack('HPACK bomb', async (t, { connectPeer, calls }) => {
  const peer = await connectPeer();
  // RFC 7541 6.2.1: one entry as large as the table is added to it, and then referenced again and again.
  const entry = Buffer.concat([
    Buffer.of(0x40),
    toHpackString('x'),
    toHpackString('y'.repeat(limits.headerTableBytes - 33)),
  ]);
  peer.send(
    toFrame(
      frameTypes.headers,
      flags.endHeaders | flags.endStream,
      1,
      Buffer.concat([toHeaderBlock(grpcRequest('/other')), entry]),
    ),
  );
  await peer.answer(1);
  const before = await residentBytes();
  const references = Buffer.alloc(14_000, toHpackInteger(62, 7, 0x80));
  const bomb = Buffer.concat([toHeaderBlock(grpcRequest('/attacked')), references]);
  const rounds = 200;
  for (let round = 1; round <= rounds; round++) {
    const streamId = 2 * round + 1;
    const last = flags.endHeaders | flags.endStream;
    await peer.sendAll(toFrame(frameTypes.headers, last, streamId, bomb));
    t.regex(String(await peer.answer(streamId)), /header list is larger than 65536/);
  }
  const grown = (await residentBytes()) - before;
  t.is(calls.replies.length, 0);
  t.true(grown < 2 ** 22, `grown by ${grown} bytes`);
  await echoes(t, peer, 2 * rounds + 3);
  return `${rounds} of ${references.length} references to ${limits.headerTableBytes} bytes: 431 each`;
});

// Peers that do not take what they asked for.

attack('windows that stay shut', async (t, { connectPeer, clock, calls }) => {
  const peer = await connectPeer({ [settingIds.initialWindowSize]: 0 });
  const size = 16_000;
  const wanted = 2 * Math.ceil(limits.maxUnsentBytes / size);
  let refusedFrom = 0;
  for (let index = 0; index < wanted; index++) {
    peer.send(toCall(2 * index + 1, '/attacked', Buffer.alloc(size)));
    await settle(peer);
    if (calls.replies.length === 0) refusedFrom ||= index;
    for (const reply of calls.replies.splice(0)) reply();
  }
  t.is(countResets(peer, errorCodes.refusedStream), wanted - refusedFrom);
  t.true(refusedFrom * size <= limits.maxUnsentBytes + 2 * size);
  t.false(peer.frames.some(({ type }) => type === frameTypes.data));
  await passTime(clock, limits.stalledMs - 2000);
  await settle(peer);
  t.false(peer.isEnded);
  await passTime(clock, 4000);
  await peer.ended();
  t.is((await peer.goAway()).code, enhanceYourCalm);
  return `calls refused when ${refusedFrom * size} bytes wait, GOAWAY after ${limits.stalledMs} ms`;
});

attack('a slow reader', async (t, { connectPeer, clock, calls }) => {
  const peer = await connectSlowReader(connectPeer);
  const before = await residentBytes();
  const message = Buffer.alloc(15_000);
  const wanted = 4000;
  let begun = 0;
  let answered = 0;
  let unread: Promise<void> | undefined;
  const isAccepted = async () => {
    const accepted = unread?.then(() => true);
    return accepted === undefined || Promise.race([accepted, pause(200).then(() => false)]);
  };
  // Until the server reads no more requests.
  for (; begun < wanted && (await isAccepted()); begun++) {
    unread = peer.sendAll(toCall(2 * begun + 1, '/attacked', message));
    await new Promise(setImmediate);
    for (const reply of calls.replies.splice(0)) {
      reply();
      answered++;
    }
  }
  const answeredBytes = answered * message.length;
  t.true(begun < wanted, 'the server read on');
  t.true(answeredBytes < limits.maxUnsentBytes + kernelBytes, `${answeredBytes} bytes answered`);
  const held = (await residentBytes()) - before;
  await passTime(clock, limits.stalledMs + 5000);
  peer.resume();
  await peer.ended();
  return `not read from after ${answeredBytes} bytes of answers (held ${held}), cut after ${limits.stalledMs} ms`;
});

attack('a slow reader that resumes in time', async (t, { connectPeer, clock, calls }) => {
  const peer = await connectSlowReader(connectPeer);
  const message = Buffer.alloc(15_000, 7);
  const wanted = 1000;
  const sent = Array.from({ length: wanted }, (_, index) =>
    peer.sendAll(toCall(2 * index + 1, '/attacked', message)),
  );
  const answerAll = () => {
    for (const reply of calls.replies.splice(0)) reply();
    return false;
  };
  // Long enough for the server to have stopped.
  await waitUntil(answerAll, 500);
  await passTime(clock, limits.stalledMs / 2);
  t.false(peer.isEnded);
  peer.resume();
  t.true(await waitUntil(() => answerAll() || countEnds(peer) === wanted, 60_000));
  await Promise.all(sent);
  t.deepEqual(await peer.answer(2 * wanted - 1), toMessage(message));
  return `${wanted} answers of ${message.length} bytes`;
});

attack(
  'large answers to many small requests, all windows open',
  async (t, { connectPeer }) => {
    const peer = await connectSlowReader(connectPeer);
    const before = await residentBytes();
    produced = 0;
    peer.send(toHeaders(1, grpcRequest('/amplify')));
    // As much as the first window allows: empty messages, each with its prefix.
    const requests = Buffer.alloc(16_380);
    for (let index = 0; index < 4; index++)
      await Promise.race([peer.sendAll(toData(1, requests)), pause(200)]);
    t.true(await waitUntil(() => produced > 0, 60_000));
    await pause(200);
    const held = (await residentBytes()) - before;
    t.true(produced * large.length < limits.maxUnsentBytes + kernelBytes, `${produced} answers`);
    t.true(held < 2 * kernelBytes, `${held} bytes held`);
    const made = produced;
    peer.resume();
    t.true(await waitUntil(() => produced > made + 100, 60_000), 'the rest came once it was read');
    return `${made} of 13,104 answers of ${large.length} bytes were made, ${held} bytes held`;
  },
  {
    methods: {
      '/amplify': toStream((caller) => ({
        message() {
          produced++;
          caller.send(large);
        },
        halfClose() {},
        closed() {},
      })),
    },
  },
);

/** As large as reflection's answer about a file. */
const large = Buffer.alloc(50_000);
let produced = 0;

attack('unfinished messages in many streams', async (t, { connectPeer, calls }) => {
  const peer = await connectPeer();
  const before = await residentBytes();
  const streams = 200;
  const head = toMessage(Buffer.alloc(maxRequestBytes)).subarray(0, 5);
  for (let index = 0; index < streams; index++)
    peer.send(toHeaders(2 * index + 1, grpcRequest('/attacked')), toData(2 * index + 1, head));
  const part = Buffer.alloc(16_000);
  let sentBytes = 0;
  let mostBytes = 0;
  for (let round = 0; round < 15; round++) {
    for (let index = 0; index < streams; index++) {
      await peer.sendAll(toData(2 * index + 1, part));
      sentBytes += part.length;
    }
    await settle(peer);
    mostBytes = Math.max(mostBytes, (await residentBytes()) - before);
  }
  t.false(peer.isEnded);
  t.is(calls.replies.length, 0);
  t.true(sentBytes > 2 * limits.maxBufferedBytes);
  t.true(mostBytes < 1.5 * limits.maxBufferedBytes, `${mostBytes} bytes held`);
  const failed = countEnds(peer);
  t.true(failed > 0 && failed < streams, `${failed} calls failed`);
  return `${mostBytes} of ${sentBytes} bytes held, ${failed} of ${streams} calls failed for it`;
});

attack('unfinished messages on many connections', async (t, { connectPeer, calls }) => {
  const head = toMessage(Buffer.alloc(maxRequestBytes)).subarray(0, 5);
  const part = Buffer.alloc(16_000);
  const modest = await connectPeer();
  modest.send(toHeaders(1, grpcRequest('/attacked')), toData(1, head), toData(1, part));
  await settle(modest);
  const before = await residentBytes();
  const streams = 50;
  const rounds = 18;
  let connections = 0;
  let mostBytes = 0;
  let cut = 0;
  const peers: Http2Peer[] = [];
  for (; cut === 0 && connections < 40; connections++) {
    const peer = await connectPeer();
    peers.push(peer);
    for (let index = 0; index < streams; index++)
      peer.send(toHeaders(2 * index + 1, grpcRequest('/attacked')), toData(2 * index + 1, head));
    for (let round = 0; round < rounds && !peer.isEnded; round++) {
      const parts = Array.from({ length: streams }, (_, index) => toData(2 * index + 1, part));
      await peer.sendAll(Buffer.concat(parts)).catch(() => {});
      await settle(peer);
    }
    mostBytes = Math.max(mostBytes, (await residentBytes()) - before);
    cut = peers.filter(({ isEnded }) => isEnded).length;
  }
  t.true(cut > 0, `none of ${connections} connections was cut`);
  t.true(cut < peers.length, 'not all of them');
  t.true(mostBytes < 1.2 * limits.maxOccupiedBytes, `${mostBytes} bytes held`);
  await settle(modest);
  t.false(modest.isEnded, 'who holds little stays');
  t.is(calls.replies.length, 0);
  return `${mostBytes} bytes held by ${connections} connections, ${cut} of them cut`;
});

/** Counts what it gets, and keeps nothing of it. */
const quick: GrpcMethod = {
  kind: 'unary',
  answer(_bytes, _start, _end, call) {
    call.succeed(small);
    return undefined;
  },
};

attack(
  'compressed messages decompressed in many streams',
  async (t, { connectPeer }) => {
    const peer = await connectPeer();
    const before = process.memoryUsage().arrayBuffers;
    const bomb = gzipSync(Buffer.alloc(maxRequestBytes));
    const message = Buffer.concat([Buffer.of(1), toUInt32(bomb.length), bomb]);
    const streams = 100;
    let most = 0;
    for (let index = 0; index < streams; index++) {
      peer.send(
        toHeaders(2 * index + 1, grpcRequest('/quick', ['grpc-encoding', 'gzip'])),
        toData(2 * index + 1, message, flags.endStream),
      );
    }
    const isOver = () => {
      most = Math.max(most, process.memoryUsage().arrayBuffers - before);
      return countEnds(peer) === streams;
    };
    t.true(await waitUntil(isOver, 30_000, 1));
    t.true(most < 4 * limits.maxBufferedBytes, `${most} bytes at once`);
    return `${streams} of ${maxRequestBytes} bytes: ${most} at once`;
  },
  { methods: { '/quick': quick } },
);

/** Delays all decompression by occupying every thread that does it, until the returned function is called. */
async function holdThreads(t: ExecutionContext): Promise<() => Promise<void>> {
  const folder = createTemporaryFolder(t);
  const pipe = join(folder, 'pipe');
  await promisify(execFile)('mkfifo', [pipe]);
  // Opening one end waits for the other.
  const held = Array.from({ length: limits.maxDecompressions }, () => open(pipe, 'r'));
  let released: Promise<void> | undefined;
  const release = async () => {
    // For both directions, which never waits.
    const other = openSync(pipe, 'r+');
    for (const handle of await Promise.all(held)) await handle.close();
    closeSync(other);
  };
  const releaseOnce = () => {
    released ??= release();
    return released;
  };
  t.teardown(releaseOnce);
  return releaseOnce;
}

attack('compressed messages reset before their turn', async (t, { connectPeer, calls }) => {
  const peer = await connectPeer();
  const release = await holdThreads(t);
  const tiny = gzipSync(small);
  const message = Buffer.concat([Buffer.of(1), toUInt32(tiny.length), tiny]);
  const headers = grpcRequest('/attacked', ['grpc-encoding', 'gzip']);
  const toWaiting = (index: number) =>
    Buffer.concat([
      toHeaders(2 * index + 1, headers),
      toData(2 * index + 1, message, flags.endStream),
    ]);
  const begun = 20 * limits.maxConcurrentStreams;
  const portion = 200;
  // A reset arrives in a later read than its call; otherwise it cannot be distinguished from a caller in a hurry.
  for (let first = 0; first < begun && !peer.isEnded; first += portion) {
    const indices = Array.from({ length: portion }, (_, index) => first + index);
    await peer.sendAll(Buffer.concat(indices.map((index) => toWaiting(index))));
    const resets = indices.map((index) => toReset(2 * index + 1, errorCodes.cancel));
    await settle(peer);
    await peer.sendAll(Buffer.concat(resets));
  }
  await settle(peer);
  t.false(peer.isEnded);
  t.is(calls.gone, calls.replies.length);
  const refused = countResets(peer, errorCodes.refusedStream);
  t.true(begun - refused <= limits.maxConcurrentStreams);
  // The turns of those that were reset pass at once when the first are over.
  await release();
  let index = begun;
  const isServed = () => {
    peer.send(toCall(2 * index++ + 1, '/test.Echo/Echo', small));
    return peer.frames.some(endsStream);
  };
  t.true(await waitUntil(isServed, 60_000));
  return `${refused} of ${begun} were refused`;
});

attack('errors that quote the request', async (t, { connectPeer }) => {
  const peer = await connectPeer(openWindows);
  // The path becomes an entry of the table, so that a call takes 13 bytes, each of which could cause hundreds in the
  // answer.
  const path = toHpackString(`/${'\xff'.repeat(3900)}`);
  const type = toHpackString('application/grpc');
  const [post, http, newPath, newType] = [0x83, 0x86, 0x44, 0x5f].map((byte) => Buffer.of(byte));
  const first = Buffer.concat([post, http, newPath, path, newType, type] as Buffer[]);
  const again = Buffer.of(0x83, 0x86, 0xbf, 0xbe);
  const ends = flags.endHeaders | flags.endStream;
  const toRequest = (index: number) =>
    toFrame(frameTypes.headers, ends, 2 * index + 1, index === 0 ? first : again);
  const calls = 20_000;
  const requests = Buffer.concat(Array.from({ length: calls }, (_, index) => toRequest(index)));
  await peer.sendAll(openConnection);
  await peer.sendAll(requests);
  await settle(peer);
  const answers = peer.frames.filter(endsStream).map(({ payload }) => payload.length);
  const refused = countResets(peer, errorCodes.refusedStream);
  t.is(answers.length + refused, calls);
  t.true(Math.max(...answers) < 8 * limits.maxErrorTextLength);
  const bytes = answers.reduce((sum, length) => sum + length, 0);
  const reads = Math.ceil(requests.length / 65_536);
  // A read of the socket may be a small one.
  t.true(bytes <= 4 * reads * limits.maxUnsentBytes, `${bytes} bytes for ${requests.length}`);
  return `${answers.length} of ${calls} answered, with ${bytes} bytes for ${requests.length}`;
});

attack('header lists of unfinished calls', async (t, { connectPeer }) => {
  const peer = await connectPeer();
  // Each field counts for 32 bytes more than its text.
  const empty = Array.from({ length: 300 }, () => ['x', ''] as const);
  const fields = grpcRequest('/attacked', ['x-long', 'v'.repeat(14_000)], ...empty);
  const listBytes = fields.reduce((sum, [name, value]) => sum + name.length + value.length + 32, 0);
  const calls = limits.maxConcurrentStreams;
  for (let index = 0; index < calls; index++) await peer.sendAll(toHeaders(2 * index + 1, fields));
  await settle(peer);
  const refused = countResets(peer, errorCodes.refusedStream);
  const open = calls - refused;
  t.true(open > 100 && open * listBytes <= limits.maxBufferedBytes, `${open} are open`);
  // Calls that are over make room again.
  const resets = Array.from({ length: 100 }, (_, index) =>
    toReset(2 * index + 1, errorCodes.cancel),
  );
  await peer.sendAll(Buffer.concat(resets));
  peer.send(toHeaders(2 * calls + 1, fields));
  await settle(peer);
  t.is(countResets(peer, errorCodes.refusedStream), refused);
  return `${open} of ${calls} calls with ${listBytes} bytes each, the others refused`;
});

// Peers that do not finish what they began.

const greeting = Buffer.concat([preface, toSettings(), settingsAck]);
const halves: Readonly<Record<string, { readonly bytes: Buffer; readonly afterMs: number }>> = {
  'a byte': { bytes: preface.subarray(0, 1), afterMs: limits.unfinishedMs },
  'half a preface': { bytes: preface.subarray(0, 12), afterMs: limits.unfinishedMs },
  'a preface without SETTINGS': { bytes: preface, afterMs: limits.unfinishedMs },
  'half of SETTINGS': {
    bytes: Buffer.concat([preface, toSettings({ [settingIds.enablePush]: 0 }).subarray(0, 11)]),
    afterMs: limits.unfinishedMs,
  },
  'half a header block': {
    bytes: Buffer.concat([
      greeting,
      toFrame(frameTypes.headers, flags.none, 1, toHeaderBlock(grpcRequest('/attacked'))),
    ]),
    afterMs: limits.unfinishedMs,
  },
  'half a frame': {
    bytes: Buffer.concat([greeting, toCall(1, '/attacked', small).subarray(0, 60)]),
    afterMs: limits.stalledMs,
  },
};

for (const [what, { bytes, afterMs }] of Object.entries(halves)) {
  attack(`a slow writer: ${what}`, async (t, { connectSilent, clock }) => {
    const peer = await connectSilent();
    await peer.sendAll(bytes);
    // The server's SETTINGS arrive with the connection; nothing shows that it has read ours.
    await peer.frame('SETTINGS', ({ type }) => type === frameTypes.settings);
    await pause(50);
    await passTime(clock, afterMs - 1000);
    await pause(50);
    t.false(peer.isEnded);
    await passTime(clock, 3000);
    await peer.ended();
    const { code } = await peer.goAway();
    t.true([protocol, enhanceYourCalm].includes(code as 1), `code ${code}`);
    return `GOAWAY after ${afterMs} ms`;
  });
}

attack('a slow writer: half a frame, byte by byte', async (t, { connectPeer, clock }) => {
  const peer = await connectPeer();
  const call = toCall(1, '/attacked', Buffer.alloc(1000));
  let seconds = 0;
  for (; seconds < 1000 && !peer.isEnded; seconds++) {
    await peer.sendAll(call.subarray(seconds, seconds + 1));
    await pause(2);
    await passTime(clock, 1000);
  }
  t.true(peer.isEnded);
  t.true(seconds * 1000 <= limits.stalledMs + 5000, `${seconds} s`);
  return `GOAWAY after ${seconds} s`;
});

attack('a peer that has vanished', async (t, { connectPeer, clock }) => {
  const peer = await connectPeer();
  await passTime(clock, limits.keepAliveMs + 5000);
  await peer.frame('PING', ({ type, flags: bits }) => type === frameTypes.ping && bits === 0);
  t.false(peer.isEnded);
  await passTime(clock, limits.keepAliveTimeoutMs + 5000);
  await peer.ended();
  t.is((await peer.goAway()).code, noError);
  return `PING after ${limits.keepAliveMs} ms, cut ${limits.keepAliveTimeoutMs} ms later`;
});

function countResets(peer: Http2Peer, code?: number): number {
  return peer.frames.filter(
    ({ type, payload }) =>
      type === frameTypes.rstStream && (code === undefined || payload.readUInt32BE() === code),
  ).length;
}

function countEnds(...peers: readonly Http2Peer[]): number {
  return peers.flatMap(({ frames }) => frames.filter(endsStream)).length;
}

function endsStream({ type, flags: bits }: Frame): boolean {
  return type === frameTypes.headers && (bits & flags.endStream) !== 0;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

attack(
  'small messages parked on many connections beside one that waits for our store',
  async (t, { connectPeer, calls, clock }) => {
    const busy = await connectPeer();
    const count = 500;
    for (let index = 0; index < count; index++)
      busy.send(toCall(2 * index + 1, '/attacked', small));
    await waitUntil(() => calls.replies.length === count, 60_000);
    // Each holds less than is accounted for the calls of the busy one.
    const parked = toMessage(Buffer.alloc(440_000)).subarray(0, 400_000);
    const frames = Array.from({ length: 25 }, (_, index) =>
      toData(1, parked.subarray(16_000 * index, 16_000 * (index + 1))),
    );
    const connections = Math.ceil((1.1 * limits.maxOccupiedBytes) / parked.length);
    const attackers: Http2Peer[] = [];
    for (let index = 0; index < connections; index++) {
      const peer = await connectPeer();
      attackers.push(peer);
      // The stream's window first, then the part that must wait.
      await peer.sendAll(
        Buffer.concat([toHeaders(1, grpcRequest('/attacked')), ...frames.slice(0, 4)]),
      );
      await settle(peer);
      for (let next = 4; next < frames.length; next += 2) {
        await peer.sendAll(Buffer.concat(frames.slice(next, next + 2)));
        await settle(peer);
      }
      if (index % 50 === 0) clock.advance(1000);
    }
    clock.advance(1000);
    await settle(busy);
    const cut = attackers.filter(({ isEnded }) => isEnded).length;
    t.true(cut > 0 && cut < connections, `${cut} of ${connections} cut`);
    t.true(attackers[0]?.isEnded, 'the longest without progress is cut first');
    t.false(busy.isEnded, 'who only waits for us is not cut');
    for (const reply of calls.replies) reply();
    for (let index = 0; index < count; index++) await busy.answer(2 * index + 1);
    return `${cut} of ${connections} connections cut, ${count} of ${count} calls of the busy one answered`;
  },
);

attack(
  'large requests that wait for our store, from many peers',
  async (t, { connectPeer, calls }) => {
    const size = maxRequestBytes - 16_000;
    const message = toMessage(Buffer.alloc(size));
    const peers: Http2Peer[] = [];
    let sent = 0;
    for (let index = 0; index < 10; index++) {
      const peer = await connectPeer();
      peers.push(peer);
      for (let streamId = 1; streamId <= 19; streamId += 2) {
        peer.send(toHeaders(streamId, grpcRequest('/attacked')));
        for (let start = 0; start < message.length; start += 16_000) {
          const end = start + 16_000;
          const isLast = end >= message.length;
          peer.send(toData(streamId, message.subarray(start, end), isLast ? flags.endStream : 0));
          if (start % 48_000 === 0) await settle(peer);
        }
        sent++;
      }
    }
    const atWork = calls.replies.length;
    t.true(atWork > 0 && atWork < 10, `${atWork} are at work`);
    t.true(
      peers.every(({ isEnded }) => !isEnded),
      'waiting peers are not cut',
    );
    const refused = countEnds(...peers);
    t.true(refused > 0 && refused < sent, `${refused} refused`);
    const held = await residentBytes();
    for (const { close } of peers) close();
    t.true(await waitUntil(() => calls.gone === atWork, 60_000));
    // Without what the test's own end of the connections keeps.
    const ours = held - (await residentBytes());
    t.true(ours < maxWaitingBytes + 2 * size, `${ours} bytes held`);
    return `${ours} bytes held for ${sent} requests of ${size} bytes, ${refused} refused`;
  },
);

attack(
  'idle connections up to the limit, and new callers afterwards',
  async (t, { connectPeer }) => {
    // Each has made a call; one more is the innocent's.
    for (let index = 0; index < 49; index++) await echoes(t, await connectPeer(), 1);
    for (let index = 0; index < 20; index++) await echoes(t, await connectPeer(), 1);
    return '20 new callers were served beside 49 idle connections of 50';
  },
  { transport: { maxConnections: 50 } },
);
