import test from 'ava';
import { cpuMs } from '../../test/support/cpu-time.ts';
import { testLines } from '../../test/support/reviewed-lines.ts';
import { compilePattern } from './regular-expression.ts';

testLines(test, new URL('regular-expression.txt', import.meta.url), (given) => {
  const [pattern, text = ''] = JSON.parse(given) as [string, string?];
  const compiled = compilePattern(pattern);
  if (!compiled.ok) return compiled.reason;
  const found = compiled.pattern.exec(text)?.[0];
  return found === undefined ? 'nothing' : JSON.stringify(found);
});

test('groups have numbers and names, and one without a match is undefined', (t) => {
  const compiled = compilePattern('(?P<one>a)|(?<two>b)');
  const found = compiled.ok ? compiled.pattern.exec('xb') : null;
  t.deepEqual([...Array.from(found ?? [])], ['b', undefined, 'b']);
  t.deepEqual(found?.groups, { one: undefined, two: 'b' });
});

for (const [pattern, text] of [
  ['^(a+)+$', 'a'],
  ['^(a|aa)+$', 'a'],
  ['^(.*)*=(.*)*;$', 'x='],
  ['^(\\w+\\.?)+$', 'ab.'],
  ['^([a-z]+)*\\.([a-z]+)*!$', 'a'],
] as const) {
  test(`${pattern} takes linear time on a text that it nearly matches`, (t) => {
    const compiled = compilePattern(pattern);
    const startMs = cpuMs();
    t.is(compiled.ok ? compiled.pattern.exec(`${text.repeat(1_000)}#`) : undefined, null);
    // A backtracking matcher takes years.
    t.true(cpuMs() - startMs < 5_000);
  });
}
