// A test process that ends early must also end the processes that it has started.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { noteProgram } from './programs-of-test.ts';

const running = new Set<ChildProcess>();

/** Kills the child when this process ends before it. */
export function endWithUs(child: ChildProcess): void {
  noteProgram(child);
  // One listener for all: tests start more servers at once than the number of listeners that Node expects.
  if (running.size === 0) process.once('exit', killAll);
  running.add(child);
  child.once('exit', () => {
    running.delete(child);
    if (running.size === 0) process.removeListener('exit', killAll);
  });
}

/** A process that a signal has ended has no exit code. */
export function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

/** Resolves when the process has ended. */
export async function kill(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}

function killAll(): void {
  for (const child of running) child.kill('SIGKILL');
}
