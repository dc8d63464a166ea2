// The programs that tests start as processes: those of the bundle that a run of all tests has made (TEST_PROGRAMS is its
// folder), else the sources, as where a single file is run by hand and where mutants are.
import { join, resolve } from 'node:path';
import packageFile from '../../package.json' with { type: 'json' };

const sources = {
  worker: 'worker/main.ts',
  'control-plane': 'control-plane/main.ts',
  client: 'worker/client.ts',
} as const;

export type Program = keyof typeof sources;

const { TEST_PROGRAMS: bundle, NODE_COMPILE_CACHE: cache } = process.env;

/** What `npm run worker` gives to Node. */
export const workerNodeFlags: readonly string[] =
  packageFile.scripts.worker.match(/(?<=\s)--\S+/g) ?? [];

export function programFile(name: Program): string {
  const path = sources[name];
  return bundle === undefined
    ? join(import.meta.dirname, '..', '..', path)
    : resolve(bundle, path.replace(/\.ts$/, '.js'));
}

/** On the Node of the tests. */
export function programCommand(name: Program): string[] {
  const flags = name === 'worker' ? workerNodeFlags : [];
  return [process.execPath, ...flags, programFile(name)];
}

/** For programs that get an environment of their own: sources start in half of the CPU time with it. */
export const programEnvironment: Readonly<Record<string, string>> =
  bundle === undefined && cache !== undefined ? { NODE_COMPILE_CACHE: cache } : {};
