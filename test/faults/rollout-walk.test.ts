// The random walks of every test run; WALK_SEED=n starts with the one that failed. `npm run soak:rollout` takes other
// walks, and more of them.
import test from 'ava';
import { drawWalk } from './rollout-walk/draw-walk.ts';
import { runWalk } from './rollout-walk/run-walk.ts';
import { runWalks } from './rollout-walk/run-walks.ts';

const firstSeed = Number(process.env['WALK_SEED'] ?? 1);
/** About 5 s of one core. */
const walks = 40;

test.serial('whatever happens to a fleet, no rollout violates an invariant', async (t) => {
  // Twenty other programs may compete for the processor.
  t.timeout(20 * 60_000);
  const findings = await runWalks({
    firstSeed,
    walks,
    mostFindings: 3,
    shrinks: true,
    say: (line) => t.log(line),
  });
  t.deepEqual(findings, []);
});

test.serial('a seed gives the same walk each time, whatever was walked before', async (t) => {
  const trace = async (seed: number) => (await runWalk(drawWalk(seed), true)).events;
  // Control planes stop, start again and write files in all of them.
  for (const seed of [1, 2]) {
    const first = await trace(seed);
    t.true(first.length > 10);
    await trace(seed + 10);
    t.deepEqual(await trace(seed), first);
  }
});
