// Tests the HTTP/2 engine with random sequences of frames: valid ones must be answered, damaged and random ones must do
// no harm. FUZZ_SEED=n begins with the sequence that failed, and FUZZ_SECONDS=n runs each kind for that long.
import { setImmediate as nextTurn } from 'node:timers/promises';
import test from 'ava';
import { errorText } from '../../shared/errors.ts';
import { maxRequestBytes } from '../../worker/decision/request-bounds.ts';
import { Session } from '../../worker/grpc/http2/session.ts';
import { LargeRequests } from '../../worker/grpc/large-requests.ts';
import type { GrpcMethod, GrpcMethods, UnaryCall } from '../../worker/grpc/method.ts';
import { echo, startTransport } from '../contract/grpc-transport-fixture.ts';
import {
  type Frame,
  flags,
  frameTypes,
  settingIds,
  splitFrames,
  toCall,
  toPing,
  toSettings,
} from '../support/http2-frames.ts';
import { createHttp2Peer } from '../support/http2-peer.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { createRandom, type Random } from '../support/random.ts';
import { residentBytes } from './attack-fixture.ts';
import {
  createRandomFrames,
  createValidSequence,
  cutAnywhere,
  damage,
  type Sequence,
} from './fuzz-sequences.ts';

const firstSeed = Number(process.env['FUZZ_SEED'] ?? 1);
const seconds = Number(process.env['FUZZ_SECONDS'] ?? 0);
/** The stream of the call after a sequence; no sequence uses such a high number. */
const lastStreamId = 2 ** 30 + 1;
const lastPing = 'lastping';
let answeredLast = 0;
const most = { frameBytes: 16_384, outputBytes: 2_000_000 };

/** Methods that record incorrect use. */
function createMethods() {
  const defects: string[] = [];
  const waiting: (() => void)[] = [];
  const asked = new WeakSet<UnaryCall>();
  let openStreams = 0;
  const methods: GrpcMethods = new Map<string, GrpcMethod>([
    ['/f/Echo', echo],
    [
      '/f/Later',
      {
        kind: 'unary',
        answer(bytes, start, end, call) {
          if (asked.has(call)) defects.push('a method was asked twice about one call');
          asked.add(call);
          const message = Buffer.from(bytes.subarray(start, end));
          let cancels = 0;
          let isAnswered = false;
          waiting.push(() => {
            isAnswered = true;
            call.succeed(message);
          });
          return {
            cancel() {
              if (++cancels > 1) defects.push('a call was cancelled twice');
              if (isAnswered) defects.push('a call was cancelled after its answer');
            },
          };
        },
      },
    ],
    [
      '/f/Chat',
      {
        kind: 'stream',
        open(caller) {
          let isClosed = false;
          let isHalfClosed = false;
          openStreams++;
          return {
            message(bytes) {
              if (isClosed) defects.push('a message after the end of its stream');
              if (isHalfClosed) defects.push('a message after the last one');
              caller.send(Buffer.from(bytes));
            },
            halfClose() {
              if (isClosed || isHalfClosed) defects.push('a half-close too many');
              isHalfClosed = true;
              caller.finish();
            },
            closed() {
              if (isClosed) defects.push('a stream was closed twice');
              isClosed = true;
              openStreams--;
            },
          };
        },
      },
    ],
  ]);
  return {
    methods,
    defects,
    answerSome(random: Random) {
      for (const reply of waiting.splice(0, random.below(waiting.length + 1))) reply();
    },
    answerAll() {
      for (const reply of waiting.splice(0)) reply();
    },
    get openStreams() {
      return openStreams;
    },
  };
}

const paths = ['/f/Echo', '/f/Later', '/f/Chat'];

interface Outcome {
  readonly frames: readonly Frame[];
  readonly isEnded: boolean;
}

