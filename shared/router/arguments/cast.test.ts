import test from 'ava';
import fc from 'fast-check';
import Type from 'typebox';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import type { Plain } from '../schema/json-schema.ts';
import { upload } from '../upload.ts';
import { compileCast } from './cast.ts';
import { createSchemaCompiler } from './schema.ts';

const { compile } = createSchemaCompiler({ sku: (text) => /^[a-z]{2}-[0-9]{4}$/.test(text) });
const accepts = (schema: Plain) => {
  const check = compile(schema);
  return (value: unknown) => check(value).length === 0;
};
const cast = (schema: object, from: 'text' | 'json', value: unknown) =>
  compileCast(schema as Plain, accepts)(value, from);

/** What becomes of a value, and in lines of formats how it is checked. */
testLines(test, new URL('cast.txt', import.meta.url), (given) => {
  const [schema = '', from = '', value = ''] = given.split(/ <- (text|json|check) /);
  if (from === 'check') {
    const [problem] = compile(JSON.parse(schema))(JSON.parse(value));
    return problem?.reason ?? 'right';
  }
  const result = cast(JSON.parse(schema), from as 'text' | 'json', JSON.parse(value));
  return result.ok ? JSON.stringify(result.value) : `${result.at ?? ''} ${result.reason}`.trim();
});

test('every safe integer survives being written', (t) => {
  fc.assert(
    fc.property(fc.maxSafeInteger(), (value) => {
      t.deepEqual(cast(Type.Integer(), 'text', String(value)), { ok: true, value });
    }),
  );
});

test('a reference that names nothing is refused', (t) => {
  t.throws(() => cast(Type.Ref('Nobody'), 'text', 'x'), {
    message: /\$ref Nobody names no schema/,
  });
});

test('a file is taken where one is declared, and nowhere else', (t) => {
  const file = new File(['x'], 'x.txt');
  t.deepEqual(cast(upload(), 'text', file), { ok: true, value: file });
  t.false(cast(upload(), 'text', 'x').ok);
  t.false(cast(Type.String(), 'text', file).ok);
});
