// `npm run soak:steps`: exit code 0 when every invariant held, otherwise 1 with the seeds that reproduce the violation.
import { parseArgs } from 'node:util';
import { walk } from './walk.ts';

/** `--trace`: prints the whole state, second by second. */
const { values } = parseArgs({
  options: {
    walks: { type: 'string', default: '10000' },
    seed: { type: 'string', default: '1' },
    findings: { type: 'string', default: '5' },
    trace: { type: 'boolean', default: false },
  },
});
let left = Number(values.findings);
const first = Number(values.seed);
const checks = new Map<string, number>();
let events = 0;
const beganMs = performance.now();
let seed = first;
for (; seed < first + Number(values.walks) && left > 0; seed++) {
  const result = walk(seed, values.trace);
  events += result.events;
  for (const [check, count] of result.checks) checks.set(check, (checks.get(check) ?? 0) + count);
  if (result.finding === undefined) continue;
  left--;
  console.log(
    [`seed ${seed}`, ...result.lines.slice(values.trace ? -60 : -40), result.finding, ''].join(
      '\n',
    ),
  );
}
const seconds = (performance.now() - beganMs) / 1000;
console.log(`${seed - first} walks in ${seconds.toFixed(1)} s, ${events} events`);
for (const [check, count] of checks) console.log(`  ${check}: ${count}`);
process.exit(left < Number(values.findings) ? 1 : 0);