/** Runs a sequence; throws when an invariant is violated. */
function run(random: Random, bytes: Buffer, harm: boolean): Outcome {
  const clock = createManualClock();
  const used = createMethods();
  let ends = 0;
  const session = new Session({
    storesHeaders: false,
    maxRequestBytes,
    methods: used.methods,
    clock,
    peer: () => '127.0.0.1:1',
    largeRequests: new LargeRequests(() => clock.monotonicMs()),
    onOutput() {},
    onOccupied() {},
    onEnd: () => ends++,
  });
  const frames: Frame[] = [];
  let bytesOut = 0;
  let isDrained = false;
  const drain = () => {
    session.sender.outputWritten();
    const { frames: more, rest } = splitFrames(session.output.drain());
    if (rest.length > 0) throw new Error('half a frame was sent');
    bytesOut += session.output.length;
    session.output.reuse();
    frames.push(...more);
    session.sender.resume();
  };
  for (const chunk of cutAnywhere(random, bytes)) {
    // A copy, so that data kept without copying is found out.
    const lent = Buffer.from(chunk);
    session.receive(lent);
    lent.fill(0xee);
    if (random.chance(0.5)) drain();
    if (random.chance(0.3)) used.answerSome(random);
    if (harm && random.chance(0.02)) {
      clock.advance(random.pick([10, 1000, 40_000]));
      session.sweep(clock.monotonicMs(), random.chance(0.8));
    }
    if (harm && random.chance(0.01)) {
      isDrained = true;
      session.drain();
    }
    if (session.ended) break;
  }
  used.answerAll();
  drain();
  drain();
  const ask = (...parts: readonly Buffer[]) => {
    session.receive(Buffer.concat(parts));
    drain();
  };
  // After any sequence, a connection that still understands us must answer.
  if (!session.ended && !isDrained) {
    ask(toPing(flags.none, lastPing));
    const isOpen = frames.some(({ type, payload }) => {
      return type === frameTypes.ping && `${payload}` === lastPing;
    });
    const window = toSettings({ [settingIds.initialWindowSize]: 65_535 });
    if (isOpen) ask(window, toCall(lastStreamId, '/f/Echo', Buffer.from('still there?')));
    const isAnswered = frames.some(({ type, streamId, payload }) => {
      return type === frameTypes.data && streamId === lastStreamId && payload.includes('still');
    });
    if (isOpen && !session.ended && !isAnswered) throw new Error('the last call got no answer');
    if (isAnswered) answeredLast++;
  }
  const { ended: isEnded } = session;
  if (isEnded && ends !== 1) throw new Error(`the end was reported ${ends} times`);
  if (bytesOut > most.outputBytes) throw new Error(`${bytesOut} bytes were sent`);
  checkFrames(frames);
  session.close();
  used.answerAll();
  if (used.openStreams !== 0) throw new Error(`${used.openStreams} streams were not closed`);
  if (used.defects.length > 0) throw new Error(used.defects.join('; '));
  return { frames, isEnded };
}

/** What no endpoint may send, whatever it receives. */
function checkFrames(frames: readonly Frame[]): void {
  const ended = new Set<number>();
  const begun = new Set<number>();
  let blockOf: number | undefined;
  let isLast = false;
  for (const { type, flags: bits, streamId, payload } of frames) {
    const describe = `type ${type}, flags ${bits}, stream ${streamId}, ${payload.length} bytes`;
    const fail = (why: string) => {
      throw new Error(`${why}: ${describe}`);
    };
    if (isLast) fail('a frame after the last GOAWAY');
    if (payload.length > most.frameBytes) fail('a frame that is too large');
    if (blockOf !== undefined && (type !== frameTypes.continuation || streamId !== blockOf))
      fail('a frame within a header block');
    switch (type) {
      case frameTypes.headers:
        if (ended.has(streamId)) fail('headers after the end');
        begun.add(streamId);
        break;
      case frameTypes.continuation:
        break;
      case frameTypes.data:
        if (ended.has(streamId) || !begun.has(streamId)) fail('DATA out of place');
        break;
      case frameTypes.rstStream:
        if (payload.length !== 4 || streamId % 2 !== 1) fail('a malformed RST_STREAM');
        break;
      case frameTypes.windowUpdate:
        if (payload.length !== 4 || payload.readUInt32BE() === 0) fail('a malformed WINDOW_UPDATE');
        break;
      case frameTypes.settings:
        if (streamId !== 0 || payload.length % 6 !== 0) fail('malformed SETTINGS');
        break;
      case frameTypes.ping:
        if (streamId !== 0 || payload.length !== 8) fail('a malformed PING');
        break;
      case frameTypes.goAway:
        if (streamId !== 0 || payload.length < 8) fail('a malformed GOAWAY');
        isLast = payload.readUInt32BE(4) !== 0;
        break;
      default:
        fail('a frame that servers do not send');
    }
    if (type === frameTypes.headers || type === frameTypes.continuation)
      blockOf = (bits & flags.endHeaders) === 0 ? streamId : undefined;
    const endsStream = type <= frameTypes.headers && (bits & flags.endStream) !== 0;
    if (endsStream || type === frameTypes.rstStream) ended.add(streamId);
  }
}

