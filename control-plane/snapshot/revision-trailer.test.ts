import test from 'ava';
import {
  allowRemovalTrailer,
  nowTrailer,
  saysTrailer,
  supersedeTrailer,
  withTrailer,
} from './revision-trailer.ts';

const says = (message: string | undefined) => saysTrailer({ message }, allowRemovalTrailer);

test('a line of its own in the message says what the author means', (t) => {
  t.true(says('clean up\n\nAllow-Removal: yes'));
  t.true(says('clean up\n\nSigned-off-by: a\nallow-removal:  YES \nOther: b'));
  t.false(says('what does Allow-Removal: yes do?'));
  t.false(says('Allow-Removal: no'));
  t.false(says(undefined));
});

test('what is said is added once, in one paragraph', (t) => {
  t.true(says(withTrailer('clean up', allowRemovalTrailer)));
  t.is(withTrailer('a\n\nAllow-Removal: yes', allowRemovalTrailer), 'a\n\nAllow-Removal: yes');
  const both = withTrailer(withTrailer('a', allowRemovalTrailer), nowTrailer);
  t.is(both, 'a\n\nAllow-Removal: yes\nRollout: now');
  t.false(saysTrailer({ message: both }, supersedeTrailer));
});
