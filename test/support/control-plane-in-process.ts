// The whole control plane in the process of the test: with its flags, on loopback ports, with its own state folder. A
// separate process (control-plane-process.ts) costs five times as much, and is for tests of signals and exit codes.
import { join } from 'node:path';
import { Command } from 'commander';
import { type ControlPlane, createControlPlane } from '../../control-plane/server/server.ts';
import { addFlags, overlayFlags } from '../../control-plane/server/settings/flags.ts';
import { controlPlaneTable } from '../../control-plane/server/settings/table.ts';
import { parseControlPlaneSettings } from '../../control-plane/server/settings.ts';
import { systemClock } from '../../shared/clock.ts';
import { createLog } from '../../shared/log.ts';
import { runInProcess } from './command-run.ts';
import { fetchAdmin } from './control-plane-process.ts';
import { freePort } from './free-port.ts';
import type { Owner } from './owner.ts';
import { createTemporaryFolder } from './temporary-folder.ts';

export interface ControlPlaneOptions {
  /** Flags of `serve`; they override those for its addresses and its state. */
  readonly flags: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Instead of one in a temporary folder. */
  readonly stateDirectory?: string;
  /** Instead of a free one, for tests that need to know it in advance. */
  readonly adminPort?: number;
}

export type ControlPlaneInProcess = Awaited<ReturnType<typeof createControlPlaneInProcess>>;

/** Not started yet; stopped after the test. Throws the problems of unusable settings. */
export async function createControlPlaneInProcess(
  t: Owner,
  { flags, env = {}, stateDirectory, adminPort }: ControlPlaneOptions,
) {
  const home = createTemporaryFolder(t);
  const xdsAddress = `127.0.0.1:${await freePort()}`;
  const adminAddress = `127.0.0.1:${adminPort ?? (await freePort())}`;
  const adminUrl = `http://${adminAddress}`;
  const environment = { PATH: process.env['PATH'], HOME: home, ...env };
  const command = new Command().exitOverride();
  addFlags(command, controlPlaneTable);
  const addresses = ['--xds-address', xdsAddress, '--admin-address', adminAddress];
  const state = ['--state-dir', stateDirectory ?? join(home, 'state')];
  command.parse([...addresses, ...state, ...flags], { from: 'user' });
  const parsed = parseControlPlaneSettings(
    overlayFlags(controlPlaneTable, environment, command.opts()),
  );
  if (!parsed.ok) throw new Error(parsed.problems.join('\n'));
  let output = '';
  const write = (line: string) => {
    output += line;
  };
  const log = createLog({ level: 'info', format: 'text', write });
  for (const warning of parsed.warnings) log.warning(warning);
  let current: ControlPlane | undefined;
  const stop = async () => {
    const life = current;
    current = undefined;
    await life?.stop();
  };
  t.teardown(stop);
  return {
    adminUrl,
    xdsAddress,
    /** Its log so far, over all its starts. */
    output: () => output,
    /** Resolves when its ports are open; rejects if it cannot start. */
    async start() {
      current = createControlPlane({
        settings: parsed.settings,
        ...{ log, auditLog: log, clock: systemClock, environment },
      });
      await current.start(new AbortController().signal);
    },
    stop,
    /** Runs a command with --admin-url. */
    async run(...args: readonly string[]) {
      const { code, out, err } = await runInProcess([...args, '--admin-url', adminUrl], {
        environment,
      });
      return { exitCode: code, stdout: out, stderr: err };
    },
    /** The status and the JSON of an answer of the admin API. */
    fetch: (path: string, init?: RequestInit) => fetchAdmin(adminUrl, path, init),
  };
}
