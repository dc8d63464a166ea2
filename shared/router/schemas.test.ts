// Schemas that are more than fields: named, recursive, alternatives, lists; declared with TypeBox, zod and valibot
// alike.
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import test from 'ava';
import * as v from 'valibot';
import { z } from 'zod';
import { client } from './client/client.ts';
import { Controller, named, type OpSpec, op, optional, Type, upload } from './index.ts';
import { createTestClient } from './test-client.ts';

const echo = (fields: unknown) => ({ fields });

const tree = Type.Cyclic(
  {
    Node: Type.Object({ id: Type.Integer(), kids: Type.Array(Type.Ref('Node'), { default: [] }) }),
  },
  'Node',
);
const toLeaves = (Leaf: Type.TSchema) =>
  Type.Cyclic({ Branch: Type.Object({ leaf: Type.Optional(Type.Ref('Leaf')) }), Leaf }, 'Branch');
interface ZodNode {
  id: number;
  kids?: ZodNode[] | undefined;
}
const zodTree: z.ZodType<ZodNode> = z.object({
  id: z.int(),
  get kids() {
    return z.array(zodTree).optional();
  },
});
interface ValibotNode {
  id: number;
  kids?: ValibotNode[] | undefined;
}
const valibotTree: v.GenericSchema<ValibotNode> = v.strictObject({
  id: v.pipe(v.number(), v.integer()),
  kids: v.optional(v.array(v.lazy(() => valibotTree))),
});

type Body = NonNullable<OpSpec['body']>;
const toClass = (complete: Body, holding = complete) =>
  class extends Controller {
    static readonly POST = op({ body: complete }, echo);
    static readonly PUT = op({ body: holding }, echo);
  };
const ofValibot = v.strictObject({ tree: valibotTree, name: v.string() });
const trees = {
  TypeboxTree: toClass(tree, Type.Object({ tree, name: Type.String() })),
  TypeboxLeaves: toClass(toLeaves(Type.Integer()), toLeaves(Type.Undefined())),
  ZodTree: toClass(zodTree, z.object({ tree: zodTree, name: z.string() })),
  ValibotTree: toClass(toStandardJsonSchema(valibotTree), toStandardJsonSchema(ofValibot)),
};

test('a schema that refers to itself is a whole body, and a field', async (t) => {
  const { send, app } = await createTestClient({ '': trees });
  const deep = { id: 1, kids: [{ id: 2, kids: [{ id: 3, kids: [] }] }] };
  const wrong = { id: 1, kids: [{ id: 'x', kids: [] }] };
  for (const path of ['/typebox-tree', '/zod-tree', '/valibot-tree']) {
    t.deepEqual((await send('POST', path, { body: deep })).json, { fields: deep }, path);
    const body = { tree: deep, name: 'a' };
    t.deepEqual((await send('PUT', path, { body })).json, { fields: body }, path);
    t.like((await send('POST', path, { body: wrong })).json, {
      status: 400,
      errors: [{ in: 'body', name: 'kids/0/id' }],
    });
    t.like((await send('PUT', path, { body: { name: 'a', tree: wrong } })).json, {
      status: 400,
      errors: [{ in: 'body', name: 'tree/kids/0/id' }],
    });
    for (const other of [[deep], 5, undefined, {}]) {
      t.is((await send('POST', path, { body: other })).status, 400, `${path} ${other}`);
    }
    t.is((await send('POST', `${path}?more=1`, { body: deep })).status, 400, 'an unknown query');
  }
  const more = { id: 1, kids: [{ id: 2, kids: [], more: 1 }] };
  t.like((await send('POST', '/typebox-tree', { body: more })).json, {
    errors: [{ name: 'kids/0/more', reason: 'is unknown' }],
  });
  const described = JSON.stringify(app.describe());
  t.is(described.match(/"leaf":/g)?.length, 2, 'models of one name whose references differ');
  for (const [, ref] of described.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)) {
    const { schemas } = app.describe()['components'] as { schemas: Record<string, object> };
    t.true(Object.keys(schemas[ref ?? ''] ?? {}).length > 0, ref);
  }
  t.false(/"undefined"|"\$defs"|"\$ref":"(?!#\/components\/)/.test(described));
});

