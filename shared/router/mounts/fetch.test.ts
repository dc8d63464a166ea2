import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import test from 'ava';
import Type from 'typebox';
import { Controller } from '../controller.ts';
import { op } from '../op.ts';
import { createTestClient } from '../test-client.ts';
import { upload } from '../upload.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const entry = join(root, 'shared', 'router', 'index.ts');

/** A module as Workers hosts load it, and the calls that such a host makes. */
const program = `
  import { Controller, createApp, op, Type } from ${JSON.stringify(entry)};

  class Notes extends Controller {
    static POST = op({ body: Type.Object({ text: Type.String({ pattern: '^[a-z ]+$', maxLength: 20 }) }) });
    POST({ text }) { this.response.status = 201; return { text }; }
    static PUT = op({ stream: true }, async (_fields, body) => {
      let bytes = 0;
      for await (const chunk of body) bytes += chunk.byteLength;
      return { bytes };
    });
    async *GET() { yield 1; yield 2; }
  }
  const app = await createApp({ loadModules: () => new Map([['', { Notes }]]) });
  const worker = { fetch: (request) => app.fetch(request) };

  const ask = async (method, body, type = 'application/json') => {
    const headers = body === undefined ? {} : { 'content-type': type };
    const response = await worker.fetch(new Request('https://example.com/notes', { method, body, headers }));
    return [response.status, await response.json()];
  };
  let isEvalForbidden = false;
  try { new Function('return 1')(); } catch { isEvalForbidden = true; }
  const form = new FormData();
  form.append('text', 'tea');
  const formed = await worker.fetch(new Request('https://example.com/notes', { method: 'POST', body: form }));
  console.log(JSON.stringify({
    isEvalForbidden,
    made: await ask('POST', '{"text":"tea"}'),
    formed: formed.status,
    refused: (await ask('POST', '{"text":"7"}'))[0],
    streamed: await ask('PUT', new Uint8Array(3), 'video/mp4'),
    listed: await ask('GET'),
    missing: (await ask('DELETE'))[0],
    resources: process.getActiveResourcesInfo().filter((name) => /Server|Timeout|FS/.test(name)),
  }));
`;

test('a Worker is served by the fetch export: no eval, no folder of controllers, no server, nothing written', async (t) => {
  const flags = [
    '--disallow-code-generation-from-strings',
    '--permission',
    `--allow-fs-read=${root}/`,
  ];
  const args = [...flags, '--input-type=module', '--eval', program];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root });
  t.deepEqual(JSON.parse(stdout), {
    isEvalForbidden: true,
    made: [201, { text: 'tea' }],
    formed: 201,
    refused: 400,
    streamed: [200, { bytes: 3 }],
    listed: [200, [1, 2]],
    missing: 405,
    resources: [],
  });
});

test('the form of a Request that is refused before its end fails nowhere', async (t) => {
  class Photo extends Controller {
    static readonly POST = op({ body: Type.Object({ file: upload() }) }, () => 'kept');
  }
  const unhandled: unknown[] = [];
  const note = (error: unknown) => void unhandled.push(error);
  process.on('unhandledRejection', note);
  t.teardown(() => process.off('unhandledRejection', note));
  const { app } = await createTestClient({ '': { Photo } }, { limits: { bodyBytes: 1024 } });
  const body = new FormData();
  body.append('file', new File([new Uint8Array(400 * 1024)], 'sun.png'));
  const request = new Request('http://localhost/photo', { method: 'POST', body });
  t.is((await app.fetch(request)).status, 413);
  // Rejections are reported when no other work is left.
  await setImmediate();
  t.deepEqual(unhandled, []);
});

test('an answer whose client has disconnected ends, whether or not it is read', async (t) => {
  const stream = Readable.from(['tea', 'coffee']);
  const failing = new ReadableStream({
    cancel: () => Promise.reject(new Error('an end that fails ends nothing else')),
  });
  class Drinks extends Controller {
    GET() {
      return stream;
    }
    PUT() {
      return failing;
    }
  }
  const { app } = await createTestClient({ '': { Drinks } });
  for (const method of ['GET', 'PUT']) {
    const gone = new AbortController();
    const request = new Request('http://localhost/drinks', { method, signal: gone.signal });
    const response = await app.fetch(request);
    gone.abort();
    await t.throwsAsync(response.text(), { name: 'AbortError' });
  }
  t.true(stream.destroyed);
});
