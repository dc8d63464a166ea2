import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { brotliDecompressSync, createGunzip, gunzipSync } from 'node:zlib';
import test from 'ava';
import { eventually } from '../../../test/support/eventually.ts';
import { createApp } from '../app.ts';
import { Controller } from '../controller.ts';
import { sendFile } from '../files.ts';
import type { ErrorReport } from '../index.ts';
import { createNodeServer } from '../mounts/node-http.ts';
import { op } from '../op.ts';
import { compress } from './compress.ts';

const text = 'tea '.repeat(1_000);

class Texts extends Controller {
  static readonly GET = op({ etag: true }, () => ({ text }));
  static readonly DELETE = op({ etag: true }, () => {});
  GET_small() {
    return 'tea';
  }
  GET_picture() {
    this.response.mediaType = 'image/png';
    return Buffer.alloc(4_000);
  }
  GET_done() {
    this.response.headers.set('content-encoding', 'zstd');
    return text;
  }
  GET_kept() {
    this.response.headers.set('cache-control', 'public, no-transform');
    return text;
  }
  GET_stream() {
    this.response.mediaType = 'text/plain';
    return new Blob([text]).stream();
  }
  GET_none() {}
  static readonly GET_own = op({ etag: true });
  GET_own() {
    const { headers } = this.response;
    for (const name of ['content-digest', 'repr-digest']) headers.set(name, 'sha-256=:dGVh:');
    headers.set('etag', '"1-gzip"');
    headers.set('vary', 'accept-encoding, origin');
    return this.GET_stream();
  }
  static readonly PUT_own = op({ etag: true }, () => {});
}

async function fetchFrom(controllers: object) {
  const app = await createApp({
    loadModules: () => new Map([['', controllers]]) as never,
    around: compress(),
    reportError: () => {},
  });
  return (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    app.fetch(new Request(`http://localhost${path}`, { method, headers }));
}

async function bytesOf(response: Response): Promise<Buffer> {
  return Buffer.from(await response.arrayBuffer());
}

test('texts and streams are compressed for who accepts it, by what is preferred', async (t) => {
  const get = await fetchFrom({ Texts });
  for (const [accept, coding] of [
    ['gzip', 'gzip'],
    ['gzip, deflate, br', 'br'],
    ['br;q=0.5, gzip;q=0.8', 'gzip'],
    ['*', 'br'],
    ['br;q=0, *', 'gzip'],
    ['identity, gzip;q=0.5', null],
    ['identity;q=0.5, gzip;q=0.5', 'gzip'],
    ['GZIP', 'gzip'],
    ['gzip;q=0', null],
    ['identity', null],
    ['', null],
    ['*;q=0', null],
    ['gzip;q=x', null],
  ] as const) {
    for (const path of ['/texts', '/texts/stream']) {
      const response = await get(path, { 'accept-encoding': accept });
      const bytes = await bytesOf(response);
      const about = `${path} ${accept}`;
      t.is(response.headers.get('content-encoding'), coding, about);
      t.is(response.headers.get('vary'), 'Accept-Encoding', about);
      const length = response.headers.get('content-length');
      t.is(length, path === '/texts' ? String(bytes.length) : null, about);
      const read =
        coding === null ? bytes : coding === 'br' ? brotliDecompressSync(bytes) : gunzipSync(bytes);
      t.is(read.toString(), path === '/texts' ? JSON.stringify({ text }) : text, about);
      if (coding !== null) t.true(bytes.length < 300, about);
    }
  }
});

test('what is short, compressed already, without a body or not to be changed stays as it is', async (t) => {
  const get = await fetchFrom({ Texts });
  for (const name of ['small', 'picture', 'done', 'kept', 'none']) {
    const response = await get(`/texts/${name}`, { 'accept-encoding': 'gzip' });
    const coding = response.headers.get('content-encoding');
    t.is(coding, name === 'done' ? 'zstd' : null, name);
    t.is(response.headers.get('vary'), null, name);
  }
});

test('HEAD has the headers of the compressed answer, and its tag is one to revalidate and to change with', async (t) => {
  const get = await fetchFrom({ Texts });
  const accepted = { 'accept-encoding': 'gzip' };
  const whole = await get('/texts', accepted);
  const head = await get('/texts', accepted, 'HEAD');
  t.is(head.headers.get('content-length'), whole.headers.get('content-length'));
  const tag = whole.headers.get('etag') ?? '';
  t.regex(tag, /^"[\w-]{27}-gzip"$/);
  const again = await get('/texts', { ...accepted, 'if-none-match': tag });
  t.deepEqual([again.status, again.headers.get('content-encoding')], [304, null]);
  t.deepEqual([again.headers.get('vary'), again.headers.get('etag')], ['Accept-Encoding', tag]);
  t.is((await get('/texts', { ...accepted, 'if-none-match': `W/${tag}` })).status, 304, 'by nginx');
  t.is((await get('/texts', { ...accepted, 'if-match': tag }, 'DELETE')).status, 204);
  t.is((await get('/texts', { 'if-match': tag.replace('gzip', 'other') }, 'DELETE')).status, 412);
});

test('a stream has a tag like a text, whatever that ends with, and no header of the bytes before', async (t) => {
  const get = await fetchFrom({ Texts });
  const { headers } = await get('/texts/own', { 'accept-encoding': 'gzip' });
  t.is(headers.get('vary'), 'accept-encoding, origin');
  t.deepEqual([headers.get('content-digest'), headers.get('repr-digest')], [null, null]);
  t.is(headers.get('etag'), '"1-gzip-gzip"');
  for (const tag of ['"1-gzip-gzip"', '"1-gzip"']) {
    t.is((await get('/texts/own', { 'if-none-match': tag })).status, 304, tag);
    t.is((await get('/texts/own', { 'if-match': tag }, 'PUT')).status, 204, tag);
  }
});

test('a part of a file is never compressed, and no part is offered of what is', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'compress-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, 'a.txt'), text);
  class Files extends Controller {
    GET() {
      return sendFile(this, folder, ['a.txt']);
    }
  }
  const get = await fetchFrom({ Files });
  const accepted = { 'accept-encoding': 'gzip' };
  const part = await get('/files', { ...accepted, range: 'bytes=4-6' });
  t.deepEqual([part.status, part.headers.get('content-encoding')], [206, null]);
  t.is(await part.text(), 'tea');
  const whole = await get('/files', accepted);
  t.is(whole.headers.get('accept-ranges'), null);
  t.is(gunzipSync(await bytesOf(whole)).toString(), text);
});

