import test from 'ava';
import { ruleText } from '../../test/support/rules-folder.ts';
import { createRememberingParser } from './remembering-parser.ts';

test('a text is parsed once for the revisions that follow each other with it', (t) => {
  const next = createRememberingParser();
  const [one, two] = [ruleText('a', 1), ruleText('a', 2)];
  const first = next()(one, 'a.yaml');
  const second = next();
  t.is(second(one, 'a.yaml'), first);
  t.not(second(one, 'b.yaml'), first, 'its place is told in problems');
  t.not(next()(two, 'a.yaml'), first);
  t.not(next()(one, 'a.yaml'), first, 'the revision before did not have it');
});
