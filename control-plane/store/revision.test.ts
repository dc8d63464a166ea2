// How texts of others are cut, and how a message says how its revision is to be served.
import test from 'ava';
import {
  allowRemovalTrailer,
  nowTrailer,
  saysTrailer,
  supersedeTrailer,
  toInfoText,
  withTrailer,
} from './revision.ts';

test('a long message is cut in the middle, at the end of a line, and keeps its last lines', (t) => {
  t.is(toInfoText(' short\n\nRollout: now\n'), 'short\n\nRollout: now');
  t.is(toInfoText(' \n'), undefined);
  t.is(toInfoText('x'.repeat(4096)), 'x'.repeat(4096));
  const trailers = '\n\nAllow-Removal: yes\nRollout: now';
  const long = toInfoText('x'.repeat(5000) + trailers) ?? '';
  t.is(long, `${'x'.repeat(4096 - trailers.length - 1)}…${trailers}`);
  // A part of a line does not become a line of its own.
  t.is(toInfoText(`${'x'.repeat(5000)}Rollout: now`), `${'x'.repeat(4095)}…`);
  const lines = toInfoText('y: Rollout: now\n'.repeat(1000)) ?? '';
  t.is(lines.length, 4096);
  t.deepEqual(new Set(lines.split('\n').filter((line) => line !== 'y: Rollout: now')).size, 1);
  t.true(lines.includes('…\n'));
  t.true(toInfoText('\u{1f600}'.repeat(4000))?.isWellFormed());
});

const says = (message: string | undefined) => saysTrailer({ message }, allowRemovalTrailer);

test('a line of its own in the message says what the author means', (t) => {
  t.true(says('clean up\n\nAllow-Removal: yes'));
  t.true(says('clean up\n\nSigned-off-by: a\nallow-removal:  YES \nOther: b'));
  t.false(says('what does Allow-Removal: yes do?'));
  t.false(says('Allow-Removal: no'));
  t.false(says(undefined));
});

test('a trailer is added once, in one paragraph', (t) => {
  t.true(says(withTrailer('clean up', allowRemovalTrailer)));
  t.is(withTrailer('a\n\nAllow-Removal: yes', allowRemovalTrailer), 'a\n\nAllow-Removal: yes');
  const both = withTrailer(withTrailer('a', allowRemovalTrailer), nowTrailer);
  t.is(both, 'a\n\nAllow-Removal: yes\nRollout: now');
  t.false(saysTrailer({ message: both }, supersedeTrailer));
});
