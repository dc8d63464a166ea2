import test, { type ExecutionContext } from 'ava';
import Fastify from 'fastify';
import { addConsoleRoutes } from './console-routes.ts';

async function start(t: ExecutionContext) {
  const fastify = Fastify();
  addConsoleRoutes(fastify, (text) => t.fail(text));
  t.teardown(() => fastify.close());
  return (path: string, headers: Record<string, string> = {}, method: 'GET' | 'HEAD' = 'GET') =>
    fastify.inject({ method, url: path, headers });
}

test('a browser is redirected to the console, whatever prefix a proxy adds', async (t) => {
  const ask = await start(t);
  for (const path of ['/', '/console']) {
    const { statusCode, headers } = await ask(path);
    t.deepEqual([statusCode, headers.location], [302, 'console/']);
  }
});

test('a page may run only its own scripts, and send requests only to its own server', async (t) => {
  const ask = await start(t);
  const { headers, body, statusCode } = await ask('/console/');
  t.is(statusCode, 200);
  t.is(headers['content-type'], 'text/html; charset=utf-8');
  t.regex(`${headers['content-security-policy']}`, /default-src 'none'.*connect-src 'self'/);
  t.regex(`${headers['content-security-policy']}`, /frame-ancestors 'none'/);
  t.notRegex(`${headers['content-security-policy']}`, /unsafe/);
  t.is(headers['x-content-type-options'], 'nosniff');
  const [, main = ''] = /<script type="module" src="([^"]+)"/.exec(body) ?? [];
  const script = await ask(`/console/${main}`);
  t.is(script.headers['content-type'], 'text/javascript; charset=utf-8');
});

test('every file that a module imports exists', async (t) => {
  const ask = await start(t);
  const { body } = await ask('/console/');
  const [, map = '{}'] = /<script type="importmap">(.*?)<\/script>/.exec(body) ?? [];
  const { imports } = JSON.parse(map) as { imports: Record<string, string> };
  const toCheck = [/<script type="module" src="([^"]+)"/.exec(body)?.[1] ?? ''];
  const known = new Set(toCheck);
  for (const path of toCheck) {
    const { statusCode, body: text } = await ask(`/console/${path}`);
    t.is(statusCode, 200, path);
    for (const [, name = ''] of text.matchAll(/\bfrom\s?["']([^"']+)["']/g)) {
      const next = name.startsWith('.') ? name : (imports[name] ?? '');
      const at = new URL(next, `http://host/${name.startsWith('.') ? path : ''}`).pathname.slice(1);
      if (known.has(at)) continue;
      known.add(at);
      toCheck.push(at);
    }
  }
  t.true(known.size > 15, [...known].join(' '));
});

test('files are compressed, and not sent again while they are unchanged', async (t) => {
  const ask = await start(t);
  const path = '/console/page/style.css';
  const plain = await ask(path);
  for (const encoding of ['br', 'gzip']) {
    const { headers, rawPayload } = await ask(path, { 'accept-encoding': encoding });
    t.is(headers['content-encoding'], encoding);
    t.true(rawPayload.length < plain.rawPayload.length / 2);
  }
  const again = await ask(path, { 'if-none-match': `${plain.headers.etag}` });
  t.deepEqual([again.statusCode, again.rawPayload.length], [304, 0]);
  t.is((await ask(path, {}, 'HEAD')).statusCode, 200);
});

test('only the files of the console are served', async (t) => {
  const ask = await start(t);
  const paths = ['page/tsconfig.json', 'page/../assets.ts', 'page/rule-rates.test.ts', 'page', 'x'];
  for (const path of [...paths, '..%2f..%2fpackage.json', 'page/%00']) {
    t.is((await ask(`/console/${path}`)).statusCode, 404, path);
  }
});
