import test from 'ava';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { startProgress } from './progress.ts';

test('a wait is reported after two seconds, then every five, until it is over', (t) => {
  const clock = createManualClock();
  let [printed, what] = ['', 'a'];
  const writeError = (text: string) => {
    printed += text;
  };
  const stop = startProgress({ clock, writeError }, () => what);
  clock.advance(1_999);
  t.is(printed, '');
  clock.advance(1);
  what = 'b';
  clock.advance(5_000);
  t.is(printed, 'waiting: a (2 s)\nwaiting: b (7 s)\n');
  stop();
  clock.advance(60_000);
  t.is(printed, 'waiting: a (2 s)\nwaiting: b (7 s)\n');
  t.is(clock.pending, 0);
});
