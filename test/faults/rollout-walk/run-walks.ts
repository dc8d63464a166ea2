// Runs walks one after another, each with its own seed, and reports how many, what happened, and the violations.
import { drawWalk } from './draw-walk.ts';
import { runWalk } from './run-walk.ts';
import { shrink } from './shrink.ts';

export interface WalksOptions {
  readonly firstSeed: number;
  readonly walks: number;
  readonly mostFindings: number;
  readonly shrinks: boolean;
  readonly say: (line: string) => void;
}

const shownEvents = 25;

/** Resolves with the violations. */
export async function runWalks(options: WalksOptions): Promise<readonly string[]> {
  const { firstSeed, walks, mostFindings, say } = options;
  const findings: string[] = [];
  const checks = new Map<string, number>();
  const needed: string[] = [];
  let events = 0;
  let seconds = 0;
  let seed = firstSeed;
  const beganMs = performance.now();
  for (; seed < firstSeed + walks && findings.length < mostFindings; seed++) {
    const result = await runWalk(drawWalk(seed));
    events += result.events.length;
    seconds += result.seconds;
    if (result.needed !== undefined) needed.push(`seed ${seed}: ${result.needed}`);
    for (const [check, count] of result.checks) checks.set(check, (checks.get(check) ?? 0) + count);
    if (result.finding === undefined) continue;
    findings.push(`WALK_SEED=${seed}: ${result.finding}`);
    say(`WALK_SEED=${seed}: ${result.finding}`);
    if (!options.shrinks) continue;
    const small = await shrink(drawWalk(seed));
    const { plan, kind, workers, planes } = small.walk;
    say(`  of ${workers} workers at ${planes.join(', ')} (${kind}), ${plan}:`);
    for (const line of small.result.events.slice(-shownEvents)) say(`  ${line}`);
    say(`  ${small.result.finding}`);
  }
  const took = ((performance.now() - beganMs) / 1000).toFixed(1);
  say(
    `${seed - firstSeed} walks from seed ${firstSeed} in ${took} s: ${seconds} simulated seconds, ${events} events, ${findings.length} findings; ${needed.length} times somebody was needed`,
  );
  for (const [check, count] of checks) say(`  ${check}: ${count}`);
  for (const line of needed.slice(0, 5)) say(`  ${line}`);
  return findings;
}
