// The code in the README and its guides is run, or at least compiled, as a reader would paste it: with only the imports
// that are shown.
import type { AsyncLocalStorage } from 'node:async_hooks';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';
import { findFencedBlocks } from '../../test/support/fenced-blocks.ts';
import { ownedByFile } from '../../test/support/owner.ts';
import { createRouterFolder } from '../../test/support/router-folder.ts';
import { createApp } from './app.ts';
import { Controller } from './controller.ts';
import { createNodeServer } from './mounts/node-http.ts';
import { op } from './op.ts';
import type { Around } from './request/request.ts';
import { createTestClient } from './test-client.ts';

const root = join(import.meta.dirname, '..', '..');
const readme = readFileSync(new URL('README.md', import.meta.url), 'utf8');
const guides = [
  'paths-and-arguments',
  'answers',
  'guards',
  'live',
  'folders',
  'typed-client',
  'serving',
] as const;
const pages = new Map<string, string>();
for (const guide of guides) {
  pages.set(guide, readFileSync(new URL(`docs/${guide}.md`, import.meta.url), 'utf8'));
}
const sources = [readme, ...pages.values()]
  .flatMap(findFencedBlocks)
  .filter(({ language }) => language === 'ts')
  .map(({ text }) => text);

const folder = createRouterFolder(ownedByFile(test), ['@hono', 'fastify']);
mkdirSync(join(folder, 'controllers'));
/** Each block with a controller is a module: the first one is the root, others are named after their class. */
for (const [at, source] of sources.entries()) {
  const isController = source.includes(' extends Controller ');
  const name = at === 0 ? 'index' : `block${at}`;
  writeFileSync(join(folder, isController ? 'controllers' : '.', `${name}.ts`), source);
}
// Each block is about one thing, and most of them have no guard.
const starting = createApp({ controllerPrefix: join(folder, 'controllers'), warn: () => {} });

test('the TypeScript of the README and its guides compiles with the imports that it shows', async (t) => {
  const compilerOptions = {
    ...{ module: 'nodenext', target: 'esnext', lib: ['esnext'], types: ['node'], noEmit: true },
    ...{ strict: true, skipLibCheck: true },
    ...{ allowImportingTsExtensions: true, erasableSyntaxOnly: true },
  };
  const config = { compilerOptions, include: ['controllers', '*.ts'] };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
  const compiler = join(root, 'node_modules', '.bin', 'tsc');
  const { stdout } = await promisify(execFile)(compiler, ['-p', folder]).catch(
    (error: { stdout: string }) => error,
  );
  t.is(stdout, '');
  t.true(sources.length > 15);
});

test('the first controller of the README has ten lines and does what is promised', async (t) => {
  const lines = (sources[0] ?? '').split('\n').filter((line) => line !== '' && line !== '}');
  t.true(lines.length <= 10);
  const [, url, answer] = /curl '(\S+)'\s+# (.*)/.exec(readme) ?? [];
  const response = await (await starting).fetch(new Request(`http://${url}`));
  t.is(await response.text(), answer ?? 'the README shows no answer');
});

test('the controller of the guide to XML answers what is shown', async (t) => {
  const section = pages.get('answers')?.split('\n## XML\n')[1] ?? '';
  const [, path = '', body = ''] = /curl localhost:8000(\S+).*?-d '(.*?)'/s.exec(section) ?? [];
  const module = `/block${sources.findIndex((source) => source.includes('xml = true'))}`;
  const headers = { 'content-type': 'application/xml', accept: 'application/xml' };
  const request = new Request(`http://localhost${module}${path}`, {
    method: 'POST',
    headers,
    body,
  });
  const shown = /```xml\n(.*?)\n```/s.exec(section)?.[1] ?? 'the guide shows no answer';
  t.is(await (await (await starting).fetch(request)).text(), shown);
});

