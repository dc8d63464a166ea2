import test from 'ava';
import { mayHaveAnchor } from './anchor.ts';

test('wherever YAML takes an anchor one is found, and an ampersand in a value is none', (t) => {
  for (const text of ['&a x', '- &a [1]', '[&a 1]', '[1,&a 2]', 'k: !!str &a x', '{"k":&a 1}']) {
    t.true(mayHaveAnchor(text), text);
  }
  for (const text of ['value: Q&A', 'value: a & b', '']) t.false(mayHaveAnchor(text), text);
});
