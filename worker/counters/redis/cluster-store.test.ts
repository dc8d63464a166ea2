// A cluster without any reachable node at the start, and one whose node was replaced behind its address; the other tests
// are in the contract of counter stores.
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import test from 'ava';
import { countOn, createHit } from '../../../test/support/counting.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { freePort } from '../../../test/support/free-port.ts';
import { createRecordedRedisStore } from '../../../test/support/redis-store.ts';

for (const failureMode of ['error', 'allow'] as const) {
  test(`an unreachable cluster has the reason in its state: ${failureMode}`, async (t) => {
    const url = `127.0.0.1:${await freePort()}`;
    const store = createRecordedRedisStore(url, { type: 'cluster', failureMode });
    t.teardown(() => store.close(0));
    const connecting = store.connect(new AbortController().signal).catch(() => {});
    if (failureMode === 'allow') await connecting;
    await eventually('a log line', () => store.log.lines.length > 0);
    t.regex(store.state().detail, /^not connected .*; last failure at \S+: .*ECONNREFUSED/);
    t.deepEqual(store.healthChanges, failureMode === 'allow' ? [false] : []);
  });
}

test('a node that redirects to itself is connected to again: another one has its address by now', async (t) => {
  let isReplaced = false;
  const server = createServer((socket) => {
    const isOld = !isReplaced;
    socket.on('error', () => {});
    socket.on('data', (data) => {
      const { port } = server.address() as AddressInfo;
      for (const [, command] of data.toString().matchAll(/\*\d+\r\n\$\d+\r\n(\w+)\r\n/g)) {
        if (command === 'CLUSTER') {
          socket.write(`*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:${port}\r\n`);
        } else if (command === 'INCRBY' && isOld && isReplaced) {
          socket.write(`-MOVED 1 127.0.0.1:${port}\r\n`);
        } else socket.write(command === 'ping' ? '+PONG\r\n' : ':1\r\n');
      }
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.teardown(() => server.close());
  const url = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const store = createRecordedRedisStore(url, { type: 'cluster' });
  t.teardown(() => store.close(0));
  await store.connect(new AbortController().signal);
  t.is((await countOn(store, [createHit({ key: 'k' })])).error, undefined);
  isReplaced = true;
  await eventually('hits are counted again', async () => {
    return (await countOn(store, [createHit({ key: 'k' })])).error === undefined;
  });
});
