// `npm run soak`: exit code 0 when every invariant held, otherwise 1 with the seed that reproduces the violation.
import { parseArgs } from 'node:util';
import { readFlags, toSeed } from '../../support/read-flags.ts';
import { runSoak } from './run-soak.ts';

const usage = `Usage: npm run soak -- [flags]

Breaks the ways from workers to their stores and to their control plane at random, under load, and
checks what must hold all the while.

  --seconds N  how long; default 600
  --seed N     the faults of an earlier run; default: others each time
`;

const flags = readFlags(usage, () => {
  const { values } = parseArgs({
    options: { seconds: { type: 'string' }, seed: { type: 'string' }, help: { type: 'boolean' } },
  });
  const seconds = Number(values.seconds ?? 600);
  const seed = toSeed(values.seed);
  const areGood = Number.isInteger(seed) && seed >= 0 && Number.isFinite(seconds) && seconds >= 20;
  return values.help !== true && areGood ? { seconds, seed } : undefined;
});
const log = (line: string) => void process.stdout.write(`${line}\n`);
const violations = await runSoak({ ...flags, log });
if (violations.length > 0) {
  log(`failed; to repeat it: npm run soak -- --seconds ${flags.seconds} --seed ${flags.seed}`);
}
process.exit(violations.length === 0 ? 0 : 1);
