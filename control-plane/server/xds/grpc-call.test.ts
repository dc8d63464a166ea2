// Tests a single call on the server's port: the deadlines of its requests, and its end.
import test from 'ava';
import { grpcStatus } from '../../../shared/grpc/status.ts';
import { startAds } from '../../../test/support/ads-fixture.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { frame, openRaw } from '../../../test/support/raw-discovery.ts';
import type { OpenCall } from '../call-handler.ts';

test('a finished call keeps its status, sends nothing after it and reports no message as sent', async (t) => {
  let sent = 0;
  let closed = 0;
  const path = '/test.Echo/Echo';
  const ads = await startAds(t, {
    methods: new Map([
      [
        path,
        (call) => ({
          onMessage(message) {
            call.send([message], () => sent++);
            call.finish(grpcStatus.unavailable, 'gone');
            call.send([message], () => sent++);
            call.finish(grpcStatus.internal, 'broken');
          },
          onUnfinished() {},
          onHalfClose() {},
          onClose: () => closed++,
        }),
      ],
    ]),
  });
  const { stream, status } = await openRaw(t, ads, { ':path': path });
  const got: Buffer[] = [];
  stream.on('data', (bytes: Buffer) => got.push(bytes));
  stream.write(Buffer.concat([frame(Buffer.from('one')), frame(Buffer.from('two'))]));
  t.is(await status(), '14 gone');
  t.deepEqual(Buffer.concat(got), frame(Buffer.from('one')));
  stream.end();
  await eventually('it is closed', () => closed > 0);
  t.deepEqual([sent, closed], [0, 1]);
});

test('the deadline of each request counts from its beginning', async (t) => {
  const clock = createManualClock();
  const path = '/test.Echo/Echo';
  const reasons: string[] = [];
  let requests = 0;
  const open: OpenCall = () => ({
    onMessage: () => requests++,
    onUnfinished: (reason) => void reasons.push(reason),
    onHalfClose() {},
    onClose() {},
  });
  const limits = { requestMs: 1_000 };
  const ads = await startAds(t, { clock, limits, methods: new Map([[path, open]]) });
  const { stream } = await openRaw(t, ads, { ':path': path });
  const one = frame(Buffer.from('request'));
  const [begin, rest] = [one.subarray(0, 8), one.subarray(8)];
  stream.write(Buffer.concat([one, begin]));
  await eventually('the second is begun', () => requests === 1);
  clock.advance(600);
  stream.write(Buffer.concat([rest, begin]));
  await eventually('the third is begun', () => requests === 2);
  clock.advance(999);
  t.deepEqual(reasons, []);
  clock.advance(1);
  t.deepEqual(reasons, ['a request was not complete after 1 s']);
});
