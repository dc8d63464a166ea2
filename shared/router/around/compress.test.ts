import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { brotliDecompressSync, createGunzip, gunzipSync } from 'node:zlib';
import test from 'ava';
import { createApp } from '../app.ts';
import { Controller } from '../controller.ts';
import { sendFile } from '../files.ts';
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
  GET_fixed() {
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

test('an answer that is short, compressed already, without a body or not to be changed is not compressed', async (t) => {
  const get = await fetchFrom({ Texts });
  for (const name of ['small', 'picture', 'done', 'fixed', 'none']) {
    const response = await get(`/texts/${name}`, { 'accept-encoding': 'gzip' });
    const coding = response.headers.get('content-encoding');
    t.is(coding, name === 'done' ? 'zstd' : null, name);
    t.is(response.headers.get('vary'), null, name);
  }
});

test('HEAD has the headers of the compressed answer, and its tag is one to revalidate and to change with', async (t) => {
  const get = await fetchFrom({ Texts });
  const accepted = { 'accept-encoding': 'gzip' };
  const full = await get('/texts', accepted);
  const head = await get('/texts', accepted, 'HEAD');
  t.is(head.headers.get('content-length'), full.headers.get('content-length'));
  const tag = full.headers.get('etag') ?? '';
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
  const full = await get('/files', accepted);
  t.is(full.headers.get('accept-ranges'), null);
  t.is(gunzipSync(await bytesOf(full)).toString(), text);
});

test('a chunk of a slow stream arrives while the next is awaited', async (t) => {
  const more = Promise.withResolvers<void>();
  async function* slow() {
    yield Buffer.from('one');
    await more.promise;
    yield Buffer.from('two');
  }
  class Slow extends Controller {
    GET() {
      this.response.mediaType = 'text/plain';
      return ReadableStream.from(slow());
    }
  }
  const get = await fetchFrom({ Slow });
  const { body } = await get('/slow', { 'accept-encoding': 'gzip' });
  const chunks: string[] = [];
  for await (const chunk of Readable.from(body ?? [])
    .pipe(createGunzip())
    .setEncoding('utf8')) {
    chunks.push(String(chunk));
    more.resolve();
  }
  t.deepEqual(chunks, ['one', 'two']);
});

test('events are never compressed', async (t) => {
  class Events extends Controller {
    static readonly GET = op({ produces: 'text/event-stream' });
    async *GET() {
      yield { tea: text };
    }
  }
  const get = await fetchFrom({ Events });
  const { headers, body } = await get('/events', { 'accept-encoding': 'gzip' });
  t.is(headers.get('content-encoding'), null);
  await body?.cancel();
});