test('the typed client of its guide prints what is shown', async (t) => {
  const section = pages.get('typed-client') ?? '';
  const shown = [...(/```sh\n(.*?)```/s.exec(section)?.[1] ?? '').matchAll(/ # (.*)/g)];
  const server = createNodeServer(await starting).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const source = sources.find((text) => text.includes('client<Modules>')) ?? '';
  const file = join(folder, 'client.ts');
  writeFileSync(file, source.replace('localhost:8000', `127.0.0.1:${port}`));
  const { stdout } = await promisify(execFile)(process.execPath, [file]).finally(() =>
    server.close(),
  );
  t.deepEqual(
    stdout.split('\n').slice(0, -1),
    shown.map(([, line]) => line?.trim()),
  );
});

test('an event of AWS Lambda reaches its method by path, query, cookies and body', async (t) => {
  const at = sources.findIndex((text) => text.includes('rawPath'));
  const event = {
    ...{ rawPath: '/prod/gr\u00fcn und?#100%', rawQueryString: 'name=ann', headers: { host: 'a' } },
    ...{ cookies: ['a=1', 'b=2'], requestContext: { stage: 'prod', http: { method: 'POST' } } },
    ...{ body: Buffer.from('{"n":1}').toString('base64'), isBase64Encoded: true },
  };
  const app = `export const createApp = async () => ({ fetch: async (request) => {
    const { method, url, headers } = request;
    const said = [method, url, headers.get('cookie'), await request.text()];
    return Response.json(said, { status: 201, headers: [['set-cookie', 'c=1'], ['set-cookie', 'd=2']] });
  } });`;
  writeFileSync(join(folder, 'app.mjs'), app);
  const source = (sources[at] ?? '')
    .replace("'ratelane-router'", "'./app.mjs'")
    .replace(': any', '');
  writeFileSync(join(folder, 'lambda.mjs'), source);
  const { handler } = await import(pathToFileURL(join(folder, 'lambda.mjs')).href);
  const { body, headers, ...answer } = await handler(event);
  t.deepEqual(answer, { statusCode: 201, cookies: ['c=1', 'd=2'], isBase64Encoded: true });
  t.deepEqual(headers, { 'content-type': 'application/json' });
  t.deepEqual(JSON.parse(Buffer.from(body, 'base64').toString()), [
    ...['POST', 'https://a/gr%C3%BCn%20und%3F%23100%25?name=ann', 'a=1; b=2', '{"n":1}'],
  ]);
});

test('the test of the README passes', async (t) => {
  const source = sources.find((text) => text.includes('createTestClient')) ?? '';
  writeFileSync(join(folder, 'hello.test.ts'), source);
  const { stdout } = await promisify(execFile)(process.execPath, ['--test'], { cwd: folder });
  t.regex(stdout, /fail 0\n/);
});

test('the arounds of the guide answer a page, and a trace that its methods read', async (t) => {
  const importBlock = async (mark: string) => {
    const at = sources.findIndex((text) => text.includes(mark));
    return (await import(pathToFileURL(join(folder, `block${at}.ts`)).href)) as {
      readonly folder: object;
      readonly traced: Around;
      readonly trace: AsyncLocalStorage<string>;
    };
  };
  const { folder: surrounding } = await importBlock('const ownPage');
  const { traced, trace } = await importBlock('const traced');
  class Traces extends Controller {
    static readonly GET = op({}, () => trace.getStore());
  }
  const modules = { _folder: { folder: surrounding }, '': { Traces } };
  const { send } = await createTestClient(modules, { around: traced });
  const id = '0af7651916cd43dd8448eb211c80319c';
  const traceparent = `00-${id}-b7ad6b7169203331-01`;
  const answer = await send('GET', '/traces', { headers: { traceparent } });
  t.deepEqual([answer.json, answer.headers.get('x-trace-id')], [id, id]);
  const page = await send('GET', '/none', { headers: { accept: 'text/html' } });
  t.is(page.text, '<p>There is no /none.</p>');
  t.regex(page.headers.get('x-trace-id') ?? '', /^[0-9a-f]{32}$/);
});
