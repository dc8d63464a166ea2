import test from 'ava';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createTrafficHistory } from './traffic-history.ts';

const counts = { decisions: 10, overLimit: 2, errors: 1 };

test('what workers report within five seconds is one slot, which is shown when it is over', (t) => {
  const clock = createManualClock();
  const history = createTrafficHistory(clock);
  history.take(counts);
  clock.advance(4_000);
  history.take(counts);
  t.deepEqual(history.read(), []);
  clock.advance(1_000);
  const [slot, ...others] = history.read();
  t.like(slot, { decisions: 20, overLimit: 4, errors: 2 });
  t.is((slot?.atMs ?? 1) % 5_000, 0);
  t.deepEqual(others, []);
});

test('the last 15 minutes are kept, with nothing in them where nobody reported', (t) => {
  const clock = createManualClock();
  const history = createTrafficHistory(clock);
  history.take(counts);
  clock.advance(20 * 60_000);
  history.take(counts);
  clock.advance(5_000);
  const slots = history.read();
  t.is(slots.length, 180);
  t.is(slots.at(-1)?.decisions, 10);
  t.true(slots.slice(0, -1).every(({ decisions }) => decisions === 0));
});
