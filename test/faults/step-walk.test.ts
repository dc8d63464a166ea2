// Random walks of the three pure steps; STEP_SEED=n starts with the one that failed. `npm run soak:steps` takes more of
// them.
import { setImmediate as nextTurn } from 'node:timers/promises';
import test from 'ava';
import { walk } from './step-walk/walk.ts';

const firstSeed = Number(process.env['STEP_SEED'] ?? 1);
/** About 15 s of one core. */
const walks = 250;

test.serial(
  'in whatever order the effects of a fleet are done, no invariant is violated',
  async (t) => {
    t.timeout(10 * 60_000);
    for (let seed = firstSeed; seed < firstSeed + walks; seed++) {
      // A process that never handles its messages is considered hanging, and its extended timeout is not received.
      await nextTurn();
      const { finding, lines } = walk(seed);
      t.is(finding, undefined, [`STEP_SEED=${seed}`, ...lines].join('\n'));
      if (finding !== undefined) return;
    }
  },
);

test.serial('a seed gives the same walk each time', (t) => {
  for (const seed of [1, 2, 3]) t.deepEqual(walk(seed, true), walk(seed, true));
});
