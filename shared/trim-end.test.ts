import test from 'ava';
import { trimEnd, withoutEnding } from './trim-end.ts';

test('only characters at the end are removed', (t) => {
  t.is(trimEnd('0.0100', '0'), '0.01');
  t.is(trimEnd('secret\r\n\n', '\r\n'), 'secret');
  t.is(trimEnd('000', '0'), '');
  t.is(trimEnd('', '0'), '');
});

test('an ending is removed with the blanks around it', (t) => {
  t.is(withoutEnding('it failed.  Note: \n', 'Note:'), 'it failed.');
  t.is(withoutEnding('Note: it failed ', 'Note:'), 'Note: it failed ');
});

test('a long text of only these characters is trimmed quickly', (t) => {
  t.timeout(20_000);
  const zeros = '0'.repeat(5_000_000);
  t.is(trimEnd(`${zeros}1`, '0').length, 5_000_001);
  t.is(trimEnd(zeros, '0'), '');
  t.is(withoutEnding(' '.repeat(5_000_000), 'Note:').length, 5_000_000);
});
