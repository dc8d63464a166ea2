import test from 'ava';
import Type from 'typebox';
import { closed } from '../schema/json-schema.ts';
import { createSchemaCompiler } from './schema.ts';

const compiler = createSchemaCompiler();
const compile = (schema: Type.TSchema) => compiler.compile(schema as never);
const name = Type.Object({ name: Type.String() });
const unknown = (at: string) => [{ at, reason: 'is unknown' }];

test('an object takes no field that it does not declare, however deep it is', (t) => {
  const check = compile(
    closed(
      Type.Object({
        one: name,
        many: Type.Array(name),
        named: Type.Record(Type.String(), name),
        either: Type.Union([name, Type.Null()]),
      }),
    ),
  );
  const right = { one: { name: 'a' }, many: [{ name: 'b' }], named: { x: { name: 'c' } } };
  t.deepEqual(check({ ...right, either: null }), []);
  t.deepEqual(check({ ...right, either: { name: 'd' } }), []);
  const more = { name: 'a', admin: true };
  t.deepEqual(check({ ...right, either: null, one: more }), unknown('/one/admin'));
  t.deepEqual(check({ ...right, either: null, many: [more] }), unknown('/many/0/admin'));
  t.deepEqual(check({ ...right, either: null, named: { x: more } }), unknown('/named/x/admin'));
  t.is(check({ ...right, either: more })[0]?.at, '/either/admin');
});

test('a schema that declares which further fields there may be is left as it is', (t) => {
  const open = Type.Object({ name: Type.String() }, { additionalProperties: true });
  t.deepEqual(compile(closed(open))({ name: 'a', more: 1 }), []);
  const numbers = Type.Object({}, { additionalProperties: Type.Integer() });
  t.deepEqual(compile(closed(numbers))({ more: 1 }), []);
  t.is(compile(closed(numbers))({ more: 'x' }).length, 1);
});

test('schemas that declare together what an object has take what one of them declares, and nothing else', (t) => {
  const age = Type.Object({ age: Type.Integer() });
  const either = { ...name, anyOf: [{ required: ['age'], properties: { age: {} } }] };
  const named = { $defs: { Name: name }, allOf: [{ $ref: '#/$defs/Name' }, { required: ['age'] }] };
  const both = Type.Intersect([name, age]);
  const nested = Type.Intersect([Type.Intersect([name]), Type.Union([age, Type.Object({})])]);
  for (const schema of [both, nested, either as Type.TSchema, named as Type.TSchema]) {
    const check = compile(closed(schema));
    t.deepEqual(check({ name: 'a', age: 1 }), []);
    t.deepEqual(check({ name: 'a', age: 1, admin: true }), unknown('/admin'));
    const inside = compile(closed(Type.Object({ one: schema })));
    t.deepEqual(inside({ one: { name: 'a', age: 1, admin: true } }), unknown('/one/admin'));
  }
  const open = Type.Intersect([name, Type.Object({}, { additionalProperties: true })]);
  t.deepEqual(compile(closed(open))({ name: 'a', more: 1 }), []);
  const alone = {
    ...named,
    allOf: [...named.allOf, { properties: { age: { $ref: '#/$defs/Name' } } }],
  };
  const check = compile(closed(alone as Type.TSchema));
  t.deepEqual(check({ name: 'a', age: { name: 'b', admin: true } }), unknown('/age/admin'));
});

test('what a reference names is closed, too', (t) => {
  const tree = Type.Cyclic({ Node: Type.Object({ kids: Type.Array(Type.Ref('Node')) }) }, 'Node');
  const check = compile(closed(tree));
  t.deepEqual(check({ kids: [{ kids: [] }] }), []);
  t.deepEqual(check({ kids: [{ kids: [], more: 1 }] }), unknown('/kids/0/more'));
});
