// The soak as every run of the tests has it: a minute of faults at random, SOAK_SEED=n for others.
// `npm run soak` goes on for longer.
import test from 'ava';
import { runSoak } from './soak/run-soak.ts';

const seconds = 60;
/** By itself: Redis that fails, a memory cache, and Redis with a failure mode. */
const seed = Number(process.env['SOAK_SEED'] ?? 7);

test('a minute of faults at random: every invariant holds', async (t) => {
  t.timeout(4 * 60_000);
  const violations = await runSoak({ seconds, seed, say: (line) => t.log(line) });
  t.deepEqual(violations, []);
});
