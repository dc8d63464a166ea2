import test from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import { createPipelineWindow } from './pipeline-window.ts';

const leavesAfter = (windowMs: number, sinceMs: number) => {
  const startedMs = systemClock.monotonicMs();
  return new Promise<number>((resolve) => {
    createPipelineWindow(windowMs, systemClock)(sinceMs, () =>
      resolve(systemClock.monotonicMs() - startedMs),
    );
  });
};

test('a window below a millisecond is waited for', async (t) => {
  t.true((await leavesAfter(0.9, systemClock.monotonicMs())) >= 0.85);
});

test('a window that has passed already is not waited for again', async (t) => {
  const waits: number[] = [];
  for (let turn = 0; turn < 20; turn++) {
    waits.push(await leavesAfter(0.9, systemClock.monotonicMs() - 1));
  }
  // The shortest, because the process may stand still at any time.
  t.true(Math.min(...waits) < 0.85);
});
