import test from 'ava';
import { cpuMs } from '../../test/support/cpu-time.ts';
import { compilePattern } from './regular-expression.ts';

/** Pattern, text, and what RE2 finds in it. */
const found: readonly [string, string, string][] = [
  ['(?P<name>a+)b', 'xaab', 'aab'],
  ['[[:alpha:]_]+', '1ab_c2', 'ab_c'],
  ['[]a]+', 'x]a', ']a'],
  ['\\Aa', 'ab', 'a'],
  ['b\\z', 'ab', 'b'],
  ['\\pL+$', '1é', 'é'],
  ['\\p{Greek}', 'aΩ', 'Ω'],
  ['\\p{^Lu}', 'Ab', 'b'],
  ['\\x{61}\\x62', 'ab', 'ab'],
  ['\\141', 'a', 'a'],
  ['\\Qa.b\\E.', 'aab a.bc', 'a.bc'],
  ['a(?i)b|c', 'aB', 'aB'],
  ['a(?i)b|c', 'C', 'C'],
  ['(a(?i)b)c', 'aBc', 'aBc'],
  ['(?i-s:B)a', 'ba', 'ba'],
  ['(?s)a.b', 'a\nb', 'a\nb'],
  ['a{,2}', 'a{,2}', 'a{,2}'],
  ['\\_\\-\\/', '_-/', '_-/'],
  ['[\\s.]+', 'a .b', ' .'],
  ['[[:^digit:]]', '1a', 'a'],
  ['(?U)a+', 'aa', 'a'],
  ['(?<name>a)', 'ba', 'a'],
];
for (const [pattern, text, expected] of found) {
  test(`${pattern} finds ${JSON.stringify(expected)} in ${JSON.stringify(text)}`, (t) => {
    const compiled = compilePattern(pattern);
    t.is(compiled.ok ? compiled.pattern.exec(text)?.[0] : compiled.reason, expected);
  });
}

for (const [pattern, text] of [
  ['(a(?i)b)c', 'aBC'],
  ['^a\\z', 'ab'],
  ['\\s', '\u00a0'],
] as const) {
  test(`${pattern} finds nothing in ${JSON.stringify(text)}`, (t) => {
    const compiled = compilePattern(pattern);
    t.false(compiled.ok ? compiled.pattern.exec(text) !== null : undefined);
  });
}

const refused: readonly [string, string][] = [
  ['(a)\\1', 'invalid escape sequence: `\\1`'],
  ['(?=a)', 'invalid or unsupported Perl syntax: `(?=`'],
  ['(?<!a)', 'invalid named capture: `(?<!a)`'],
  ['\\y', 'invalid escape sequence: `\\y`'],
  ['[[:foo:]]', 'invalid character class range: `[:foo:]`'],
  ['\\p{Foo}', 'invalid character class range: `\\p{Foo}`'],
  ['a{1001}', 'invalid repeat count: `{1001}`'],
  ['[a', 'missing closing ]: `[a`'],
  ['a)', 'unexpected ): `a)`'],
  ['a\\', 'trailing backslash at end of expression'],
];
for (const [pattern, reason] of refused) {
  test(`${pattern} is refused`, (t) => {
    const compiled = compilePattern(pattern);
    t.is(compiled.ok ? 'taken' : compiled.reason, reason);
  });
}

test('groups have numbers and names, and one that took no part is undefined', (t) => {
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
  test(`${pattern} takes linear time on what it nearly matches`, (t) => {
    const compiled = compilePattern(pattern);
    const startMs = cpuMs();
    t.is(compiled.ok ? compiled.pattern.exec(`${text.repeat(1_000)}#`) : undefined, null);
    // A matcher that goes back takes years.
    t.true(cpuMs() - startMs < 5_000);
  });
}
