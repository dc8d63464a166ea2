import { once } from 'node:events';
import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import { createApp } from '../app.ts';
import { Controller } from '../controller.ts';
import { createNodeServer } from './node-http.ts';

test('an application without sockets answers a request to upgrade as any other', async (t) => {
  class Default extends Controller {
    GET() {
      return 'tea';
    }
  }
  const app = await createApp({ loadModules: () => new Map([['', { Default }]]) });
  const server = createNodeServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  for (const upgrade of ['websocket', 'h2c', 'TLS/1.2']) {
    const headers = { connection: 'Upgrade', upgrade, 'sec-websocket-version': '13' };
    const asked = request({ port, headers }).end();
    const [response] = await once(asked, 'response', { signal: AbortSignal.timeout(30_000) });
    t.is(response.statusCode, 200, upgrade);
    response.resume();
  }
  server.closeAllConnections();
  server.close();
});
