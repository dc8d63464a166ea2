// How rollout steps are read, as lines for review: rollout-steps.txt. `REWRITE=1` writes the current results.
import test from 'ava';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import { parseRolloutSteps } from './rollout-steps.ts';

/** `COUNT steps` stands for that many steps. */
testLines(test, new URL('rollout-steps.txt', import.meta.url), (given) => {
  const text = given.replace(/^(\d+) steps/, (_, count: string) =>
    Array.from({ length: Number(count) }, (_each, index) => `${index + 1}%:1s`).join(),
  );
  const result = parseRolloutSteps(text);
  if (!result.ok) return result.reason;
  return result.steps.map(({ percent, holdMs }) => `${percent} % for ${holdMs} ms`).join(', ');
});
