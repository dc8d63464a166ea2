import test from 'ava';
import { replaceSection } from './generated-section.ts';

test('only what is between the marks is replaced, and again with the same result', (t) => {
  const before = '# Title\n\n<!-- list:begin -->\nold\n<!-- list:end -->\n\nrest\n';
  const after = '# Title\n\n<!-- list:begin -->\n\nnew\n\n<!-- list:end -->\n\nrest\n';
  t.is(replaceSection(before, 'list', 'new'), after);
  t.is(replaceSection(after, 'list', 'new'), after);
});

test('a document without the marks in order is left alone', (t) => {
  t.is(replaceSection('<!-- list:begin -->', 'list', 'new'), undefined);
  t.is(replaceSection('<!-- list:end --> <!-- list:begin -->', 'list', 'new'), undefined);
});
