// The soak as every run of the tests has it: a minute of random faults. `npm run soak` goes on for longer.
import test from 'ava';
import { runSoak } from './soak/run-soak.ts';

const seconds = 60;
const seed = Number(process.env['SOAK_SEED'] ?? 1);

test('a minute of faults at random: every invariant holds', async (t) => {
  t.timeout(4 * 60_000);
  const violations = await runSoak({ seconds, seed, say: (line) => t.log(line) });
  t.deepEqual(violations, []);
});
