// Breaks a few control planes during a rollout: `npm run soak:kills` runs for longer.
import test from 'ava';
import { runRounds } from './rollout-kills/run-rounds.ts';

/** The seeds break it when a worker has the revision, and repair it before a term has passed. */
for (const { fault, seed, good, bad } of [
  { fault: 'SIGKILL', seed: 21, good: 1, bad: 0 },
  { fault: 'SIGTERM', seed: 6, good: 0, bad: 1 },
] as const) {
  const what = good === 1 ? 'what is good arrives everywhere' : 'what is bad goes no further';
  test(`${fault} in the middle of a rollout: ${what}`, async (t) => {
    t.timeout(5 * 60_000);
    const log = (line: string) => t.log(line);
    const result = await runRounds({ source: 'redis', fault, rounds: 1, seed, log });
    t.deepEqual(result.findings, []);
    t.like(result, { good, bad });
  });
}
