import test from 'ava';
import { cpuMs } from '../../../test/support/cpu-time.ts';
import { type ScalarKind, toScalarValue } from './yaml-scalar.ts';

const cases: [source: string, kind: ScalarKind, value: string | number | boolean | null][] = [
  ['', 'null', null],
  ['~', 'null', null],
  ['Null', 'null', null],
  ['nULL', 'text', 'nULL'],
  ['y', 'bool', true],
  ['On', 'bool', true],
  ['NO', 'bool', false],
  ['n', 'bool', false],
  ['tRue', 'text', 'tRue'],
  ['12', 'int', 12],
  ['+12', 'int', 12],
  ['-12', 'int', -12],
  ['0', 'int', 0],
  ['010', 'int', 8],
  ['0o10', 'int', 8],
  ['0o17', 'int', 15],
  ['08', 'float', 8],
  ['109', 'int', 109],
  ['0x1F', 'int', 31],
  ['0x90', 'int', 144],
  ['-0x1F', 'int', -31],
  ['0b11', 'int', 3],
  ['1_000', 'int', 1000],
  ['_1', 'text', '_1'],
  ['9223372036854775807', 'int', 2 ** 63],
  ['9223372036854775808', 'float', 2 ** 63],
  ['99999999999999999999', 'float', 1e20],
  ['0xFFFFFFFFFFFFFFFF', 'float', 2 ** 64],
  ['0x10000000000000000', 'text', '0x10000000000000000'],
  ['1.5', 'float', 1.5],
  ['1.', 'float', 1],
  ['1.09', 'float', 1.09],
  ['.09', 'float', 0.09],
  ['1e3', 'float', 1000],
  ['1E-10', 'float', 1e-10],
  ['1e9', 'float', 1e9],
  ['1_0.5', 'float', 10.5],
  ['.inf', 'float', Number.POSITIVE_INFINITY],
  ['-.INF', 'float', Number.NEGATIVE_INFINITY],
  ['.NaN', 'float', Number.NaN],
  ['.', 'text', '.'],
  ['+', 'text', '+'],
  ['-', 'text', '-'],
  ['1:30', 'text', '1:30'],
  ['2024-05-06', 'text', '2024-05-06'],
  ['10.1.2.3', 'text', '10.1.2.3'],
  ['12a', 'text', '12a'],
  ['0x', 'text', '0x'],
];
for (const [source, kind, value] of cases) {
  test(`'${source}' is ${kind}`, (t) => t.deepEqual(toScalarValue(source), { kind, value }));
}

test('a hexadecimal number of more than a hundred characters is text', (t) => {
  t.deepEqual(toScalarValue(`0x${'1'.padStart(98, '0')}`), { kind: 'int', value: 1 });
  t.is(toScalarValue(`0x${'1'.padStart(99, '0')}`).kind, 'text');
});

test('a number of a million digits is read at once', (t) => {
  const start = cpuMs();
  t.is(toScalarValue('9'.repeat(1_000_000)).kind, 'float');
  t.true(cpuMs() - start < 2000);
});
