// Records which programs a test has started, and their last output, for the message of a failure.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { ChildProcess } from 'node:child_process';
import { basename } from 'node:path';

export interface ProgramOfTest {
  readonly command: string;
  /** `running`, or how it ended. */
  outcome(): string;
  lastLines(count: number): string[];
}

const storedCharacters = 8_000;
const started = new AsyncLocalStorage<ProgramOfTest[]>();

/** `run` runs a test; `programs` are those that it started, in order. */
export function collectPrograms(): {
  readonly programs: readonly ProgramOfTest[];
  run<T>(test: () => Promise<T>): Promise<T>;
} {
  const programs: ProgramOfTest[] = [];
  return { programs, run: (test) => started.run(programs, test) };
}

/** The output of a program that no test started is not recorded. */
export function noteProgram(child: ChildProcess): void {
  const programs = started.getStore();
  if (programs === undefined) return;
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer | string) => {
      text = `${text}${chunk}`.slice(-storedCharacters);
    });
  }
  programs.push({
    command: `${basename(child.spawnfile)} ${child.spawnargs.slice(1).join(' ')}`.slice(0, 200),
    outcome: () => {
      if (child.signalCode !== null) return `ended by ${child.signalCode}`;
      return child.exitCode === null ? 'running' : `ended with ${child.exitCode}`;
    },
    lastLines: (count) => text.trimEnd().split('\n').slice(-count),
  });
}
