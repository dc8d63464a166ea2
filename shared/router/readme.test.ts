// The code that the README and its guides show is run, or at least compiled, as a reader would paste it: with no imports but
// those that are shown.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { findFencedBlocks } from '../../test/support/fenced-blocks.ts';
import { ownedByFile } from '../../test/support/owner.ts';
import { createRouterFolder } from '../../test/support/router-folder.ts';
import { createApp } from './app.ts';
import { createNodeServer } from './mounts/node-http.ts';

const root = join(import.meta.dirname, '..', '..');
const readme = readFileSync(new URL('README.md', import.meta.url), 'utf8');
const guides = [
  'paths-and-arguments',
  'answers',
  'xml',
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
/** Each block with a controller is a module: the first is the root, others are called by their class. */
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
  const section = pages.get('xml') ?? '';
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

test('the test of the README passes', async (t) => {
  const source = sources.find((text) => text.includes('createTestClient')) ?? '';
  writeFileSync(join(folder, 'hello.test.ts'), source);
  const { stdout } = await promisify(execFile)(process.execPath, ['--test'], { cwd: folder });
  t.regex(stdout, /fail 0\n/);
});
