// `npm run soak:rollout`: exit code 0 when every invariant held, else 1 with the seeds that repeat it.
import { parseArgs } from 'node:util';
import { drawWalk } from './draw-walk.ts';
import { runWalk } from './run-walk.ts';
import { runWalks } from './run-walks.ts';
import { shrink } from './shrink.ts';

const { values } = parseArgs({
  allowNegative: true,
  options: {
    walks: { type: 'string', default: '2000' },
    seed: { type: 'string' },
    findings: { type: 'string', default: '5' },
    shrink: { type: 'boolean', default: true },
    trace: { type: 'boolean', default: false },
  },
});
const say = (line: string) => void process.stdout.write(`${line}\n`);
const seed = Number(values.seed ?? Math.floor(Math.random() * 1_000_000));
if (values.trace) {
  const small = await shrink(drawWalk(seed));
  const result = await runWalk(small.walk, true);
  for (const line of result.events) say(line);
  say(`${result.finding}`);
  process.exit(0);
}
const findings = await runWalks({
  firstSeed: seed,
  walks: Number(values.walks),
  mostFindings: Number(values.findings),
  shrinks: values.shrink,
  say,
});
process.exit(findings.length === 0 ? 0 : 1);
