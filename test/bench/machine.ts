// The machine and the code version of a result; never the owner of the machine.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

export type Machine = ReturnType<typeof describeMachine>;

const idleSampleMs = 1_000;

/** The share of the processors' time that other programs use while the benchmark is idle. */
export async function measureOtherWork(): Promise<number> {
  const before = readProcessorTimes();
  await sleep(idleSampleMs);
  const after = readProcessorTimes();
  return (after.busy - before.busy) / (after.all - before.all);
}

function readProcessorTimes(): { busy: number; all: number } {
  // cpu user nice system idle iowait irq softirq steal; the following fields are contained in user and nice.
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
    // Only the version: the rest may name the builder.
    kernel: `${type()} ${/^[\d.]+/.exec(release())?.[0] ?? ''}`.trim(),
    node: process.version,
    /** Undefined outside a repository; ends in `+` if files have been changed. */
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
