import test from 'ava';
import { whyNotLinear } from './pattern.ts';

test('patterns whose repetitions do not nest are accepted', (t) => {
  for (const pattern of [
    '^[a-z0-9-]{1,64}$',
    '^(?:a|b)?c*$',
    '^\\(a+\\)$',
    '[(+*]+',
    '^(ab)+$',
    'a{x',
    '^(ab?c{2}?d)?e??$',
    '^(?:ab)+(?<name>cd)*?(?i:ef){2}$',
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
  t.regex(whyNotLinear('(?=a)b') ?? '', /looks around/);
  t.regex(whyNotLinear('(?<!a)b') ?? '', /looks around/);
  t.regex(whyNotLinear('(a)\\1') ?? '', /back-reference/);
});
