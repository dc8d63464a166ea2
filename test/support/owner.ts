// Owners stop what a fixture has started: the test, its file, or the caller.
import type { ExecutionContext, TestFn } from 'ava';

/** A test, or its substitute. The most recently started fixture is stopped first. */
export type Owner = Pick<ExecutionContext, 'teardown'>;

/** For fixtures that all tests of a file use. Call before the first of them runs. */
export function ownedByFile(test: TestFn): Owner {
  const stops: (() => unknown)[] = [];
  test.after.always(async () => {
    for (const stop of stops.reverse()) await stop();
  });
  return { teardown: (stop) => void stops.push(stop) };
}

/** Only stopped by its own `stop`. */
export const unowned: Owner = { teardown() {} };
