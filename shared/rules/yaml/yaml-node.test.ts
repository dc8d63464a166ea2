// Tests how plain scalars of YAML are read, as reviewed lines: yaml-node.txt. `REWRITE=1` rewrites them.
import test from 'ava';
import { cpuMs } from '../../../test/support/cpu-time.ts';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import { mayHaveAnchor, toScalarValue } from './yaml-node.ts';

testLines(test, new URL('yaml-node.txt', import.meta.url), (source) => {
  const { kind, value } = toScalarValue(source);
  return `${kind} ${typeof value} ${value}`;
});

test('a hexadecimal number of more than a hundred characters is text', (t) => {
  t.deepEqual(toScalarValue(`0x${'1'.padStart(98, '0')}`), { kind: 'int', value: 1 });
  t.is(toScalarValue(`0x${'1'.padStart(99, '0')}`).kind, 'text');
});

test('a number of a million digits is read at once', (t) => {
  const start = cpuMs();
  t.is(toScalarValue('9'.repeat(1_000_000)).kind, 'float');
  t.true(cpuMs() - start < 2000);
});

test('an anchor is found wherever YAML allows one, and an ampersand in a value is not an anchor', (t) => {
  for (const text of ['&a x', '- &a [1]', '[&a 1]', '[1,&a 2]', 'k: !!str &a x', '{"k":&a 1}']) {
    t.true(mayHaveAnchor(text), text);
  }
  for (const text of ['value: Q&A', 'value: a & b', '']) t.false(mayHaveAnchor(text), text);
});
