import test from 'ava';
import { mergeHistories, mergeSeries, toHistoryJson } from './history-json.ts';

const slotMs = 5_000;
const nowMs = 1_000_000 * slotMs;

/** That many slots, the last of which ends `agoSlots` ago. */
function slotsOf(count: number, agoSlots: number, decisions: number) {
  return Array.from({ length: count }, (_, index) => ({
    atMs: nowMs - (agoSlots + count - index) * slotMs,
    decisions,
    overLimit: 1,
    errors: 0,
  }));
}

test('the slots of several control planes add up by their time, until all of them know', (t) => {
  const one = toHistoryJson(slotsOf(3, 1, 10), '15m', nowMs);
  const other = toHistoryJson(slotsOf(3, 2, 5), '15m', nowMs);
  const away = toHistoryJson([], '15m', nowMs);
  const { slots, until, slotSeconds } = mergeHistories(one, [other, away]);
  t.deepEqual([until, slotSeconds], [new Date(nowMs).toISOString(), 5]);
  t.deepEqual(
    slots.map(({ decisions, overLimit }) => [decisions, overLimit]),
    [
      [5, 1],
      [15, 2],
      [15, 2],
    ],
  );
});

test('a control plane that has had no reports for long does not hide what the others know', (t) => {
  const one = toHistoryJson(slotsOf(3, 1, 10), '15m', nowMs);
  const other = toHistoryJson(slotsOf(3, 60, 5), '15m', nowMs);
  t.is(mergeHistories(one, [other]).slots.length, 3 + 2);
});

test('a quarter of an hour has slots of 5 seconds, an hour those of 20, and both the same rates', (t) => {
  const slots = slotsOf(720, 2, 50);
  const quarter = toHistoryJson(slots, '15m', nowMs);
  t.is(quarter.slots.length, 178);
  t.true(quarter.slots.every(({ decisions }) => decisions === 50));
  const hour = toHistoryJson(slots, '1h', nowMs);
  t.is(hour.slotSeconds, 20);
  t.is(hour.slots.length, 179);
  t.true(hour.slots.every(({ decisions }) => decisions === 200));
  t.true(hour.slots.every(({ at }) => Date.parse(at) % 20_000 === 0));
});

test('of a slot of 20 seconds that is not known as a whole nothing is told', (t) => {
  const slots = slotsOf(12, 0, 50).filter((_, index) => index !== 5);
  t.deepEqual(
    toHistoryJson(slots, '1h', nowMs).slots.map(({ decisions }) => decisions),
    [200, 200],
  );
});

test('the series of a rule add up, and others stay apart', (t) => {
  const series = (rule: string, hits: number[]) => ({ rule, hits, overLimit: [0], nearLimit: [1] });
  t.deepEqual(mergeSeries([series('a', [1, 2]), series('b', [1]), series('a', [3, 4])]), [
    { rule: 'a', hits: [4, 6], overLimit: [0], nearLimit: [2] },
    { rule: 'b', hits: [1], overLimit: [0], nearLimit: [1] },
  ]);
});
