import test from 'ava';
import fc from 'fast-check';
import Type from 'typebox';
import type { Plain } from '../schema/json-schema.ts';
import { upload } from '../upload.ts';
import { compileCast } from './cast.ts';
import { createSchemaCompiler } from './schema.ts';

const { compile } = createSchemaCompiler();
const accepts = (schema: Plain) => {
  const check = compile(schema);
  return (value: unknown) => check(value).length === 0;
};
const text = (schema: Type.TSchema, value: unknown) =>
  compileCast(schema as never, accepts)(value, 'text');
const json = (schema: Type.TSchema, value: unknown) =>
  compileCast(schema as never, accepts)(value, 'json');

test('integers are decimal and safe; every safe integer survives being written', (t) => {
  fc.assert(
    fc.property(fc.maxSafeInteger(), (value) => {
      t.deepEqual(text(Type.Integer(), String(value)), { ok: true, value });
    }),
  );
  for (const bad of [
    '',
    ' 5',
    '5 ',
    '4.0',
    '0x10',
    '1_000',
    '+4',
    '1e3',
    '9007199254740993',
    'a',
  ]) {
    t.deepEqual(text(Type.Integer(), bad), { ok: false, reason: 'must be an integer' });
  }
  t.false(json(Type.Integer(), 4.5).ok);
  t.deepEqual(json(Type.Integer(), '4'), { ok: true, value: 4 });
});

test('numbers are finite and decimal', (t) => {
  t.deepEqual(text(Type.Number(), '-1.5e3'), { ok: true, value: -1500 });
  for (const bad of ['nan', 'NaN', 'Infinity', '1e999', '0x1', '', '1,5']) {
    t.deepEqual(text(Type.Number(), bad), { ok: false, reason: 'must be a number' });
  }
});

test('booleans are a closed set of words in any case', (t) => {
  for (const word of ['1', 'true', 'TRUE', 'yes', 't']) {
    t.deepEqual(text(Type.Boolean(), word), { ok: true, value: true });
  }
  for (const word of ['', '0', 'false', 'No', 'f']) {
    t.deepEqual(text(Type.Boolean(), word), { ok: true, value: false });
  }
  t.false(text(Type.Boolean(), 'maybe').ok);
  t.deepEqual(json(Type.Boolean(), 1), { ok: true, value: true });
});

test('a scalar given twice is refused, as are objects and null in place of one', (t) => {
  t.deepEqual(text(Type.String(), ['a', 'b']), { ok: false, reason: 'is given more than once' });
  t.deepEqual(json(Type.String(), ['a']), { ok: false, reason: 'must be one value' });
  t.deepEqual(json(Type.String(), { a: 1 }), { ok: false, reason: 'must be a text' });
  t.deepEqual(json(Type.Integer(), null), { ok: false, reason: 'must be an integer' });
  t.deepEqual(json(Type.String(), 5), { ok: true, value: '5' });
});

test('a list is repeated names, never commas, and no longer than its schema allows', (t) => {
  const list = Type.Array(Type.String());
  t.deepEqual(text(list, ['a,b', 'c']), { ok: true, value: ['a,b', 'c'] });
  t.deepEqual(text(list, 'a'), { ok: true, value: ['a'] });
  t.deepEqual(json(list, 'a,b'), { ok: true, value: ['a,b'] });
  t.deepEqual(text(Type.Array(Type.Integer()), ['1', 'x']), {
    ok: false,
    at: '/1',
    reason: 'must be an integer',
  });
  const refused = { ok: false, reason: 'has more than 3 items' };
  const three = Type.Array(Type.String(), { maxItems: 3 });
  t.deepEqual(text(three, ['1', '2', '3', '4']), refused);
  t.deepEqual(json(three, [1, 2, 3, 4]), refused);
  t.true(json(three, [1, 2, 3]).ok);
});

test('choices keep the type of the value that is spelled', (t) => {
  const choice = Type.Union([Type.Literal('soft'), Type.Literal(5), Type.Literal(true)]);
  t.deepEqual(text(choice, '5'), { ok: true, value: 5 });
  t.deepEqual(text(choice, 'true'), { ok: true, value: true });
  t.deepEqual(text(choice, 'odd'), { ok: false, reason: 'must be soft or 5 or true' });
  t.deepEqual(text(Type.Enum(['a', 'b']), 'b'), { ok: true, value: 'b' });
});

test('of a union the first branch that fits is taken', (t) => {
  const schema = Type.Union([Type.Integer(), Type.Null(), Type.String()]);
  t.deepEqual(text(schema, '7'), { ok: true, value: 7 });
  t.deepEqual(text(schema, 'seven'), { ok: true, value: 'seven' });
  t.deepEqual(json(schema, null), { ok: true, value: null });
  const large = Type.Union([Type.Integer({ minimum: 10 }), Type.String()]);
  t.deepEqual(text(large, '10'), { ok: true, value: 10 });
  t.deepEqual(text(large, '5'), { ok: true, value: '5' }, 'the first that takes it');
});

test('fields of a form are converted as the alternative that takes them declares', (t) => {
  const shape = Type.Union([
    Type.Object({ kind: Type.Literal('round'), radius: Type.Number() }),
    Type.Object({ kind: Type.Literal('flat'), sides: Type.Array(Type.Integer()) }),
  ]);
  t.deepEqual(text(shape, { kind: 'round', radius: '1.5' }), {
    ok: true,
    value: { kind: 'round', radius: 1.5 },
  });
  t.deepEqual(text(shape, { kind: 'flat', sides: '3' }), {
    ok: true,
    value: { kind: 'flat', sides: [3] },
  });
  const both = Type.Intersect([
    Type.Object({ a: Type.Integer() }),
    Type.Object({ b: Type.Boolean() }),
  ]);
  t.deepEqual(text(both, { a: '1', b: 'yes' }), { ok: true, value: { a: 1, b: true } });
  t.throws(() => text(Type.Ref('Nobody'), 'x'), { message: /\$ref Nobody names no schema/ });
});

test('a file is taken where one is declared, and nowhere else', (t) => {
  const file = new File(['x'], 'x.txt');
  t.deepEqual(text(upload(), file), { ok: true, value: file });
  t.false(text(upload(), 'x').ok);
  t.false(text(Type.String(), file).ok);
});
