// Tests how foreign texts are shortened, and how a commit message selects how its revision is served.
import test from 'ava';
import {
  allowRemovalTrailer,
  hasTrailer,
  nowTrailer,
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
  // A cut line must not become a line of its own.
  t.is(toInfoText(`${'x'.repeat(5000)}Rollout: now`), `${'x'.repeat(4095)}…`);
  const lines = toInfoText('y: Rollout: now\n'.repeat(1000)) ?? '';
  t.is(lines.length, 4096);
  t.deepEqual(new Set(lines.split('\n').filter((line) => line !== 'y: Rollout: now')).size, 1);
  t.true(lines.includes('…\n'));
  t.true(toInfoText('\u{1f600}'.repeat(4000))?.isWellFormed());
});

const coAuthor = '\nCo-authored-by: Some Person <some-person@example.test>';
const allows = (message: string | undefined) => hasTrailer({ message }, allowRemovalTrailer);

// Proof of SECURITY.md: cannot switch a guard off by text inside a commit message
test('a trailer selects what the author means, if git recognizes it as a trailer', (t) => {
  for (const message of [
    'clean up\n\nAllow-Removal: yes',
    'clean up\n\nsome words\n\nAllow-Removal: yes\n\n',
    'x\n\nSome words of it\nAllow-Removal: yes\nSigned-off-by: a <a@b>',
    'x\n\nAllow-Removal:\n  yes',
    'x\r\n\r\nAllow-Removal: yes\r\nSigned-off-by: a\r\n',
    `x\n\nNote: a\nB: ${'c\nB: '.repeat(2000)}\nAllow-Removal: yes`,
    'x\n\nAllow-Removal: yes\n# a comment\n\n# Conflicts:\n#\ta.yaml\n',
    toInfoText(`x\n\n${'word '.repeat(900)}\n\nAllow-Removal: yes${coAuthor.repeat(50)}`),
  ]) {
    t.true(allows(message), message);
  }
  for (const message of [
    'Allow-Removal: yes',
    'clean up\nAllow-Removal: yes',
    'clean up\n\nAllow-Removal: yes\n\nand so on',
    'clean up\n\nAllow-Removal: yes\nand so on',
    'clean up (#7)\n\n* one\n\nAllow-Removal: yes\n\n* two\n\nCo-authored-by: a <a@b>',
    'x\n\none\ntwo\nthree\nfour\nfive\nsix\nseven\nAllow-Removal: yes\nSigned-off-by: a <a@b>',
    'x\n\nquoted:\n  Allow-Removal: yes',
    'x\n\u00a0\nAllow-Removal: yes',
    'x\n\f\nAllow-Removal: yes',
    'x\n\n# ------------------------ >8 ------------------------\nAllow-Removal: yes',
    `x\n\n${`${'word '.repeat(180)}\n`.repeat(12)}Signed-off-by: a\nAllow-Removal: yes`,
    `x\n\nAllow-Removal: yes\nNote: ${'y'.repeat(4200)}\n\n${'word '.repeat(1000)}`,
  ]) {
    t.false(allows(toInfoText(message)), message);
  }
  t.true(allows('clean up\n\nSigned-off-by: a\nallow-removal:  YES \nOther: b'));
  t.false(allows('what does Allow-Removal: yes do?'));
  t.false(allows('Allow-Removal: no'));
  t.false(allows(undefined));
});

test('a trailer is added once, in one paragraph', (t) => {
  t.true(allows(withTrailer('clean up', allowRemovalTrailer)));
  t.is(withTrailer('a\n\nAllow-Removal: yes', allowRemovalTrailer), 'a\n\nAllow-Removal: yes');
  const both = withTrailer(withTrailer('a', allowRemovalTrailer), nowTrailer);
  t.is(both, 'a\n\nAllow-Removal: yes\nRollout: now');
  t.false(hasTrailer({ message: both }, supersedeTrailer));
});
