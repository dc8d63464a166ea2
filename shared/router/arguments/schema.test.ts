import test from 'ava';
import Type from 'typebox';
import { createSchemaCompiler } from './schema.ts';

const compiler = createSchemaCompiler({ sku: (text) => /^[a-z]{2}-[0-9]{4}$/.test(text) });
const compile = (schema: Type.TSchema) => compiler.compile(schema as never);

for (const [format, right, wrong] of [
  ['date', '2026-01-31', '31.1.2026'],
  ['date-time', '2026-01-31T10:00:00Z', '2026-01-31 10:00'],
  ['email', 'ann@example.com', 'ann@'],
  ['ipv4', '192.0.2.1', '192.0.2.256'],
  ['ipv6', '2001:db8::1', '2001:db8:::1'],
  ['uri', 'https://example.com/a?b=c', 'example.com'],
  ['uuid', '3f2504e0-4f89-41d3-9a0c-0305e82c3301', '3f2504e0'],
  ['sku', 'ab-1234', 'ab-12'],
] as const) {
  test(`the format ${format} is checked`, (t) => {
    const check = compile(Type.String({ format }));
    t.deepEqual(check(right), []);
    t.deepEqual(check(wrong), [{ at: '', reason: `must match format "${format}"` }]);
  });
}

test('a date is one of the calendar, and a time one of the day', (t) => {
  const date = compile(Type.String({ format: 'date' }));
  for (const text of ['2024-99-99', '2023-02-29', '2024-04-31', '2024-00-10']) {
    t.is(date(text).length, 1, text);
  }
  t.deepEqual(date('2024-02-29'), []);
  const time = compile(Type.String({ format: 'date-time' }));
  const wrong = ['2024-02-30T10:00:00Z', '2024-02-20T25:00:00Z', '2024-02-20T10:00:00+99:00'];
  for (const text of [...wrong, '2024-02-20T10:00:00', '2024-02-20T10:00:00Z[Europe/Paris]']) {
    t.is(time(text).length, 1, text);
  }
  for (const text of ['2024-02-29T10:00:00.5+02:00', '2016-12-31t23:59:60z']) {
    t.deepEqual(time(text), [], text);
  }
});

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
