// Who stops what a fixture has started: the test, its file, or whoever asked for it.
import type { ExecutionContext, TestFn } from 'ava';

/** A test, or what takes its place. What was started last is stopped first. */
export type Owner = Pick<ExecutionContext, 'teardown'>;

/** For what all tests of a file use. To be called before the first of them runs. */
export function ownedByFile(test: TestFn): Owner {
  const stops: (() => unknown)[] = [];
  test.after.always(async () => {
    for (const stop of stops.reverse()) await stop();
  });
  return { teardown: (stop) => void stops.push(stop) };
}

/** Stopped by its own `stop` alone. */
export const unowned: Owner = { teardown() {} };