const shapes = {
  typebox: Type.Union([
    Type.Object({ kind: Type.Literal('round'), radius: Type.Number() }),
    Type.Object({ kind: Type.Literal('flat'), sides: Type.Integer({ default: 4 }) }),
  ]),
  zod: z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('round'), radius: z.number() }),
    z.strictObject({ kind: z.literal('flat'), sides: z.int().default(4) }),
  ]),
  valibot: toStandardJsonSchema(
    v.variant('kind', [
      v.strictObject({ kind: v.literal('round'), radius: v.number() }),
      v.strictObject({ kind: v.literal('flat'), sides: v.optional(v.number(), 4) }),
    ]),
  ),
};

test('alternatives are a whole body, of JSON and of a form, with the defaults of the one that applies', async (t) => {
  const [Typebox, Zod, Valibot] = Object.values(shapes).map((one) => toClass(one));
  const { send, app } = await createTestClient({ '': { Typebox, Zod, Valibot } });
  for (const path of ['/typebox', '/zod', '/valibot']) {
    const round = { kind: 'round', radius: 1.5 };
    t.deepEqual((await send('POST', path, { body: round })).json, { fields: round }, path);
    const form = new URLSearchParams('kind=round&radius=1.5');
    t.deepEqual((await send('POST', path, { body: form })).json, { fields: round }, path);
    t.deepEqual((await send('POST', path, { body: { kind: 'flat' } })).json, {
      fields: { kind: 'flat', sides: 4 },
    });
    for (const wrong of [{ kind: 'odd' }, { kind: 'round', sides: 1 }, { ...round, more: 1 }]) {
      t.is((await send('POST', path, { body: wrong })).status, 400, `${path} ${wrong.kind}`);
    }
  }
  const { paths } = app.describe() as { paths: Record<string, { post: { requestBody: object } }> };
  for (const { post } of Object.values(paths))
    t.regex(JSON.stringify(post.requestBody), /anyOf|oneOf/);
});

test('alternatives with a file are a form in the document, and taken from one', async (t) => {
  class Files extends Controller {
    static readonly POST = op(
      { body: Type.Union([Type.Object({ file: upload() }), Type.Object({ url: Type.String() })]) },
      (fields) => ('file' in fields ? fields.file.name : fields.url),
    );
  }
  const { send, app } = await createTestClient({ '': { Files } });
  const body = new FormData();
  body.append('file', new File(['x'], 'x.txt'));
  t.is((await send('POST', '/files', { body })).json, 'x.txt');
  t.is((await send('POST', '/files', { body: { url: 'u' } })).json, 'u');
  const { paths } = app.describe() as {
    paths: Record<string, { post: { requestBody: { content: object } } }>;
  };
  t.deepEqual(Object.keys(paths['/files']?.post.requestBody.content ?? {}), [
    'multipart/form-data',
  ]);
});

test('a list, or another value, is an argument behind the fields; an object stays a field', async (t) => {
  const item = Type.Object({ id: Type.Integer() }, { $id: 'Item' });
  class Lists extends Controller {
    static readonly POST = op(
      {
        path: [Type.String()],
        query: Type.Object({ dry: Type.Boolean({ default: false }) }),
        body: Type.Array(item, { maxItems: 3 }),
      },
      ({ dry }, items, name) => ({ dry, ids: items.map(({ id }) => id), name }),
    );
    static readonly PUT = op(
      { body: z.array(z.object({ id: z.int() })) },
      (_fields, items) => items.length,
    );
    static readonly PATCH = op(
      { body: Type.Union([Type.String(), Type.Array(item)]) },
      (_fields, value) => value,
    );
  }
  const { send, app } = await createTestClient({ '': { Lists } });
  t.deepEqual((await send('POST', '/lists/a?dry', { body: [{ id: 1 }, { id: 2 }] })).json, {
    dry: true,
    ids: [1, 2],
    name: 'a',
  });
  t.like((await send('POST', '/lists/a', { body: [{ id: 1 }, { id: 'x' }] })).json, {
    errors: [{ in: 'body', name: '1/id' }],
  });
  t.is((await send('POST', '/lists/a', { body: [1, 2, 3, 4].map((id) => ({ id })) })).status, 400);
  t.is((await send('POST', '/lists/a', { body: { id: 1 } })).status, 400);
  t.is((await send('PUT', '/lists', { body: [{ id: 1 }] })).json, 1);
  t.is((await send('PUT', '/lists', { body: [{ id: 1.5 }] })).status, 400);
  t.is((await send('PATCH', '/lists', { body: [{ id: 1 }] })).status, 200);
  type Modules = { '': { Lists: typeof Lists } };
  const { Lists: calls } = client<Modules>('http://local', { fetch: app.fetch });
  const answer = await calls.POST({ dry: true }, [{ id: 7 }], 'b');
  t.deepEqual(answer.ok && answer.value, { dry: true, ids: [7], name: 'b' });
});

