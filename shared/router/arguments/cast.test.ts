import test from 'ava';
import fc from 'fast-check';
import Type from 'typebox';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import { closed, type Plain } from '../schema/json-schema.ts';
import { upload } from '../upload.ts';
import { compileCast } from './cast.ts';
import { createSchemaCompiler } from './schema.ts';

const { compile, compileFilter, load } = createSchemaCompiler({
  sku: (text) => /^[a-z]{2}-[0-9]{4}$/.test(text),
});
const accepts = (schema: Plain) => {
  const check = compile(schema);
  return (value: unknown) => check(value).length === 0;
};
const cast = (schema: object, from: 'text' | 'json', value: unknown) =>
  compileCast(schema as Plain, accepts)(value, from);

compileFilter({});
await load();

/** The converted value, or its problem. */
testLines(test, new URL('cast.txt', import.meta.url), (given) => {
  const [text = '', how = '', value = ''] = given.split(/ <- (text|json|check|closed|filter) /);
  const schema: Plain = text.startsWith('{"') ? JSON.parse(text) : Type.Script(text);
  const parsed: unknown = JSON.parse(value);
  try {
    if (how === 'filter') return JSON.stringify(compileFilter(schema)(parsed));
    if (how === 'text' || how === 'json') {
      const result = cast(schema, how, parsed);
      return result.ok ? JSON.stringify(result.value) : toLine(result);
    }
    const problems = compile(how === 'closed' ? closed(schema) : schema)(parsed);
    return problems.map(toLine).join(', ') || 'right';
  } catch (error) {
    return (error as Error).message;
  }
});

function toLine({ at = '', reason }: { readonly at?: string; readonly reason: string }): string {
  return `${at.replace('\n', '\\n')} ${reason}`.trim();
}

test('every safe integer survives being written', (t) => {
  fc.assert(
    fc.property(fc.maxSafeInteger(), (value) => {
      t.deepEqual(cast(Type.Integer(), 'text', String(value)), { ok: true, value });
    }),
  );
});

test('a file is taken where one is declared, and nowhere else', (t) => {
  const file = new File(['x'], 'x.txt');
  t.deepEqual(cast(upload(), 'text', file), { ok: true, value: file });
  t.false(cast(upload(), 'text', 'x').ok);
  t.false(cast(Type.String(), 'text', file).ok);
});
