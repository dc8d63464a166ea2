import test from 'ava';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createTrafficHistory } from './traffic-history.ts';

const counts = { decisions: 10, overLimit: 2, errors: 1 };

test('under constant load all slots are alike, whenever the reports come', (t) => {
  const clock = createManualClock();
  const history = createTrafficHistory(clock);
  for (const seconds of [4.8, 5.4, 4.7, 5.2, 5, 4.9, 5]) {
    clock.advance(seconds * 1000);
    history.take({ decisions: 100 * seconds, overLimit: 20 * seconds, errors: seconds }, seconds);
  }
  const slots = history.read();
  t.is(slots.length, 6);
  for (const { atMs, decisions, overLimit, errors } of slots) {
    t.is(atMs % 5_000, 0);
    t.deepEqual([decisions, overLimit, errors].map(Math.round), [500, 100, 5]);
  }
});

test('a slot is shown when no report that is in time can add to it', (t) => {
  const clock = createManualClock();
  const history = createTrafficHistory(clock);
  clock.advance(5_000);
  history.take(counts, 5);
  t.deepEqual(history.read(), []);
  clock.advance(4_999);
  t.deepEqual(history.read(), []);
  clock.advance(1);
  t.like(history.read(), [counts]);
});

test('a time that no report can cover is one within the slots that are kept', (t) => {
  const clock = createManualClock();
  const history = createTrafficHistory(clock);
  clock.advance(5_000);
  for (const seconds of [0, -1, Number.NaN]) history.take(counts, seconds);
  history.take(counts, Number.POSITIVE_INFINITY);
  clock.advance(10_000);
  const [first, second] = history.read();
  t.true((first?.decisions ?? 0) > 30 && (first?.decisions ?? 0) <= 40);
  t.is(second?.decisions, 0);
});

test('the last 15 minutes are kept, with nothing in them where nobody reported', (t) => {
  const clock = createManualClock();
  const history = createTrafficHistory(clock);
  history.take(counts, 5);
  clock.advance(20 * 60_000);
  history.take(counts, 5);
  clock.advance(5_000);
  const slots = history.read();
  t.is(slots.length, 179);
  t.is(slots.at(-1)?.decisions, 10);
  t.true(slots.slice(0, -1).every(({ decisions }) => decisions === 0));
});
