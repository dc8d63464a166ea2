// `npm run soak:rollout`: exit code 0 when every invariant held, otherwise 1 with the seeds that reproduce the
// violation.
import { parseArgs } from 'node:util';
import { readFlags, toSeed } from '../../support/read-flags.ts';
import { drawWalk } from './draw-walk.ts';
import { runWalk } from './run-walk.ts';
import { runWalks } from './run-walks.ts';
import { shrink } from './shrink.ts';

const usage = `Usage: npm run soak:rollout -- [flags]

Random walks of a simulated fleet, each checked every second for what a rollout may never do.

  --walks N      how many; default 2000
  --seed N       of the first one, the others follow; default: others each time
  --findings N   after so many it ends; default 5
  --no-shrink    shows a finding as it is, not the least that leads to it
  --trace        shows all of the walk with this seed
`;

const flags = readFlags(usage, () => {
  const { values } = parseArgs({
    allowNegative: true,
    options: {
      walks: { type: 'string', default: '2000' },
      seed: { type: 'string' },
      findings: { type: 'string', default: '5' },
      shrink: { type: 'boolean', default: true },
      trace: { type: 'boolean', default: false },
      help: { type: 'boolean' },
    },
  });
  const walks = Number(values.walks);
  const mostFindings = Number(values.findings);
  const seed = toSeed(values.seed);
  const areGood = [walks, mostFindings].every((each) => Number.isInteger(each) && each > 0);
  const isRun = values.help !== true && areGood && Number.isInteger(seed) && seed >= 0;
  const { shrink: shrinks, trace } = values;
  return isRun ? { walks, mostFindings, seed, shrinks, trace } : undefined;
});
const { walks, mostFindings, seed, shrinks, trace } = flags;
const say = (line: string) => void process.stdout.write(`${line}\n`);
if (trace) {
  const small = await shrink(drawWalk(seed));
  const result = await runWalk(small.walk, true);
  for (const line of result.events) say(line);
  say(`${result.finding}`);
  process.exit(0);
}
const findings = await runWalks({ firstSeed: seed, walks, mostFindings, shrinks, say });
process.exit(findings.length === 0 ? 0 : 1);