/** A server that compresses what `value` returns, and runs until `run` ends. */
async function withServer(
  { value, produces }: { readonly value: () => unknown; readonly produces: string },
  run: (get: () => Promise<IncomingMessage>, reports: readonly ErrorReport[]) => Promise<void>,
): Promise<void> {
  const reports: ErrorReport[] = [];
  class Default extends Controller {
    static readonly GET = op({ produces }, value as () => AsyncGenerator);
  }
  const app = await createApp({
    loadModules: () => new Map([['', { Default }]]),
    around: compress(),
    reportError: (report) => reports.push(report),
  });
  const server = createNodeServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const headers = { 'accept-encoding': 'gzip' };
  const get = async () => {
    const [response] = await once(httpRequest({ port, headers }).end(), 'response');
    return response as IncomingMessage;
  };
  try {
    await run(get, reports);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** A stream of texts that cannot be compressed, endless or failing at the third. */
function source(fails: boolean): Readable {
  let chunks = 0;
  return new Readable({
    read() {
      chunks += 1;
      if (fails && chunks === 3) this.destroy(new Error('the disk is gone'));
      else this.push(crypto.getRandomValues(Buffer.alloc(32 * 1024)));
    },
  });
}

test('a compressed stream is destroyed when its reader leaves, and nothing is reported', async (t) => {
  const stream = source(false);
  await withServer({ value: () => stream, produces: 'text/plain' }, async (get, reports) => {
    const response = await get();
    t.is(response.headers['content-encoding'], 'gzip');
    await once(response, 'readable');
    response.destroy();
    await eventually('it is destroyed', () => stream.destroyed);
    t.deepEqual(reports, []);
  });
});

test('a compressed stream that fails is reported once, and cuts the connection', async (t) => {
  await withServer({ value: () => source(true), produces: 'text/plain' }, async (get, reports) => {
    await t.throwsAsync(async () => {
      for await (const _chunk of await get());
    });
    t.deepEqual(
      reports.map(({ error }) => (error as Error).message),
      ['the disk is gone'],
    );
  });
});

test('a chunk of a slow stream arrives while the next is awaited', async (t) => {
  const more = Promise.withResolvers<void>();
  async function* slow() {
    yield Buffer.from('one');
    await more.promise;
    yield Buffer.from('two');
  }
  await withServer(
    { value: () => ReadableStream.from(slow()), produces: 'text/plain' },
    async (get) => {
      const read = (await get()).pipe(createGunzip()).setEncoding('utf8');
      const chunks: string[] = [];
      for await (const chunk of read) {
        chunks.push(String(chunk));
        more.resolve();
      }
      t.deepEqual(chunks, ['one', 'two']);
    },
  );
});

test('events are never compressed', async (t) => {
  async function* events() {
    yield { tea: text };
  }
  await withServer({ value: events, produces: 'text/event-stream' }, async (get) => {
    const response = await get();
    t.is(response.headers['content-encoding'], undefined);
    response.resume();
    await once(response, 'end');
  });
});
