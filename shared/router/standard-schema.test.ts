import { toStandardJsonSchema } from '@valibot/to-json-schema';
import test from 'ava';
import Type from 'typebox';
import * as v from 'valibot';
import { z } from 'zod';
import { Controller } from './controller.ts';
import { op } from './op.ts';
import { createTestClient } from './test-client.ts';

class Typebox extends Controller {
  static readonly GET = op(
    {
      query: Type.Object({
        limit: Type.Integer({ minimum: 1, default: 5 }),
        tags: Type.Optional(Type.Array(Type.String())),
      }),
    },
    ({ limit, tags }) => ({ next: limit + 1, tags: tags ?? [] }),
  );
}

class Zod extends Controller {
  static readonly GET = op(
    { query: z.object({ limit: z.int().min(1).default(5), tags: z.array(z.string()).optional() }) },
    ({ limit, tags }) => ({ next: limit + 1, tags: tags ?? [] }),
  );
}

class Valibot extends Controller {
  static readonly GET = op(
    {
      query: toStandardJsonSchema(
        v.object({
          limit: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), 5),
          tags: v.optional(v.array(v.string())),
        }),
      ),
    },
    ({ limit, tags }) => ({ next: limit + 1, tags: tags ?? [] }),
  );
}

const modules = { '': { Typebox, Zod, Valibot } };

test('schemas of TypeBox, zod and valibot convert, check and describe alike', async (t) => {
  const { app, send } = await createTestClient(modules);
  const paths = app.describe()['paths'] as Record<string, { get: { parameters: object[] } }>;
  for (const path of ['/typebox', '/zod', '/valibot']) {
    t.deepEqual((await send('GET', path)).json, { next: 6, tags: [] });
    t.deepEqual((await send('GET', `${path}?limit=7&tags=a&tags=b`)).json, {
      next: 8,
      tags: ['a', 'b'],
    });
    t.like((await send('GET', `${path}?limit=x`)).json, {
      status: 400,
      errors: [{ in: 'query', name: 'limit', reason: 'must be an integer' }],
    });
    t.like((await send('GET', `${path}?limit=0`)).json, {
      status: 400,
      errors: [{ in: 'query', name: 'limit' }],
    });
    t.is((await send('GET', `${path}?more=1`)).status, 400);
    t.like(paths[path]?.get.parameters, [{ name: 'limit', in: 'query', schema: { default: 5 } }]);
  }
});

test('a body converted by another library reaches the method, and the library checks its own formats', async (t) => {
  class Login extends Controller {
    static readonly POST = op(
      { body: z.object({ email: z.email().transform((text) => text.toLowerCase()) }) },
      ({ email }) => email,
    );
  }
  class Scans extends Controller {
    static readonly POST = op(
      { body: z.object({ file: z.file().max(3) }) },
      ({ file }) => file.name,
    );
  }
  const { send, app } = await createTestClient({ '': { Login, Scans } });
  for (const text of ['tea', 'coffee']) {
    const body = new FormData();
    body.append('file', new File([text], 'a.txt'));
    t.is((await send('POST', '/scans', { body })).status, text === 'tea' ? 200 : 400);
  }
  t.true(JSON.stringify(app.describe()).includes('multipart/form-data'));
  t.is(
    (await send('POST', '/login', { body: { email: 'Ann@Example.com' } })).json,
    'ann@example.com',
  );
  t.like((await send('POST', '/login', { body: { email: 'ann' } })).json, {
    status: 400,
    errors: [{ in: 'body', name: 'email' }],
  });
});

test('failed conversions and refusals of the library are reported together, each field once', async (t) => {
  class Join extends Controller {
    static readonly POST = op(
      { body: z.object({ age: z.int(), name: z.string().min(3), mail: z.email() }) },
      ({ name }) => name,
    );
  }
  const { send } = await createTestClient({ '': { Join } });
  const { json } = await send('POST', '/join', { body: { age: 'old', name: 'a' } });
  const { errors } = json as { errors: { name: string; reason: string }[] };
  t.deepEqual(errors.map(({ name }) => name).sort(), ['age', 'mail', 'name']);
  t.is(errors.find(({ name }) => name === 'age')?.reason, 'must be an integer');
  t.is(errors.find(({ name }) => name === 'mail')?.reason, 'is missing');
});

test('a library decides on fields that its schema does not name, and what it makes of the whole is the argument', async (t) => {
  const a = z.int();
  const anyJson: z.ZodType = z.lazy(() =>
    z.union([z.string(), z.array(anyJson), z.record(z.string(), anyJson)]),
  );
  const loose = toStandardJsonSchema(v.looseObject({ a: v.number() }));
  const least = v.check(({ a }: { a: number }) => a > 5, 'too small');
  const checked = toStandardJsonSchema(v.pipe(v.object({ a: v.number() }), least));
  const limited = z.object({ a }).catchall(a.refine((one) => one < 5));
  class Loose extends Controller {
    static readonly POST = op({ body: loose }, (fields) => fields);
    static readonly PUT = op({ body: z.object({ a }) }, (fields) => fields);
    static readonly PATCH = op({ body: limited }, (fields) => fields);
    static readonly DELETE = op({ body: z.object({ anyJson }) }, (fields) => fields);
  }
  const renamed = z.object({ a }).transform((one) => ({ b: one.a }));
  const cut = z.array(a).transform(([first]) => ({ first }));
  const query = z.object({ q: a.optional() });
  const listed = z.object({ a }).transform((one) => [one.a]);
  class Made extends Controller {
    static readonly POST = op({ body: renamed }, ({ b, ...none }) => [b, none]);
    static readonly PUT = op({ body: cut }, (_fields, { first }) => first);
    static readonly PATCH = op({ query, body: listed }, ({ 0: first, q }) => [first, q]);
    static readonly DELETE = op({ body: checked }, (fields) => fields);
  }
  const { send } = await createTestClient({ '': { Loose, Made } });
  for (const [method, path, body, expected] of [
    ['POST', '/loose', { a: 1, b: 'x' }, { a: 1, b: 'x' }],
    ['PUT', '/loose', { a: 1, b: 'x' }, { a: 1 }],
    ['PUT', '/loose?b=1', { a: 1 }, { status: 400 }],
    ['PATCH', '/loose', { a: 1, b: 4 }, { a: 1, b: 4 }],
    ['PATCH', '/loose', { a: 1, b: 5 }, { status: 400, errors: [{ in: 'body', name: 'b' }] }],
    ['DELETE', '/loose', { anyJson: { b: ['x'] } }, { anyJson: { b: ['x'] } }],
    ['DELETE', '/loose', { anyJson: [null] }, { status: 400 }],
    ['POST', '/made', { a: 1 }, [1, {}]],
    ['PUT', '/made', [7], 7],
    ['PATCH', '/made?q=3', { a: 7 }, [7, 3]],
    ['DELETE', '/made', { a: 5 }, { status: 400, errors: [{ reason: 'too small' }] }],
  ] as const) {
    t.like({ json: (await send(method, path, { body })).json }, { json: expected });
  }
});
