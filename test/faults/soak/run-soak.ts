// A random soak from a seed: one worker after another, each with a different configuration, under load and faults; at
// the end it reports whether every invariant held, and the faults.
import { createControlPlaneProcess } from '../../support/control-plane-process.ts';
import { createRandom } from '../../support/random.ts';
import { createRulesFolder } from '../../support/rules-folder.ts';
import { configurations } from './configuration.ts';
import { runEpisode } from './episode.ts';
import { createFindings, type Findings } from './findings.ts';
import { rulesOf } from './rules-changer.ts';

export interface SoakOptions {
  readonly seconds: number;
  readonly seed: number;
  readonly log: (line: string) => void;
}

/** The minimum time for a worker. */
const shortestEpisodeSeconds = 18;
const logEveryMs = 10_000;

/** Resolves with the violations. */
export async function runSoak({ seconds, seed, log }: SoakOptions): Promise<readonly string[]> {
  const random = createRandom(seed);
  const findings = createFindings();
  const endings: (() => unknown)[] = [];
  const cleanUp = { teardown: (end: () => unknown) => void endings.unshift(end) };
  const episodes = Math.min(
    configurations.length,
    Math.max(1, Math.floor(seconds / shortestEpisodeSeconds)),
  );
  const first = random.below(configurations.length);
  const beganMs = performance.now();
  const elapsed = () => Math.round((performance.now() - beganMs) / 1000);
  let current = '';
  const timer = setInterval(
    () => log(`${elapsed()} s, ${current}: ${toProgress(findings)}`),
    logEveryMs,
  );
  log(`soak of ${seconds} s with --seed ${seed}, ${episodes} workers`);
  try {
    const rules = createRulesFolder(cleanUp);
    const versions = { newest: 0 };
    rules.write('d.yaml', rulesOf(versions.newest));
    const plane = await createControlPlaneProcess(cleanUp, { flags: ['--config-dir', rules.path] });
    await plane.start();
    for (let index = 0; index < episodes && findings.violations.length === 0; index++) {
      const configuration = configurations[(first + index) % configurations.length];
      if (configuration === undefined) break;
      current = configuration.name;
      await runEpisode({
        configuration,
        name: `e${index}v`,
        seconds: seconds / episodes,
        seed: seed + 2 * index + 1,
        rules,
        xdsPort: Number(plane.xdsAddress.split(':')[1]),
        versions,
        findings,
        log,
      });
    }
  } finally {
    clearInterval(timer);
    for (const end of endings) await end();
  }
  for (const line of toSummary(findings, elapsed(), seed)) log(line);
  return findings.violations;
}

function toProgress({ answers, faults, violations }: Findings): string {
  const { ok, over, failed } = answers;
  return `${ok} OK, ${over} over, ${failed} failed, ${sum(faults)} faults, ${violations.length} violations`;
}

function toSummary(findings: Findings, seconds: number, seed: number): string[] {
  const { answers, faults, checks, violations } = findings;
  const { ok, over, failed } = answers;
  return [
    `soak of ${seconds} s with --seed ${seed}`,
    `requests: ${ok + over + failed} (${ok} OK, ${over} over, ${failed} failed)`,
    `faults: ${sum(faults)}`,
    ...list(faults),
    `rules: ${findings.goodPushes} good changes, ${findings.badPushes} bad ones`,
    `longest recovery after a repair: ${findings.longestRecoveryMs} ms, with its proof`,
    'invariants checked:',
    ...list(checks),
    `violations: ${violations.length}`,
    ...violations.map((text) => `  ${text}`),
  ];
}

function list(counts: ReadonlyMap<string, number>): string[] {
  return [...counts].sort().map(([name, count]) => `  ${name}: ${count}`);
}

function sum(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((total, count) => total + count, 0);
}
