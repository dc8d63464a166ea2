// What is kept of texts that others wrote.
import test from 'ava';
import { toInfoText } from './revision.ts';

test('a long message is cut in the middle, at the end of a line, and keeps its last lines', (t) => {
  t.is(toInfoText(' short\n\nRollout: now\n'), 'short\n\nRollout: now');
  t.is(toInfoText(' \n'), undefined);
  t.is(toInfoText('x'.repeat(4096)), 'x'.repeat(4096));
  const trailers = '\n\nAllow-Removal: yes\nRollout: now';
  const long = toInfoText('x'.repeat(5000) + trailers) ?? '';
  t.is(long, `${'x'.repeat(4096 - trailers.length - 1)}…${trailers}`);
  // What is no line of its own does not become one.
  t.is(toInfoText(`${'x'.repeat(5000)}Rollout: now`), `${'x'.repeat(4095)}…`);
  const lines = toInfoText('y: Rollout: now\n'.repeat(1000)) ?? '';
  t.is(lines.length, 4096);
  t.deepEqual(new Set(lines.split('\n').filter((line) => line !== 'y: Rollout: now')).size, 1);
  t.true(lines.includes('…\n'));
  t.true(toInfoText('\u{1f600}'.repeat(4000))?.isWellFormed());
});
