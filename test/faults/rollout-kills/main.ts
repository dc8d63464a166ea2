// `npm run soak:kills`: exit code 0 when every round ended correctly, otherwise 1 with the violations.
import { parseArgs } from 'node:util';
import { readFlags, toSeed } from '../../support/read-flags.ts';
import {
  type Fault,
  faults,
  type RoundsResult,
  runRounds,
  type Source,
  sources,
} from './run-rounds.ts';

const usage = `Usage: npm run soak:kills -- [flags]

Kills, ends and freezes real control planes at the steps of rollouts, with their record in Redis, etcd and Git: a good revision
must arrive everywhere, a bad one reach no more than its first step and leave it again.

  --rounds N   of each fault on each source; default 20
  --source S   redis, etcd or git; default: all
  --fault F    SIGKILL, SIGTERM or SIGSTOP; default: all
  --seed N     the moments of an earlier run; default: others each time
`;

const flags = readFlags(usage, () => {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '20' },
      source: { type: 'string' },
      fault: { type: 'string' },
      seed: { type: 'string' },
      help: { type: 'boolean' },
    },
  });
  const rounds = Number(values.rounds);
  const seed = toSeed(values.seed);
  const chosen = {
    sources: sources.filter((each) => each === (values.source ?? each)),
    faults: faults.filter((each) => each === (values.fault ?? each)),
  };
  const areGood = Number.isInteger(rounds) && rounds > 0 && Number.isInteger(seed) && seed >= 0;
  const isEmpty = chosen.sources.length === 0 || chosen.faults.length === 0;
  return values.help === true || !areGood || isEmpty ? undefined : { rounds, seed, ...chosen };
});
const { rounds, seed } = flags;
const log = (line: string) => void process.stdout.write(`${line}\n`);
const results: { source: Source; fault: Fault; result: RoundsResult }[] = [];
for (const fault of flags.faults) {
  // Rounds mostly wait.
  const ran = await Promise.all(
    flags.sources.map(async (source) => ({
      source,
      fault,
      result: await runRounds({ source, fault, rounds, seed, log }),
    })),
  );
  results.push(...ran);
}
for (const { source, fault, result } of results) {
  const { good, bad, worstSeconds, worstAfterRepairSeconds, mostNotified } = result;
  log(
    `${source}, ${fault}: ${good} good ones arrived, ${bad} bad ones were taken back, each from ${mostNotified} at most; at most ${worstSeconds.toFixed(1)} s from the change, ${worstAfterRepairSeconds.toFixed(1)} s from the repair`,
  );
}
const findings = results.flatMap(({ result }) => result.findings);
log(`--seed ${seed}, ${findings.length} findings`);
for (const finding of findings) log(`  ${finding}`);
process.exit(findings.length === 0 ? 0 : 1);
