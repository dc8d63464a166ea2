// The part of the gRPC transport contract about the end of connections: at their maximum age, and when the server
// stops.
import test from 'ava';
import { errorText } from '../../shared/errors.ts';
import type { UnaryMethod } from '../../worker/grpc/method.ts';
import {
  errorCodes,
  type Frame,
  flags,
  frameTypes,
  toCall,
  toFrame,
  toMessage,
  toPing,
} from '../support/http2-frames.ts';
import type { Http2Peer } from '../support/http2-peer.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { waitUntil } from '../support/wait-until.ts';
import { type Caller, createCaller } from './grpc-transport-caller.ts';
import { recordCalls, startTransport, toStream } from './grpc-transport-fixture.ts';

test('a call that exceeds the grace period of its connection is cut', async (t) => {
  const calls = recordCalls();
  const clock = createManualClock();
  const ages = { maxConnectionAgeMs: 5000, maxConnectionAgeGraceMs: 100 };
  const { connect } = await startTransport(t, { '/test.Echo/Echo': calls.method }, ages, clock);
  const answered = (await connect()).call('/test.Echo/Echo', Buffer.of());
  const failed = t.throwsAsync(answered);
  t.true(await waitUntil(() => calls.replies.length === 1, 60_000));
  clock.advance(4400);
  t.is(calls.gone, 0);
  clock.advance(1200);
  await failed;
  t.true(await waitUntil(() => calls.gone === 1, 60_000));
});

test('an age of a year does not end connections at once', async (t) => {
  const year = 365 * 24 * 60 * 60 * 1000;
  const { connect } = await startTransport(t, undefined, {
    maxConnectionAgeMs: year,
    maxConnectionAgeGraceMs: year,
  });
  const caller = await connect();
  for (let index = 0; index < 20; index++)
    t.is((await caller.call('/test.Echo/Echo', Buffer.of())).grpcStatus, 0);
  t.false(caller.hasGoaway);
});

test('connections in use end at their maximum age, and no call fails', async (t) => {
  const ageMs = 60_000;
  const clock = createManualClock();
  const methods = { '/test.Echo/Echo': echoLater };
  const { connect } = await startTransport(t, methods, { maxConnectionAgeMs: ageMs }, clock);
  const callers = await Promise.all(Array.from({ length: 20 }, () => connect()));
  const uses = callers.map(callUntilGoaway);
  const callOnce = () =>
    Promise.all(callers.map((caller) => caller.call('/test.Echo/Echo', Buffer.of())));
  await callOnce();
  clock.advance(0.899 * ageMs);
  await callOnce();
  t.false(callers.some(({ hasGoaway }) => hasGoaway));
  clock.advance(0.202 * ageMs);
  for (const answered of await Promise.all(uses)) t.true(answered > 0);
  for (const { session } of callers) t.true(await waitUntil(() => session.destroyed, 60_000));
});

test('the maximum ages of connections are evenly spread within a tenth', async (t) => {
  const ageMs = 60_000;
  const clock = createManualClock();
  const { connectPeer } = await startTransport(t, undefined, { maxConnectionAgeMs: ageMs }, clock);
  const peers = await Promise.all(Array.from({ length: 200 }, () => connectPeer()));
  await Promise.all(peers.map(roundTrip));
  const notified: number[] = [];
  for (const share of [0.899, 0.95, 1, 1.05, 1.101]) {
    clock.advance(share * ageMs - clock.monotonicMs());
    await Promise.all(peers.map(roundTrip));
    notified.push(peers.filter(hasGoaway).length);
  }
  t.is(notified[0], 0);
  t.is(notified[4], 200);
  for (let index = 1; index < notified.length; index++) {
    // A quarter is expected; one in ten million runs has as few as this.
    t.true(
      (notified[index] ?? 0) - (notified[index - 1] ?? 0) > 20,
      `connections with GOAWAY: ${notified}`,
    );
  }
});

test('calls that cross a GOAWAY are answered', async (t) => {
  const calls = recordCalls();
  const methods = { '/test.Echo/Echo': calls.method };
  // The server uses its own clock here, and waits as long as a busy machine needs to transmit the call.
  const { transport, connectPeer } = await startTransport(t, methods, {}, createManualClock());
  const peer = await connectPeer();
  peer.send(toCall(1, '/test.Echo/Echo', Buffer.from('before')));
  t.true(await waitUntil(() => calls.replies.length === 1, 60_000));
  const stopped = transport.stop(30_000);
  t.is((await peer.goAway()).code, errorCodes.noError);
  peer.send(toCall(3, '/test.Echo/Echo', Buffer.from('after')));
  t.true(await waitUntil(() => calls.replies.length === 2, 60_000));
  for (const reply of calls.replies) reply();
  t.deepEqual(await peer.answer(1), toMessage(Buffer.from('before')));
  t.deepEqual(await peer.answer(3), toMessage(Buffer.from('after')));
  for (const { payload } of peer.frames.filter(({ type }) => type === frameTypes.ping))
    peer.send(toFrame(frameTypes.ping, flags.ack, 0, payload));
  await peer.ended();
  t.true((await peer.goAway()).lastStreamId >= 3);
  await stopped;
});

