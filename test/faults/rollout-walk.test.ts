// Random walks as every run of the tests has them, WALK_SEED=n to begin with the one that failed. `npm run
// soak:rollout` takes others, and more of them.
import test from 'ava';
import { runWalks } from './rollout-walk/run-walks.ts';

const firstSeed = Number(process.env['WALK_SEED'] ?? 1);
/** About 15 s of one core. */
const walks = 120;

test('whatever happens to a fleet, no rollout does what it may never do', async (t) => {
  t.timeout(5 * 60_000);
  const findings = await runWalks({
    firstSeed,
    walks,
    mostFindings: 3,
    shrinks: true,
    say: (line) => t.log(line),
  });
  t.deepEqual(findings, []);
});