test('a model has its name once in the document, and what is data there keeps its names', async (t) => {
  const user = Type.Object({ name: Type.String() }, { $id: 'User' });
  const zodUser = z.object({ age: z.int() }).meta({ id: 'Aged' });
  const odd = Type.Object({
    items: Type.String({ default: 'x' }),
    additionalItems: Type.Integer(),
    $id: Type.Optional(Type.String()),
    $ref: Type.Optional(Type.String()),
    explode: Type.Optional(Type.Boolean()),
    data: Type.Optional(Type.Unknown({ examples: [{ items: [1], 'x-upload': true, $ref: 'a' }] })),
  });
  class Users extends Controller {
    static readonly POST = op({ body: user, returns: { 200: user } }, ({ name }) => ({ name }));
    static readonly PUT = op(
      { body: Type.Object({ one: user, other: Type.Optional(user) }) },
      echo,
    );
    static readonly PATCH = op({ body: zodUser }, echo);
  }
  class Odd extends Controller {
    static readonly POST = op({ body: odd }, echo);
  }
  const { app, send } = await createTestClient({ '': { Users, Odd } });
  const { paths, components } = app.describe() as unknown as {
    paths: Record<string, Record<string, object>>;
    components: { schemas: Record<string, { properties: object }> };
  };
  t.deepEqual(Object.keys(components.schemas), ['Problem', 'Aged', 'User']);
  t.is(JSON.stringify(paths['/users']).match(/schemas\/User"/g)?.length, 7);
  const post = JSON.stringify(paths['/odd']?.['post']);
  t.regex(post, /"properties":\{"items":\{[^}]*"default":"x"/);
  t.regex(
    post,
    /"\$id":\{"type":"string"\},"\$ref":\{"type":"string"\},"explode":\{"type":"boolean"\}/,
  );
  t.regex(post, /"examples":\[\{"items":\[1\],"x-upload":true,"\$ref":"a"\}\]/);
  const body = { items: 'a', additionalItems: 1, $ref: 'b' };
  t.deepEqual((await send('POST', '/odd', { body })).json, { fields: body });
  t.deepEqual((await send('PATCH', '/users', { body: { age: 3 } })).json, { fields: { age: 3 } });
});

test('a text that a pattern of another library is tried on is bounded, in alternatives too', async (t) => {
  class Slugs extends Controller {
    static readonly POST = op(
      {
        body: z.object({
          slug: z.string().regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/),
          host: z.hostname().optional(),
          either: z.union([z.object({ a: z.string().regex(/a*a*a*b/) }), z.string()]).optional(),
          free: z.string().optional(),
          long: z.string().regex(/^a*$/).max(2_000).optional(),
        }),
      },
      () => 'right',
    );
  }
  const { send } = await createTestClient({ '': { Slugs } });
  const post = (body: object) => send('POST', '/slugs', { body });
  const right = {
    slug: 'a-b-c',
    host: 'a.example',
    free: 'x'.repeat(5_000),
    long: 'a'.repeat(2_000),
  };
  t.is((await post(right)).json, 'right');
  t.like((await post({ slug: 'a'.repeat(257) })).json, { errors: [{ in: 'body', name: 'slug' }] });
  t.like((await post({ slug: 'a', either: { a: 'a'.repeat(300) } })).json, {
    errors: [{ in: 'body', name: 'either/a' }],
  });
});

test('a list is repeated names; it has commas where its field declares them, and an encoded one is data', async (t) => {
  class Tags extends Controller {
    static readonly GET = op(
      {
        query: Type.Object({
          tag: Type.Array(Type.String(), { default: [] }),
          id: Type.Array(Type.Integer(), { explode: false, default: [] }),
          word: Type.Array(Type.String(), { explode: false, default: [] }),
          all: Type.Union([Type.Boolean(), Type.Null()], { default: false }),
          on: Type.Array(Type.Boolean(), { default: [] }),
          text: Type.String({ default: '-' }),
        }),
      },
      (fields) => fields,
    );
  }
  class Zod extends Controller {
    static readonly GET = op(
      {
        path: [optional(named('dry', Type.Boolean()))],
        query: z.object({ id: z.array(z.int()).meta({ explode: false }) }).catchall(z.boolean()),
      },
      ({ id, ...others }, dry) => [...id, dry, others],
    );
  }
  const { send, app } = await createTestClient({ '': { Tags, Zod } });
  for (const [query, expected] of [
    ['tag=a,b&tag=c', { tag: ['a,b', 'c'] }],
    ['id=1,2&id=3', { id: [1, 2, 3] }],
    ['word=a%2Cb,c', { word: ['a,b', 'c'] }],
    ['all', { all: true }],
    ['all=', { all: false }],
    ['on&on=no', { on: [true, false] }],
    ['text', { text: '' }],
  ] as const) {
    t.like((await send('GET', `/tags?${query}`)).json, expected, query);
  }
  t.is((await send('GET', '/tags?id=1%2C2')).status, 400);
  t.is((await send('GET', `/tags?id=${'1,'.repeat(2_000)}`)).status, 400);
  t.deepEqual((await send('GET', '/zod?id=1,2&dry&more')).json, [1, 2, true, { more: true }]);
  const { paths } = app.describe() as {
    paths: Record<string, { get: { parameters: { name: string; explode?: boolean }[] } }>;
  };
  const explodes = paths['/tags']?.get.parameters.map(({ name, explode }) => [name, explode]);
  t.deepEqual(explodes?.slice(0, 3), [
    ['tag', undefined],
    ['id', false],
    ['word', false],
  ]);
  t.like(paths['/zod']?.get.parameters[1], { name: 'id', style: 'form', explode: false });
});

test('filter sends only the fields that returns declares, and nothing for an undeclared status', async (t) => {
  const user = Type.Object({
    name: Type.String(),
    tags: Type.Optional(Type.Array(Type.Object({ id: Type.Integer() }))),
  });
  const secret = { name: 'ann', hash: 'x', tags: [{ id: 1, hash: 'x' }], at: new Date(0) };
  class Users extends Controller {
    static readonly GET = op({ returns: { 200: user }, filter: true }, () => secret);
    static readonly PUT = op({ returns: { 200: Type.Array(user) }, filter: true });
    static readonly POST = op({ returns: { 200: user }, filter: true });
    static readonly PATCH = op({ returns: {}, filter: true }, () => Response.json(secret));
    static readonly DELETE = op(
      { returns: { 200: z.object({ name: z.string() }) }, filter: true },
      () => secret,
    );
    *PUT() {
      yield secret;
    }
    POST() {
      this.response.status = 201;
      return secret;
    }
  }
  const { send, reports } = await createTestClient({ '': { Users } });
  const sent = { name: 'ann', tags: [{ id: 1 }] };
  t.deepEqual((await send('GET', '/users')).json, sent);
  t.deepEqual((await send('PUT', '/users')).json, [sent]);
  t.deepEqual((await send('DELETE', '/users')).json, { name: 'ann' });
  t.is((await send('POST', '/users')).status, 500);
  t.is((await send('PATCH', '/users')).status, 500, 'a Response has no fields to choose from');
  t.regex(String(reports[0]?.error), /returns declares nothing for 201/);
});
