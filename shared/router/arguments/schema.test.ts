import test from 'ava';
import Type from 'typebox';
import { createSchemaCompiler } from './schema.ts';

const compiler = createSchemaCompiler();
const compile = (schema: Type.TSchema) => compiler.compile(schema as never);

test('a function that refines a schema is asked', (t) => {
  const even = Type.Refine(
    Type.Integer(),
    (value) => value % 2 === 0,
    () => 'must be even',
  );
  t.deepEqual(compile(even)(2), []);
  t.deepEqual(compile(Type.Array(even))([2, 3]), [{ at: '/1', reason: 'must be even' }]);
});

test('defaults inside lists, objects, alternatives and references are filled in, as new values each time', async (t) => {
  const tags = Type.Array(Type.String(), { default: [] });
  const either = Type.Union([
    Type.Object({ kind: Type.Literal('a'), tags }),
    Type.Object({ kind: Type.Literal('b'), size: Type.Integer({ default: 4 }) }),
  ]);
  const tree = Type.Cyclic(
    { Node: Type.Object({ tags, kids: Type.Array(Type.Ref('Node'), { default: [] }) }) },
    'Node',
  );
  const complete = compiler.compileDefaults(
    Type.Object({ list: Type.Array(Type.Object({ tags })), either, tree }) as never,
  );
  await compiler.load();
  const make = () => complete?.({ list: [{}], either: { kind: 'b' }, tree: { kids: [{}] } });
  (make() as { list: { tags: string[] }[] }).list[0]?.tags.push('mine');
  t.deepEqual(make(), {
    list: [{ tags: [] }],
    either: { kind: 'b', size: 4 },
    tree: { tags: [], kids: [{ tags: [], kids: [] }] },
  });
});

test('an unknown keyword, and a pattern that is too slow, are refused by name', (t) => {
  t.throws(() => compile({ type: 'string', maxLenght: 3 } as Type.TSchema), {
    message: 'unknown keyword "maxLenght"',
  });
  t.throws(() => compile(Type.String({ pattern: '^(a+)+$' })), {
    message: /the pattern \^\(a\+\)\+\$ can take exponential time/,
  });
  t.throws(() => compile(Type.Record(Type.String({ pattern: '^(a+)+$' }), Type.Any())), {
    message: /can take exponential time/,
  });
});

test('a text that a pattern is tried on is bounded, by its schema or by 256 characters', (t) => {
  const check = compile(Type.String({ pattern: '^a*a*a*$' }));
  t.deepEqual(check('a'.repeat(256)), []);
  t.is(check('a'.repeat(257)).length, 1);
  t.deepEqual(compile(Type.String({ pattern: '^a*$', maxLength: 999 }))('a'.repeat(999)), []);
  const named = compile(Type.Record(Type.String({ pattern: '^a*a*$' }), Type.Null()));
  t.deepEqual(named({ ['a'.repeat(256)]: null }), []);
  t.true(named({ ['a'.repeat(257)]: null }).length > 0);
  t.deepEqual(compile(Type.Record(Type.String(), Type.Null()))({ ['a'.repeat(999)]: null }), []);
  const version = Type.TemplateLiteral([Type.Literal('v'), Type.Number(), Type.Literal('-x')]);
  t.deepEqual(compile(version)('v1-x'), []);
});
