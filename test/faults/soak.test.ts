// The soak of every test run: a minute of random faults; SOAK_SEED=n selects others. `npm run soak` runs for longer.
import test from 'ava';
import { runSoak } from './soak/run-soak.ts';

const seconds = 60;
/** The default seed covers Redis that fails, a memory cache, and Redis with a failure mode. */
const seed = Number(process.env['SOAK_SEED'] ?? 7);

test('a minute of faults at random: every invariant holds', async (t) => {
  t.timeout(4 * 60_000);
  const violations = await runSoak({ seconds, seed, log: (line) => t.log(line) });
  t.deepEqual(violations, []);
});
