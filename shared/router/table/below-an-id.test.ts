import test from 'ava';
import Type from 'typebox';
import { Controller } from '../controller.ts';
import { op } from '../op.ts';
import { optional, part } from '../path-part.ts';
import { createTestClient } from '../test-client.ts';
import { toPathText } from './route-list.ts';

const ID = Type.Integer();

class Notes extends Controller {
  static readonly GET = op({ path: [optional(part('id', ID))], rest: Type.String() });
  GET(_fields: object, id?: number, ...more: string[]) {
    return { note: id, more };
  }
}

class Comments extends Controller {
  static readonly GET = op({ path: [part('note', ID), optional(part('comment', ID))] });
  GET(_fields: object, note: number, comment?: number) {
    return { note, comment };
  }
}

class Archive extends Controller {
  static readonly GET = op({ rest: Type.String() });
  GET(_fields: object, ...rest: string[]) {
    return { archive: rest };
  }
}

const modules = {
  notes: { Default: Notes, Archive },
  'notes.[id].comments': { Default: Comments },
};

test('a folder [id] puts a resource below an id, and takes its part as the first position', async (t) => {
  const { send } = await createTestClient(modules);
  const jsonOf = async (path: string) => (await send('GET', path)).json;
  t.deepEqual(await jsonOf('/notes/7/comments'), { note: 7 });
  t.deepEqual(await jsonOf('/notes/7/comments/3'), { note: 7, comment: 3 });
  t.is((await send('GET', '/notes/x/comments/3')).status, 404);
  t.is((await send('PUT', '/notes/7/comments/3')).status, 405);
});

test('where the next part names nothing below the id, all is as without the folder', async (t) => {
  const { send } = await createTestClient(modules);
  const jsonOf = async (path: string) => (await send('GET', path)).json;
  t.deepEqual(await jsonOf('/notes'), { more: [] });
  t.deepEqual(await jsonOf('/notes/7'), { note: 7, more: [] });
  t.deepEqual(await jsonOf('/notes/7/likes'), { note: 7, more: ['likes'] });
  t.deepEqual(await jsonOf('/notes/archive/comments'), { archive: ['comments'] });
});

test('descriptions and the list of routes show the id where it stands', async (t) => {
  const { app } = await createTestClient(modules);
  const paths = Object.keys(app.describe()['paths'] as object);
  t.true(paths.includes('/notes/{note}/comments'));
  t.true(paths.includes('/notes/{note}/comments/{comment}'));
});

test('a position without a name has that of its folder', async (t) => {
  class Likes extends Controller {
    static readonly GET = op({ path: [ID, optional(ID)] }, () => []);
  }
  const { app } = await createTestClient({ 'notes.[id].likes': { Default: Likes } });
  t.deepEqual(app.routes.map(toPathText), ['/notes/:id/likes[/:arg2]']);
});
