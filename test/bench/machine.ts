// The machine and the code that a result belongs to; never whose machine it is.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

export type Machine = ReturnType<typeof describeMachine>;

const idleSampleMs = 1_000;

/** How much of the processors' time goes to others, as long as the benchmark does nothing. */
export async function measureOtherWork(): Promise<number> {
  const before = readProcessorTimes();
  await sleep(idleSampleMs);
  const after = readProcessorTimes();
  return (after.busy - before.busy) / (after.all - before.all);
}

function readProcessorTimes(): { busy: number; all: number } {
  // cpu user nice system idle iowait irq softirq steal; what follows is contained in user and nice.
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n');
  const times = line.split(/ +/).slice(1, 9).map(Number);
  const all = times.reduce((sum, time) => sum + time, 0);
  return { busy: all - (times[3] ?? 0) - (times[4] ?? 0), all };
}

export function describeMachine() {
  return {
    processor: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryBytes: totalmem(),
    // The version alone: what comes behind it may name who built it.
    kernel: `${type()} ${/^[\d.]+/.exec(release())?.[0] ?? ''}`.trim(),
    node: process.version,
    /** Undefined outside a repository; ends in `+` when files were changed. */
    commit: readCommit(),
    date: new Date().toISOString().slice(0, 10),
  };
}

function readCommit(): string | undefined {
  const options = { cwd: import.meta.dirname, encoding: 'utf8' } as const;
  const commit = spawnSync('git', ['rev-parse', '--short=10', 'HEAD'], options);
  if (commit.status !== 0) return undefined;
  const changes = spawnSync(
    'git',
    ['status', '--porcelain', '--', ':/', ':!/test/bench/results'],
    options,
  );
  return commit.stdout.trim() + (changes.stdout.trim() === '' ? '' : '+');
}
