import test from 'ava';
import type { LimiterWindow } from './store.ts';
import { readStored, storeReading } from './stored-limiter.ts';

const limiter: LimiterWindow = {
  algorithm: 'sliding_window',
  limit: 100,
  capacity: 100,
  countsOver: false,
  windowStart: 1_200,
  windowSeconds: 60,
  isEven: true,
};
const startMs = limiter.windowStart * 1_000;
/** 7 hits of this window and 5 of the previous one, read 10 s after its start. */
const { stored } = storeReading(limiter, [5, 7, 10_000, 60_000], {
  wallMs: startMs + 10_000,
  monotonicMs: 0,
});
const at = (offsetMs: number) =>
  readStored(limiter, stored, { wallMs: startMs + offsetMs, monotonicMs: 0 });

test('a window becomes the previous one, and is then forgotten', (t) => {
  t.deepEqual(at(10_000), [5, 7, 10_000, 60_000]);
  t.deepEqual(at(59_999), [5, 7, 59_999, 60_000]);
  t.deepEqual(at(60_000), [7, 0, 0, 60_000]);
  t.deepEqual(at(119_999), [7, 0, 59_999, 60_000]);
  t.deepEqual(at(120_000), [0, 0, 0, 60_000]);
});

test('when the clock is set back, the hits count in the window of the new time', (t) => {
  t.deepEqual(at(-1), [5, 7, 59_999, 60_000]);
  t.deepEqual(at(-60_000), [5, 7, 0, 60_000]);
  t.deepEqual(at(-600_001), [5, 7, 59_999, 60_000]);
});

test('hits of windows with other boundaries count in the window in which theirs ended', (t) => {
  const shifted: LimiterWindow = { ...limiter, windowStart: 1_220 };
  const seenAt = (offsetMs: number) =>
    readStored(shifted, stored, { wallMs: startMs + offsetMs, monotonicMs: 0 });
  t.deepEqual(seenAt(30_000), [5, 7, 10_000, 60_000]);
  t.deepEqual(seenAt(80_000), [7, 0, 0, 60_000]);
});
