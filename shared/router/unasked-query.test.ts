// A query that no method asked for (behaviour: unasked-queries).
import { fileURLToPath } from 'node:url';
import test from 'ava';
import Type from 'typebox';
import { Controller } from './controller.ts';
import { files } from './files.ts';
import { defineFolder } from './folder.ts';
import { named, op } from './index.ts';
import { createTestClient } from './test-client.ts';

class Assets extends Controller {
  static readonly GET = files(fileURLToPath(new URL('./sample', import.meta.url)));
}

class Page extends Controller {
  GET() {
    return 'page';
  }
  PUT() {
    return 'changed';
  }
}

class Item extends Controller {
  static readonly GET = op({ path: [Type.Integer()] }, (_fields, id) => id);
}

class Search extends Controller {
  static readonly GET = op(
    { query: Type.Object({ q: Type.String({ default: '' }) }) },
    ({ q }) => q,
  );
  static readonly POST = op({ body: Type.Object({ name: Type.String() }) }, ({ name }) => name);
}

class View extends Controller {
  static readonly GET = op({ path: [named('id', Type.String())] }, (_fields, id) => id);
}

const modules = { '': { Assets, Page, Item, Search, View } };
const tracking = 'utm_source=mail&fbclid=1&v=2';

test('files, pages and GETs that declare no name ignore a query, and so does HEAD', async (t) => {
  const { send } = await createTestClient(modules);
  for (const path of ['/assets/index.ts', '/page', '/item/7']) {
    for (const query of [tracking, '%zz', '__proto__=1']) {
      t.is((await send('GET', `${path}?${query}`)).status, 200, `${path}?${query}`);
      t.is((await send('HEAD', `${path}?${query}`)).status, 200, `${path}?${query}`);
    }
  }
});

test('where a name is declared, and for what is unsafe, an unknown name is 400 by its name', async (t) => {
  const { send } = await createTestClient(modules);
  for (const [method, path] of [
    ['GET', '/search'],
    ['GET', '/view/a'],
    ['PUT', '/page'],
  ] as const) {
    t.like((await send(method, `${path}?v=2`)).json, {
      status: 400,
      errors: [{ in: 'query', name: 'v', reason: 'is unknown' }],
    });
  }
});

test('a folder can ignore unknown names of a query, never those of a body nor wrong values', async (t) => {
  const outer = defineFolder({ unknownQuery: 'ignore' });
  const inner = defineFolder({ unknownQuery: 'refuse' });
  const { send } = await createTestClient({
    _folder: { folder: outer },
    ...modules,
    'strict._folder': { folder: inner },
    strict: { Search },
  });
  t.is((await send('GET', `/search?q=tea&${tracking}`)).json, 'tea');
  t.is((await send('PUT', `/page?${tracking}`)).json, 'changed');
  const posted = await send('POST', `/search?${tracking}`, { body: { name: 'a' } });
  t.is(posted.json, 'a');
  const body = { name: 'a', more: 1 };
  t.like((await send('POST', '/search', { body })).json, {
    errors: [{ in: 'body', name: 'more' }],
  });
  t.is((await send('GET', '/search?q=1&q=2&v=2')).status, 400);
  t.is((await send('GET', '/strict/search?v=2')).status, 400);
});
