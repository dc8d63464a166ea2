import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { type App, createApp } from './app.ts';

const readme = await readFile(new URL('README.md', import.meta.url), 'utf8');

test('the first controller of the README has ten lines and does what it says', async (t) => {
  const source = /```ts\n(.*?)```/s.exec(readme)?.[1] ?? '';
  const lines = source.split('\n').filter((line) => line !== '' && line !== '}');
  t.true(lines.length <= 10);
  const app = await createReadmeApp(source);
  const [, url, answer] = /curl '(\S+)'\s+# (.*)/.exec(readme) ?? [];
  const response = await app.fetch(new Request(`http://${url}`));
  t.is(await response.text(), answer ?? 'the README shows no answer');
});

test('the controller of the section about XML answers what it says', async (t) => {
  const section = readme.slice(readme.indexOf('\n## XML\n'));
  const app = await createReadmeApp(/```ts\n(.*?)```/s.exec(section)?.[1] ?? '');
  const [, path = '', body] = /curl localhost:8000(\S+).*?-d '(.*?)'/s.exec(section) ?? [];
  const headers = { 'content-type': 'application/xml', accept: 'application/xml' };
  const request = new Request(`http://localhost${path}`, {
    method: 'POST',
    headers,
    body: body ?? '',
  });
  const response = await app.fetch(request);
  t.is(
    await response.text(),
    /```xml\n(.*?)\n```/s.exec(section)?.[1] ?? 'the README shows no answer',
  );
});

/** With a controller of the README in the root module. */
async function createReadmeApp(source: string): Promise<App> {
  const folder = await mkdtemp(join(tmpdir(), 'readme-'));
  const here = new URL('.', import.meta.url).href;
  const typebox = import.meta.resolve('typebox');
  const resolved = source
    .replaceAll('../shared/router/', here)
    .replace("'typebox'", `'${typebox}'`);
  await writeFile(join(folder, 'index.ts'), resolved);
  const app = await createApp({ controllerPrefix: folder });
  await rm(folder, { recursive: true });
  return app;
}
