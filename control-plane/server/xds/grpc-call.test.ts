// A call of its own on the server's port, at its end.
import test from 'ava';
import { grpcStatus } from '../../../shared/grpc/status.ts';
import { startAds } from '../../../test/support/ads-fixture.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { frame, openRaw } from '../../../test/support/raw-discovery.ts';

test('a call that is finished keeps its status, sends nothing after it and says nothing of what was sent', async (t) => {
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
