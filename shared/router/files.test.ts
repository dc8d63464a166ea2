import { once } from 'node:events';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import test from 'ava';
import Type from 'typebox';
import { ownedByFile } from '../../test/support/owner.ts';
import { createTemporaryFolder } from '../../test/support/temporary-folder.ts';
import { createApp } from './app.ts';
import { Controller } from './controller.ts';
import { files, sendFile } from './files.ts';
import { bearer } from './guard.ts';
import { createNodeServer } from './mounts/node-http.ts';
import { op } from './op.ts';
import { createTestClient } from './test-client.ts';

const owner = ownedByFile(test);
const folder = createTemporaryFolder(owner);
const inside = join(folder, 'public');
mkdirSync(join(inside, 'docs'), { recursive: true });
writeFileSync(join(folder, 'secret.txt'), 'secret');
writeFileSync(join(inside, 'index.html'), '<p>home</p>');
writeFileSync(join(inside, 'docs', 'index.html'), '<p>docs</p>');
writeFileSync(join(inside, 'docs', 'a b.txt'), '0123456789');
writeFileSync(join(inside, '.env'), 'secret');
symlinkSync(join(folder, 'secret.txt'), join(inside, 'link.txt'));
symlinkSync(join(inside, 'docs'), join(inside, 'within'));

class Assets extends Controller {
  static readonly GET = files(pathToFileURL(inside));
}

class Guarded extends Controller {
  static override readonly guard = bearer((token) => token === 'right');
  static readonly GET = files(inside);
}

class Download extends Controller {
  static readonly GET = op({ path: [Type.String()] }, function (this: Controller, _fields, name) {
    this.response.headers.set('cache-control', 'private');
    this.response.headers.set('content-disposition', 'attachment');
    return sendFile(this, join(inside, 'docs'), [name]);
  });
}

async function listen(): Promise<number> {
  const loadModules = () => new Map([['', { Assets, Guarded, Download }]]);
  const server = createNodeServer(await createApp({ loadModules, warn: () => {} }));
  owner.teardown(() => server.close().closeAllConnections());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}
const listening = listen();

/** Sends paths unchanged: `fetch` would resolve their dots. */
async function get(path: string, headers: Record<string, string> = {}, method = 'GET') {
  const port = await listening;
  const asking = request({ port, host: '127.0.0.1', path, headers, method }).end();
  const [answer] = await once(asking, 'response', { signal: AbortSignal.timeout(60_000) });
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk);
  return {
    status: answer.statusCode,
    headers: answer.headers as Record<string, string>,
    text: Buffer.concat(chunks).toString(),
  };
}

test('a file of a folder is served with its type, its length and what a browser needs to keep it', async (t) => {
  const { status, headers, text } = await get('/assets/docs/a%20b.txt');
  t.deepEqual([status, text], [200, '0123456789']);
  t.like(headers, {
    'content-type': 'text/plain; charset=utf-8',
    'content-length': '10',
    'accept-ranges': 'bytes',
    'cache-control': 'public, max-age=0',
    'x-content-type-options': 'nosniff',
  });
  t.regex(headers['etag'] ?? '', /^(?:W\/)?".+"$/);
  t.regex(headers['last-modified'] ?? '', /GMT$/);
});

test("a folder's own path is its index.html, and leads to itself with a slash", async (t) => {
  t.is((await get('/assets/')).text, '<p>home</p>');
  t.is((await get('/assets/docs/')).text, '<p>docs</p>');
  t.is((await get('/assets/docs/?v=2')).text, '<p>docs</p>');
  for (const [target, location] of [
    ['/assets', './assets/'],
    ['/assets/docs', './docs/'],
    ['/assets/docs?a=/b', './docs/?a=/b'],
    ['/assets/%64ocs', './%64ocs/'],
  ] as const) {
    const { status, headers } = await get(target);
    t.deepEqual([status, headers['location']], [301, location], target);
  }
});

test('a range is answered with these bytes alone, one that is not there with 416', async (t) => {
  const some = await get('/assets/docs/a%20b.txt', { range: 'bytes=2-4' });
  t.deepEqual([some.status, some.text], [206, '234']);
  t.like(some.headers, { 'content-range': 'bytes 2-4/10', 'content-length': '3' });
  const last = await get('/assets/docs/a%20b.txt', { range: 'bytes=-3' });
  t.deepEqual([last.status, last.text], [206, '789']);
  for (const range of ['bytes=-50', 'bytes=a-b', 'bytes=0-1 x', 'bytes=0-0,2-3', 'bytes=5-2'])
    t.like(await get('/assets/docs/a%20b.txt', { range }), { status: 200, text: '0123456789' });
  const beyond = await get('/assets/docs/a%20b.txt', { range: 'bytes=50-' });
  t.is(beyond.status, 416);
  t.like(beyond.headers, {
    'content-range': 'bytes */10',
    'content-type': 'application/problem+json',
  });
});