function checkAnswers({ answers }: Sequence, { frames, isEnded }: Outcome): void {
  if (isEnded) throw new Error('a valid sequence ended the connection');
  for (const { type, streamId } of frames) {
    if (type === frameTypes.rstStream) throw new Error(`stream ${streamId} was reset`);
  }
  for (const [streamId, expected] of answers) {
    const data = frames
      .filter((frame) => frame.streamId === streamId && frame.type === frameTypes.data)
      .map(({ payload }) => payload);
    if (!Buffer.concat(data).equals(expected)) throw new Error(`stream ${streamId}: wrong answer`);
    const ends = frames.filter(
      (frame) => frame.streamId === streamId && frame.type <= 1 && (frame.flags & 1) !== 0,
    );
    if (ends.length !== 1) throw new Error(`stream ${streamId} ended ${ends.length} times`);
  }
}

/** Runs this many sequences, and logs how many; names the seed of one that fails. */
async function fuzz(
  what: string,
  cases: number,
  runOne: (random: Random) => void | Promise<void>,
): Promise<number> {
  const endMs = performance.now() + seconds * 1000;
  let seed = firstSeed;
  for (; performance.now() < endMs || seed < firstSeed + cases; seed++) {
    try {
      await runOne(createRandom(seed));
    } catch (error) {
      throw new Error(`FUZZ_SEED=${seed}: ${errorText(error)}`, { cause: error });
    }
    if (seed % 100 === 0) await nextTurn();
  }
  const count = seed - firstSeed;
  process.stderr.write(`fuzzing: ${count} ${what} from seed ${firstSeed}\n`);
  return count;
}

test.serial('valid sequences are answered, however they are cut', async (t) => {
  const count = await fuzz('valid sequences', 1_000, (random) => {
    const sequence = createValidSequence(random, random.pick(paths));
    checkAnswers(sequence, run(random, Buffer.concat(sequence.parts), false));
  });
  t.true(count > 0);
});

test.serial('damaged sequences break nothing but their own connection', async (t) => {
  const before = await residentBytes();
  const answeredBefore = answeredLast;
  let ended = 0;
  const count = await fuzz('damaged sequences', 1_500, (random) => {
    const { parts } = createValidSequence(random, random.pick(paths));
    if (run(random, damage(random, parts), true).isEnded) ended++;
  });
  const grown = (await residentBytes()) - before;
  t.log(`${count} sequences, ${ended} ended their connection, ${grown} bytes more are held`);
  t.true(answeredLast > answeredBefore);
  // Both must happen, otherwise the damage is too large or too small to find anything.
  t.true(ended > 0 && ended < count);
  t.true(grown < 20_000_000, `${grown} bytes more are held`);
});

test.serial('random frames break nothing but their own connection', async (t) => {
  let ended = 0;
  await fuzz('sequences of random frames', 1_000, (random) => {
    if (run(random, createRandomFrames(random), true).isEnded) ended++;
  });
  t.true(ended > 0);
});

test.serial('over sockets, others are served despite damaged sequences', async (t) => {
  const used = createMethods();
  const { address, connect } = await startTransport(t, Object.fromEntries(used.methods));
  const innocent = await connect();
  await fuzz('damaged sequences over sockets', 200, async (random) => {
    const peer = await createHttp2Peer({ port: address.port });
    try {
      const { parts } = createValidSequence(random, random.pick(paths));
      for (const chunk of cutAnywhere(random, damage(random, parts)).slice(0, 50))
        await peer.sendAll(chunk);
      used.answerAll();
      const message = random.bytes(10);
      const answer = await innocent.call('/f/Echo', message);
      if (!answer.messages[0]?.equals(message))
        throw new Error('an innocent caller was not served');
    } finally {
      peer.close();
    }
  });
  t.deepEqual(used.defects, []);
  t.deepEqual((await innocent.call('/f/Echo', Buffer.of(1))).messages, [Buffer.of(1)]);
});
