// The programs that tests start as processes: those of the bundle that a run of all tests has built (TEST_PROGRAMS is
// its folder), otherwise the sources, as for a single file that is run by hand and for mutants.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import packageFile from '../../package.json' with { type: 'json' };

const sources = {
  worker: 'worker/main.ts',
  'control-plane': 'control-plane/main.ts',
  client: 'worker/client.ts',
} as const;

export type Program = keyof typeof sources;

const { TEST_PROGRAMS: bundle, NODE_COMPILE_CACHE: cache } = process.env;

/** The flags that `npm run worker` passes to Node. */
export const workerNodeFlags: readonly string[] =
  packageFile.scripts.worker.match(/(?<=\s)--\S+/g) ?? [];

export function programFile(name: Program): string {
  return bundle === undefined
    ? sourceFile(name)
    : resolve(bundle, sources[name].replace(/\.ts$/, '.js'));
}

/** On the Node of the tests. */
export function programCommand(name: Program): string[] {
  return toCommand(name, programFile(name));
}

/** For a test of what happens while a module is loaded: a bundle combines several modules. */
export function sourceCommand(name: Program): string[] {
  return toCommand(name, sourceFile(name));
}

function sourceFile(name: Program): string {
  return join(import.meta.dirname, '..', '..', sources[name]);
}

function toCommand(name: Program, file: string): string[] {
  return [process.execPath, ...(name === 'worker' ? workerNodeFlags : []), file];
}

/** For programs with their own environment: with it, sources start in half of the CPU time, those of the bundle in four
 * fifths. */
export const programEnvironment: Readonly<Record<string, string>> =
  cache === undefined ? {} : { NODE_COMPILE_CACHE: cache };

/** Runs a command to its end. With `closesEarly` the output is closed early, as by `head`. */
export async function runProgram(
  [file = '', ...args]: readonly string[],
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv; closesEarly?: boolean } = {},
) {
  const { cwd, closesEarly = false } = options;
  const env = { ...process.env, ...options.env };
  const child = spawn(file, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  if (closesEarly) child.stdout.destroy();
  const [out, err, [code, signal]] = await Promise.all([
    closesEarly ? '' : text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null, string | null]>,
  ]);
  return { code: code ?? signal, out, err };
}
