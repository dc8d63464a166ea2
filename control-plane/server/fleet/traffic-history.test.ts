import test from 'ava';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { pluck } from '../../../test/support/pluck.ts';
import { TrafficHistory } from './traffic-history.ts';

function setUp() {
  const clock = createManualClock();
  return { clock, history: new TrafficHistory(clock) };
}

const counts = { decisions: 10, overLimit: 2, errors: 1 };

test('under constant load all slots are alike, whenever the reports come', (t) => {
  const { clock, history } = setUp();
  for (const seconds of [4.8, 5.4, 4.7, 5.2, 5, 4.9, 5]) {
    clock.advance(seconds * 1000);
    history.add({ decisions: 100 * seconds, overLimit: 20 * seconds, errors: seconds }, seconds);
  }
  const slots = history.read();
  t.is(slots.length, 6);
  for (const { atMs, decisions, overLimit, errors } of slots) {
    t.is(atMs % 5_000, 0);
    t.deepEqual([decisions, overLimit, errors].map(Math.round), [500, 100, 5]);
  }
});

test('a slot is shown when no report that is in time can add to it', (t) => {
  const { clock, history } = setUp();
  clock.advance(5_000);
  history.add(counts, 5);
  t.deepEqual(history.read(), []);
  clock.advance(4_999);
  t.deepEqual(history.read(), []);
  clock.advance(1);
  t.like(history.read(), [counts]);
});

test('a time that no report can cover is one within the slots that are kept', (t) => {
  const { clock, history } = setUp();
  clock.advance(5_000);
  history.add(counts, 5);
  for (const seconds of [0, -1, Number.NaN]) history.add(counts, seconds);
  clock.advance(10_000);
  const decided = history.read().reduce((sum, { decisions }) => sum + decisions, 0);
  t.true(decided >= 10 && decided <= 40);
  history.add(counts, Number.POSITIVE_INFINITY);
  t.true(history.read().length <= 720);
});

test('an hour is kept, and a time without reports is unknown', (t) => {
  const { clock, history } = setUp();
  const report = (times: number, decisions: number) => {
    for (let index = 0; index < times; index++) {
      clock.advance(5_000);
      history.add({ decisions, overLimit: 0, errors: 0 }, 5);
    }
  };
  report(24, 10);
  clock.advance(30 * 60_000);
  report(12, 0);
  clock.advance(5_000);
  const slots = history.read();
  t.deepEqual(
    slots.map(({ decisions }) => decisions),
    [...Array.from({ length: 24 }, () => 10), ...Array.from({ length: 12 }, () => 0)],
  );
  t.is((slots[24]?.atMs ?? 0) - (slots[23]?.atMs ?? 0), 30 * 60_000 + 5_000);
  clock.advance(28 * 60_000);
  t.is(history.read().length, 12 + 12);
  report(2_000, 10);
  t.is(history.read().length, 720);
});

test('the first slot after a time without reports is known from its start or not at all', (t) => {
  const { clock, history } = setUp();
  clock.advance(7_500);
  history.add({ decisions: 50, overLimit: 0, errors: 0 }, 5);
  clock.advance(5_000);
  history.add({ decisions: 50, overLimit: 0, errors: 0 }, 5);
  clock.advance(5_000);
  t.deepEqual(pluck(history.read(), 'decisions'), [50]);
});

test('a step of the wall clock moves all slots, and a smaller difference moves none', (t) => {
  const { clock, history } = setUp();
  clock.advance(5_000);
  history.add(counts, 5);
  clock.advance(7_400);
  const [first] = history.read();
  clock.setWall(clock.wallMs() + 600);
  t.deepEqual(history.read(), [first]);
  clock.setWall(clock.wallMs() - 600 + 3_600_000);
  t.is(history.read()[0]?.atMs, (first?.atMs ?? 0) + 3_600_000);
});
