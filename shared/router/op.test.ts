import test from 'ava';
import Type from 'typebox';
import { z } from 'zod';
import { Controller } from './controller.ts';
import { open } from './guard.ts';
import { type Args, type Fields, isOp, op } from './op.ts';
import { named, optional, part } from './path-part.ts';
import { createTestClient } from './test-client.ts';

const declared = op({
  path: [part('id', Type.Integer()), optional(named('view'))],
  rest: Type.Boolean(),
  query: Type.Object({ limit: Type.Integer({ default: 5 }) }),
  body: Type.Object({ name: Type.Optional(Type.String()) }),
});

/** Compiles only while the two types are the same. */
type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

test('a declaration types the arguments of its method', (t) => {
  const fields: Same<Fields<typeof declared>, { limit: number } & { name?: string }> = true;
  const args: Same<
    Args<typeof declared>,
    [fields: Fields<typeof declared>, part: number, part?: string, ...rest: boolean[]]
  > = true;
  const query = op({ query: Type.Object({ limit: Type.Integer() }) });
  const queryAlone: Same<Fields<typeof query>, { limit: number }> = true;
  t.true(fields && args && queryAlone);
});

test('a raw body stands behind the fields, and has none of its own', (t) => {
  const raw = op({ raw: true, path: [Type.Integer()], query: Type.Object({ a: Type.String() }) });
  const args: Same<Args<typeof raw>, [fields: Fields<typeof raw>, body: Uint8Array, number]> = true;
  t.true(args);
});

test('a declaration is distinguished from what looks like one', (t) => {
  t.true(isOp(declared));
  t.false(isOp({ ...JSON.parse(JSON.stringify(declared)) }));
  t.false(isOp(undefined));
});

test('a declaration and its method are one, typed by the declaration', async (t) => {
  class Notes extends Controller {
    static readonly GET = op(
      {
        path: [Type.Integer()],
        query: Type.Object({ limit: Type.Integer({ default: 5 }) }),
        returns: { 200: Type.Object({ id: Type.Integer(), next: Type.Integer() }) },
      },
      function (this: Notes, { limit }, id) {
        return { id, next: this.add(id, limit) };
      },
    );
    add(a: number, b: number): number {
      return a + b;
    }
  }
  class Others extends Notes {}
  const client = await createTestClient({ '': { Notes, Others } });
  t.deepEqual((await client.send('GET', '/notes/7?limit=3')).json, { id: 7, next: 10 });
  t.deepEqual((await client.send('GET', '/others/7')).json, { id: 7, next: 12 });
  t.is((await client.send('GET', '/notes/x')).status, 404);
});

/** Compiled, but never called. */
function declareWrongly(): void {
  const ID = Type.Integer();
  // @ts-expect-error there is no such field
  op({ query: Type.Object({ limit: ID }) }, ({ limits }) => limits);
  // @ts-expect-error the field is a number
  op({ query: Type.Object({ limit: ID }) }, ({ limit }) => limit.trim());
  // @ts-expect-error the position is a number
  op({ path: [ID] }, (_fields, id: string) => id);
  // @ts-expect-error one position is declared
  op({ path: [ID] }, (_fields, _id, more) => more);
  // @ts-expect-error an optional position may be missing
  op({ path: [optional(ID)] }, (_fields, id) => id + 1);
  // @ts-expect-error another value is declared
  op({ returns: { 200: Type.Object({ id: ID }) } }, () => ({ name: 'ann' }));
  // @ts-expect-error a declaration does not know this member
  op({ querry: Type.Object({}) }, () => 1);
  // @ts-expect-error a position is a schema of TypeBox
  op({ path: [z.int()] }, () => 1);
  // @ts-expect-error so is one with a name
  op({ path: [part('id', z.int())] }, () => 1);
  // @ts-expect-error and no name alone
  op({ path: ['id'] }, () => 1);
  // @ts-expect-error events come from a generator
  op({ produces: 'text/event-stream' }, () => 5);
  // @ts-expect-error a raw body is not parsed, and has no fields
  op({ raw: true, body: Type.Object({}) });
  // @ts-expect-error nor has a streamed one
  op({ stream: true, body: Type.Object({}) }, () => 1);
  // @ts-expect-error a body is one or the other
  op({ raw: true, stream: true });
  // @ts-expect-error a filter is by what is returned
  op({ filter: true });
  // @ts-expect-error a required position follows an optional one
  op({ path: [optional(ID), part('id', ID)] });
  class Unguarded extends Controller {
    // @ts-expect-error a guard is static: that of an instance would never run
    readonly guard = open();
  }
  new Unguarded(undefined as never);
}

test('a method that contradicts its declaration does not compile', (t) => {
  t.is(declareWrongly.toString().match(/@ts-expect-error/g)?.length, 17);
});

test('the limits of a method hold for its lists and forms', async (t) => {
  class Forms extends Controller {
    static readonly POST = op({
      body: Type.Object(
        {
          a: Type.Optional(Type.Array(Type.String())),
          any: Type.Optional(Type.Any()),
          long: Type.Optional(Type.Array(Type.String(), { maxItems: 5 })),
        },
        { additionalProperties: true },
      ),
      limits: { multipartParts: 2, listItems: 3 },
    });
    POST() {
      return 'taken';
    }
  }
  const { send } = await createTestClient({ '': { Forms } });
  const form = (count: number) => {
    const body = new FormData();
    for (let at = 0; at < count; at += 1) body.append('a', 'x');
    return send('POST', '/forms', { body });
  };
  t.is((await form(2)).json, 'taken');
  t.is((await form(3)).status, 400);
  const four = ['1', '2', '3', '4'];
  for (const body of [{ a: four }, { any: four }, { undeclared: four }])
    t.is((await send('POST', '/forms', { body })).status, 400);
  t.is((await send('POST', '/forms', { body: { long: four, a: ['1'] } })).json, 'taken');
});
