import { once } from 'node:events';
import { request as ask } from 'node:http';
import test, { type ExecutionContext } from 'ava';
import Type from 'typebox';
import { listenFor } from '../../../test/support/listen.ts';
import { Controller } from '../controller.ts';
import { bearer } from '../guard.ts';
import { op } from '../op.ts';
import { createTestClient } from '../test-client.ts';
import { createNodeServer } from './node-http.ts';

class Notes extends Controller {
  static readonly POST = op({ body: Type.Object({ text: Type.String() }) }, ({ text }) => text);
}

class Closed extends Notes {
  static override readonly guard = bearer(() => false);
}

class Files extends Controller {
  static readonly PUT = op({ stream: true }, async (_fields, body) => {
    let bytes = 0;
    for await (const chunk of body) bytes += chunk.byteLength;
    return bytes;
  });
  static readonly POST = op({ stream: true }, () => 'unread');
}

const modules = { '': { Notes, Closed, Files } };

/** The status, and whether the body was asked for. */
async function send(
  t: ExecutionContext,
  method: string,
  path: string,
  { text, length }: { readonly text: string; readonly length?: number },
): Promise<readonly [number | undefined, boolean]> {
  const { app } = await createTestClient(modules);
  const port = await listenFor(t, createNodeServer(app));
  const headers = {
    'content-type': 'application/json',
    'content-length': length ?? text.length,
    expect: '100-continue',
  };
  const request = ask({ port, host: '127.0.0.1', method, path, headers });
  let isAsked = false;
  request.on('continue', () => {
    isAsked = true;
    request.end(text);
  });
  // The connection may be closed once the answer has arrived.
  request.on('error', () => {});
  request.flushHeaders();
  const signal = AbortSignal.timeout(60_000);
  const [response] = await once(request, 'response', { signal });
  response.resume();
  request.destroy();
  return [response.statusCode, isAsked];
}

test('a client that waits before it sends a body is asked for it where the method accepts it', async (t) => {
  t.deepEqual(await send(t, 'POST', '/notes', { text: '{"text":"a"}' }), [200, true]);
  t.deepEqual(await send(t, 'PUT', '/files', { text: 'abc' }), [200, true]);
});

test('a body that is refused before it is read is not asked for', async (t) => {
  const text = '{"text":"a"}';
  t.deepEqual(await send(t, 'POST', '/notes', { text, length: 2 ** 21 }), [413, false]);
  t.deepEqual(await send(t, 'POST', '/closed', { text }), [401, false]);
  t.deepEqual(await send(t, 'POST', '/nothing', { text }), [404, false]);
  t.deepEqual(await send(t, 'POST', '/files', { text }), [200, false]);
});
