import test from 'ava';
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
    t.false(compiled.ok ? compiled.pattern.test(text) : undefined);
  });
}

/**
 * Expressions that RE2 refuses, and those that RE2 takes and this does not: never is one taken for something
 * else.
 */
const refused: readonly [string, string][] = [
  ['(a)\\1', 'invalid escape sequence: `\\1`'],
  ['(?=a)', 'invalid or unsupported Perl syntax: `(?=`'],
  ['(?<!a)', 'invalid or unsupported Perl syntax: `(?<`'],
  ['\\y', 'invalid escape sequence: `\\y`'],
  ['[[:foo:]]', 'invalid character class range: `[:foo:]`'],
  ['[[:^digit:]]', '`[:^digit:]` is not supported; write the characters out'],
  ['\\p{Foo}', 'invalid character class range: `\\p{Foo}`'],
  ['(?U)a+', 'the flag U is not supported'],
  ['a{1001}', 'invalid repeat count: `{1001}`'],
  ['[a', 'missing closing "]"'],
  ['a)', 'unexpected ")"'],
  ['a\\', 'trailing backslash at end of expression'],
];
for (const [pattern, reason] of refused) {
  test(`${pattern} is refused`, (t) => {
    const compiled = compilePattern(pattern);
    t.is(compiled.ok ? 'taken' : compiled.reason, reason);
  });
}
