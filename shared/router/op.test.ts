import test from 'ava';
import Type from 'typebox';
import { type Args, type Fields, isOp, op } from './op.ts';
import { named, optional, part } from './path-part.ts';

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
    [fields: Fields<typeof declared>, number, string | undefined, ...boolean[]]
  > = true;
  const query = op({ query: Type.Object({ limit: Type.Integer() }) });
  const queryAlone: Same<Fields<typeof query>, { limit: number }> = true;
  t.true(fields && args && queryAlone);
});

test('a declaration is told from what looks like one', (t) => {
  t.true(isOp(declared));
  t.false(isOp({ ...JSON.parse(JSON.stringify(declared)) }));
  t.false(isOp(undefined));
});