test('stopping fails no call of callers that obey GOAWAY', async (t) => {
  const { transport, connect } = await startTransport(t, { '/test.Echo/Echo': echoLater });
  const callers = await Promise.all(Array.from({ length: 20 }, () => connect()));
  const uses = callers.map(callUntilGoaway);
  await callers[0]?.call('/test.Echo/Echo', Buffer.of());
  await transport.stop(30_000);
  for (const answered of await Promise.all(uses)) t.true(answered > 0);
});

test('callers that are asked to leave are served, and asked in each answer', async (t) => {
  const { transport, connect } = await startTransport(t);
  t.false(transport.turnAway(), 'no client is connected');
  const [late, echoed] = [await connect(), Buffer.from('x')];
  const notified = (answer: { fields: Readonly<Record<string, unknown>> }) =>
    answer.fields['x-envoy-immediate-health-check-fail'];
  const answer = await late.call('/test.Echo/Echo', echoed);
  t.deepEqual(answer.messages, [echoed]);
  t.is(notified(answer), 'true', 'who came afterwards');
  const refused = await late.call('/test.Echo/None', echoed);
  t.is(refused.grpcStatus, 12);
  t.is(notified(refused), 'true', 'whose call fails');
  t.true(transport.turnAway());

  const { transport: other, connect: connectOther } = await startTransport(t);
  const early = await connectOther();
  t.is(notified(await early.call('/test.Echo/Echo', echoed)), undefined);
  t.true(other.turnAway());
  t.is(notified(await early.call('/test.Echo/Echo', echoed)), 'true', 'who was there before');
});

test('stopping lets calls in flight finish and ends streams', async (t) => {
  const calls = recordCalls();
  const { transport, connect, address } = await startTransport(t, {
    '/test.Echo/Echo': calls.method,
    '/test.Chat/Chat': toStream(() => ({ message() {}, halfClose() {}, closed() {} })),
  });
  const caller = await connect();
  const pending = caller.call('/test.Echo/Echo', Buffer.from('x'));
  const stream = caller.open('/test.Chat/Chat');
  stream.send(Buffer.of());
  t.true(await waitUntil(() => calls.replies.length === 1, 60_000));
  const stopped = transport.stop(30_000);
  t.is((await stream.answer).grpcStatus, 14);
  await t.throwsAsync(createCaller(address));
  calls.replies[0]?.();
  t.is((await pending).grpcStatus, 0);
  await stopped;
  await transport.stop(0);
});

test('stopping cuts what is left after the grace period', async (t) => {
  const calls = recordCalls();
  const { transport, connect } = await startTransport(t, { '/test.Echo/Echo': calls.method });
  const pending = (await connect()).call('/test.Echo/Echo', Buffer.of());
  t.true(await waitUntil(() => calls.replies.length === 1, 60_000));
  await transport.stop(50);
  await t.throwsAsync(pending);
  t.true(await waitUntil(() => calls.gone === 1, 60_000));
});

/** Answers after a delay, as a store does, so that calls are always in flight. */
const echoLater: UnaryMethod = {
  kind: 'unary',
  answer(bytes, start, end, call) {
    const message = Buffer.from(bytes.subarray(start, end));
    const timer = setTimeout(() => call.succeed(message), 100);
    return { cancel: () => clearTimeout(timer) };
  },
};

/** Makes one call after another until GOAWAY; rejects when one of them fails. Resolves with their number. */
async function callUntilGoaway(caller: Caller): Promise<number> {
  let answered = 0;
  while (!caller.hasGoaway) {
    try {
      const { grpcStatus, text } = await caller.call('/test.Echo/Echo', Buffer.of());
      if (grpcStatus !== 0) throw new Error(`call ${answered + 1} failed: ${grpcStatus} ${text}`);
    } catch (error) {
      // RFC 9113 8.7: not processed, and to be retried elsewhere.
      if (caller.hasGoaway && errorText(error).includes('NGHTTP2_REFUSED_STREAM')) break;
      throw error;
    }
    answered++;
  }
  return answered;
}

/** Resolves when the server has processed and answered everything before, or disconnected. */
async function roundTrip(peer: Http2Peer): Promise<void> {
  const text = `round${String(peer.frames.length).padStart(3, '0')}`;
  const isPong = ({ type, payload }: Frame) => type === frameTypes.ping && `${payload}` === text;
  peer.send(toPing(flags.none, text));
  await peer.frame('PONG', isPong).catch((error: unknown) => {
    if (!peer.isEnded) throw error;
  });
}

function hasGoaway(peer: Http2Peer): boolean {
  return peer.frames.some(({ type }) => type === frameTypes.goAway);
}
