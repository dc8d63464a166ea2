import test from 'ava';
import fc from 'fast-check';
import { cpuMs } from '../../../test/support/cpu-time.ts';
import { whyNotLinear } from './pattern.ts';

test('patterns whose repetitions neither nest nor meet are accepted', (t) => {
  for (const pattern of [
    '^[a-z0-9-]{1,64}$',
    '^(?:a|b)?c*$',
    '^\\(a+\\)$',
    '^[(+*]+',
    'abc',
    '[0-9]{4}-[0-9]{2}',
    '^\\d+\\.\\d+\\.\\d+(?:-[a-z]+)?$',
    '^(?:[0-9a-f]{2}:){5}[0-9a-f]{2}$',
    '^-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?$',
    '^(?:GET|HEAD|POST|PUT) /[^ ]*$',
    '^\\p{L}+\\d*$',
    '^[^@]+@[^.]+$',
    '^(ab)+$',
    '^a{x',
    '^(ab?c{2}?d)?e??$',
    '^(?:ab)+(?<name>cd)*?(?:ef){2}$',
    '^(?i:ef){2}$',
  ]) {
    t.is(whyNotLinear(pattern), undefined, pattern);
  }
});

test('patterns that may take exponential time are refused with the reason', (t) => {
  for (const pattern of [
    '(a+)+$',
    '(a|a)*',
    '((a{1,9})b)*',
    '(?:x*y)+',
    '(?:[a-z]+){2,}',
    '^([a-z]?[a-z0-9])+$',
    '^(?:a?a?)+$',
    '^(?:a?){30}a{30}$',
    '((?:ab?)c)*',
    '(?<name>a??)+',
  ]) {
    t.regex(whyNotLinear(pattern) ?? '', /repeats a group/, pattern);
  }
  t.regex(whyNotLinear('(?=a)b') ?? '', /lookaround/);
  t.regex(whyNotLinear('(?<!a)b') ?? '', /lookaround/);
  t.regex(whyNotLinear('(a)\\1') ?? '', /back-reference/);
});

test('repetitions that may take the same characters need a text that is short', (t) => {
  for (const [pattern, bound] of [
    ['^a*a*b$', 256],
    ['^a*a*a*b$', 15],
    ['^[a-z]+[a-z0-9]*$', 257],
    ['^a*b?a*$', 256],
    ['^a*(?:b|c*)a*$', 256],
    ['^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$', 256],
    ['^[^@]+@[^@]+\\.[^@]+$', 257],
    ['^\\w+\\d+$', 257],
    ['^.*\\u{1f600}$', 256],
    ['^(?:\\ud83d\\ude00)+(?:\\u{1f600})+$', 257],
    ['^(?:ab)+(?:ac)*$', 257],
    ['^a{0,900}a{0,900}b$', 256],
    ['^(?i:a)*A*$', 256],
    ['a+b', 257],
    ['^a|a+b', 128],
  ] as const) {
    t.regex(whyNotLinear(pattern) ?? '', new RegExp(`maxLength of ${bound} or less`), pattern);
    t.is(whyNotLinear(pattern, bound), undefined, pattern);
    t.not(whyNotLinear(pattern, bound + 1), undefined, pattern);
  }
  t.regex(whyNotLinear('a+b') ?? '', /begin it with \^/);
  t.regex(whyNotLinear(`^${'a?'.repeat(30)}a{30}$`, 30) ?? '', /too many ways; let what follows/);
});

test('a repetition at the end of a pattern that may begin anywhere is soon done with', (t) => {
  for (const pattern of ['[a-z]+', '/v\\d+', 'a|b*', '[a-z]{2,}']) {
    t.is(whyNotLinear(pattern), undefined, pattern);
  }
  for (const pattern of ['[a-z]+$', '\\s*x+', '(?:a+|b)c']) {
    t.not(whyNotLinear(pattern), undefined, pattern);
  }
});

test('what is accepted is soon done with, whatever the text', (t) => {
  const text = fc.stringMatching(/^[ab01.]*$/);
  const part = fc
    .tuple(
      fc.constantFrom('a', 'b', '[ab]', '\\d', '[a-z0-9]', '(?:ab)', '.', '(?:a|b*)'),
      fc.constantFrom('', '', '?', '*', '+', '{2}', '{0,90}'),
    )
    .map((both) => both.join(''));
  const start = fc.constantFrom('', '^');
  let accepted = 0;
  fc.assert(
    fc.property(
      start,
      fc.array(part, { minLength: 1, maxLength: 6 }),
      text,
      (first, parts, pump) => {
        const pattern = `${first}${parts.join('')}!$`;
        for (const maxLength of [40, 256, 20_000]) {
          if (whyNotLinear(pattern, maxLength) !== undefined) continue;
          accepted += 1;
          const attack = (pump || 'a').repeat(maxLength).slice(0, maxLength);
          const before = cpuMs();
          new RegExp(pattern, 'u').test(attack);
          t.true(cpuMs() - before < 1_000, `${pattern} with ${maxLength} of ${pump}`);
        }
      },
    ),
    { numRuns: 2_000 },
  );
  t.true(accepted > 500);
});