test('a range of another state of the file is answered with the whole file', async (t) => {
  const { headers } = await get('/assets/docs/a%20b.txt');
  const range = 'bytes=2-4';
  const same = await get('/assets/docs/a%20b.txt', { range, 'if-range': headers['etag'] ?? '' });
  t.is(same.status, 206);
  const other = await get('/assets/docs/a%20b.txt', { range, 'if-range': '"other"' });
  t.deepEqual([other.status, other.text], [200, '0123456789']);
});

test('a caller that already has the file gets 304; a failed condition gets 412', async (t) => {
  const { headers } = await get('/assets/docs/a%20b.txt');
  const etag = headers['etag'] ?? '';
  const known = await get('/assets/docs/a%20b.txt', { 'if-none-match': etag });
  t.deepEqual([known.status, known.text, known.headers['etag']], [304, '', etag]);
  const since = { 'if-modified-since': headers['last-modified'] ?? '' };
  t.is((await get('/assets/docs/a%20b.txt', since)).status, 304);
  t.is((await get('/assets/docs/a%20b.txt', { 'if-unmodified-since': '0' })).status, 200);
  t.is((await get('/assets/docs/a%20b.txt', { 'if-match': '"other"' })).status, 412);
});

test('a range is for GET alone: HEAD has the headers of the whole file', async (t) => {
  const range = { range: 'bytes=2-4' };
  const { status, headers, text } = await get('/assets/docs/a%20b.txt', range, 'HEAD');
  t.deepEqual([status, headers['content-length'], text], [200, '10', '']);
  t.is(headers['content-range'], undefined);
});

test('nothing outside of the folder is served, however it is asked for', async (t) => {
  for (const path of [
    '/assets/../secret.txt',
    '/assets/%2e%2e/secret.txt',
    '/assets/..%2fsecret.txt',
    '/assets/docs%2f..%2f..%2fsecret.txt',
    '/assets/..%5csecret.txt',
    '/assets/docs%2findex.html',
    '/assets/link.txt',
    '/assets/.env',
    '/assets/.%2fx',
    '/assets/missing.txt',
    '/assets/docs/a%20b.txt/more',
    '/assets/%252e%252e/secret.txt',
  ]) {
    const { status, text } = await get(path);
    t.is(status, 404, path);
    t.notRegex(text, /secret|tmp/, path);
  }
  t.is((await get('/assets/within/a%20b.txt')).status, 200);
});

test('guards hold for files, other methods return 405 with Allow, and TRACE is refused', async (t) => {
  t.is((await get('/guarded/index.html')).status, 401);
  const { status, headers } = await get('/guarded/index.html', { authorization: 'Bearer right' });
  t.deepEqual([status, headers['cache-control']], [200, 'private, max-age=0']);
  const posted = await get('/assets/index.html', {}, 'POST');
  t.deepEqual([posted.status, posted.headers['allow']], [405, 'GET, HEAD, OPTIONS']);
  const asked = await get('/assets/index.html', {}, 'OPTIONS');
  t.deepEqual([asked.status, asked.headers['allow']], [204, 'GET, HEAD, OPTIONS']);
  t.is((await get('/assets/index.html', {}, 'TRACE')).status, 405);
});

test('a method answers with one file, and the headers that it has set stay', async (t) => {
  const { status, headers, text } = await get('/download/a%20b.txt', { range: 'bytes=0-0' });
  t.deepEqual([status, text], [206, '0']);
  t.like(headers, { 'cache-control': 'private', 'content-disposition': 'attachment' });
  t.is((await get('/download/..%2findex.html')).status, 404);
});

test('a folder that is not there is a defect that names it', async (t) => {
  class Gone extends Controller {
    static readonly GET = files(join(inside, 'gone'));
  }
  const client = await createTestClient({ '': { Gone } });
  t.is((await client.send('GET', '/gone/a.txt')).status, 500);
  t.regex(String(client.reports[0]?.error), /no such file or directory.*gone/);
});
