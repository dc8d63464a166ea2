import test from 'ava';
import { mayHaveAnchor } from './anchor.ts';

test('an anchor is found wherever YAML allows one, and an ampersand in a value is not an anchor', (t) => {
  for (const text of ['&a x', '- &a [1]', '[&a 1]', '[1,&a 2]', 'k: !!str &a x', '{"k":&a 1}']) {
    t.true(mayHaveAnchor(text), text);
  }
  for (const text of ['value: Q&A', 'value: a & b', '']) t.false(mayHaveAnchor(text), text);
});
