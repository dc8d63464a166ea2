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
