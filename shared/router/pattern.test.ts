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
  ]) {
    t.is(whyNotLinear(pattern), undefined, pattern);
  }
});

test('patterns that may take exponential time are refused with the reason', (t) => {
  for (const pattern of ['(a+)+$', '(a|a)*', '((a{1,9})b)*', '(?:x*y)+', '(?:[a-z]+){2,}']) {
    t.regex(whyNotLinear(pattern) ?? '', /repeats a group/, pattern);
  }
  t.regex(whyNotLinear('(?=a)b') ?? '', /looks around/);
  t.regex(whyNotLinear('(?<!a)b') ?? '', /looks around/);
  t.regex(whyNotLinear('(a)\\1') ?? '', /back-reference/);
});
