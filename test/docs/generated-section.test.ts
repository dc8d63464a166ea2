import test from 'ava';
import { replaceSection } from './generated-section.ts';

test('only the text between the marks is replaced, and repeating it changes nothing', (t) => {
  const before = '# Title\n\n<!-- list:begin -->\nold\n<!-- list:end -->\n\nrest\n';
  const after = '# Title\n\n<!-- list:begin -->\n\nnew\n\n<!-- list:end -->\n\nrest\n';
  t.is(replaceSection(before, 'list', 'new'), after);
  t.is(replaceSection(after, 'list', 'new'), after);
});

test('a document without both marks in order is unchanged', (t) => {
  t.is(replaceSection('<!-- list:begin -->', 'list', 'new'), undefined);
  t.is(replaceSection('<!-- list:end --> <!-- list:begin -->', 'list', 'new'), undefined);
});
