import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import test from 'ava';
import { createSampleCaller } from './sample-caller.ts';

test('a caller that is aborted before it connects leaves no uncaught error', async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  const target = { host: '127.0.0.1', port, certificate: undefined, signal: AbortSignal.abort() };
  await t.throwsAsync(createSampleCaller(target), { name: 'AbortError' });
  // Connects like the caller would have done, but later.
  await t.throwsAsync(once(connect(port, target.host), 'connect'), { code: 'ECONNREFUSED' });
});
