#!/usr/bin/env node
// The command: serves a folder of controllers, or lists what would be served.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as setTimeoutPromise } from 'node:timers/promises';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { endWhenOutputIsClosed } from '../../closed-output.ts';
import type { HostPort } from '../../host-port.ts';
import { endWithNpx, listenForStopSignals } from '../../stop-signals.ts';
import { readVersion } from '../../version.ts';
import { type App, type AppOptions, createApp } from '../app.ts';
import { StartError } from '../errors.ts';
import { nearestName } from '../near-names.ts';
import { choosePrefixes, findRoot } from '../table/module-tree.ts';
import { toPathText } from '../table/route-list.ts';
import { createDevelopment } from './development.ts';
import { parseListenAddress } from './listen-address.ts';
import { type Serving, startServing } from './serve.ts';

interface PrefixOptions {
  readonly prefix: readonly string[];
}

interface ServeOptions extends PrefixOptions {
  readonly host: HostPort;
  readonly requireGuards: boolean;
  readonly watch: boolean;
  /** Set for the child of `--watch`. */
  readonly develop: boolean;
}

let serving: Pick<Serving, 'stop'> | undefined;

listenForStopSignals(
  () => {
    if (serving === undefined) process.exit(0);
    void serving.stop().finally(() => process.exit(0));
  },
  () => process.exit(0),
);
endWithNpx(process.env['npm_lifecycle_event']);

endWhenOutputIsClosed();

/** The name by which it was called: that of the package, or `npm run router` in the repository. */
const name = import.meta.filename.endsWith('.js') ? 'ratelane-router' : 'router';

const program = new Command(name)
  .version(readVersion(), '--version', 'print the version')
  .exitOverride()
  .description('Serves controllers by convention: METHOD /module/class/positionals?keywords')
  .showHelpAfterError();

withPrefix(
  program
    .command('serve', { isDefault: true })
    .description('serve controllers over HTTP until SIGTERM'),
)
  .addOption(
    new Option('--host <host:port>', 'where to listen; port 0 takes a free one')
      .argParser(toAddress)
      .default({ host: 'localhost', port: 8000 }, 'localhost:8000'),
  )
  .option('--require-guards', 'do not start while a method has no guard and no open()', false)
  .option(
    '--watch',
    'restart when a controller or a module beside their folder changes; show errors',
    false,
  )
  .addOption(new Option('--develop').hideHelp().default(false))
  .action(async ({ prefix, host, requireGuards, watch, develop }: ServeOptions) => {
    if (watch) {
      serving = await serveWatched(choosePrefixes(prefix, process.env));
      return;
    }
    const app = await loadApp(prefix, { requireGuards, ...(develop && createDevelopment(note)) });
    const started = await startServing(app, host);
    serving = started;
    print(`listening on ${started.url}`);
    if (app.routes.length === 0) warnOfNone(prefix);
    else note(`methods served: ${app.routes.length}, from ${placesOf(prefix)}`);
  });

withPrefix(program.command('routes').description('print what would be served')).action(
  async ({ prefix }: PrefixOptions) => {
    const { routes } = await loadApp(prefix);
    if (routes.length === 0) warnOfNone(prefix);
    const rows = routes.map((entry) => [entry.route.verb, toPathText(entry), entry.route.name]);
    const [verbs = 0, paths = 0] = [0, 1].map((at) =>
      Math.max(...rows.map((row) => row[at]?.length ?? 0)),
    );
    for (const [verb = '', path = '', name] of rows) {
      print(`${verb.padEnd(verbs)}  ${path.padEnd(paths)}  ${name}`);
    }
  },
);

withPrefix(program.command('openapi').description('print the OpenAPI 3.1 document'))
  .option('--title <title>', 'title of the document', 'API')
  .option('--api-version <version>', 'version of the API', '0.0.0')
  .action(
    async (options: PrefixOptions & { readonly title: string; readonly apiVersion: string }) => {
      const { prefix, title, apiVersion: version } = options;
      const app = await loadApp(prefix, { info: { title, version } });
      print(JSON.stringify(app.describe(), null, 2));
    },
  );

refuseUnknownCommand(process.argv[2]);

try {
  await program.parseAsync();
} catch (error) {
  // Commander has printed it already; requested help has the code 0.
  if (error instanceof CommanderError) {
    process.exitCode = error.exitCode === 0 ? 0 : 2;
  } else if (error instanceof StartError) {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  } else {
    throw error;
  }
}

/** An unknown command would be reported as an excess argument of `serve`. */
function refuseUnknownCommand(given: string | undefined): void {
  const names = [...program.commands.map((command) => command.name()), 'help'];
  if (given === undefined || given.startsWith('-') || names.includes(given)) return;
  const meant = nearestName(given, names);
  const hint = meant === undefined ? '' : `\n(Did you mean ${meant}?)`;
  process.stderr.write(`error: unknown command '${given}'${hint}\n`);
  process.exit(2);
}

function withPrefix(command: Command): Command {
  return command.addOption(
    new Option('--prefix <path>', 'folder of controllers; repeatable, and the later one wins')
      .argParser((path: string, paths: readonly string[]) => [...paths, path])
      .default([], 'ENDPOINTS_PREFIX, else ./controllers'),
  );
}

function loadApp(prefix: readonly string[], options: AppOptions = {}): Promise<App> {
  return createApp({ controllerPrefix: prefix, env: process.env, ...options });
}

/** Paths below the working directory, at any depth, except the folders of controllers. */
async function listModules(without: readonly string[], folder = '.'): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const lists = entries.map(async (entry) => {
    const path = join(folder, entry.name);
    if (/^(?:\.|node_modules$)/.test(entry.name) || without.includes(resolve(path))) return [];
    if (entry.isDirectory()) return listModules(without, path);
    return /\.[cm]?[jt]sx?$/.test(path) ? [path] : [];
  });
  return (await Promise.all(lists)).flat();
}

/** The interval at which new modules are searched for. */
const listingMs = 1_000;

/** Uses `node --watch`, since modules cannot be unloaded. A file that an application writes, such as a database, does
 * not restart it. */
async function watchModules(folders: readonly string[], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const modules = await listModules(folders);
    const watched = [...folders, ...modules].map((path) => `--watch-path=${path}`);
    const args = process.argv.slice(1).map((arg) => (arg === '--watch' ? '--develop' : arg));
    const flags = [...process.execArgv, ...watched, '--watch-preserve-output'];
    const child = spawn(process.execPath, [...flags, ...args], { stdio: 'inherit' });
    const ended = once(child, 'exit');
    do await setTimeoutPromise(listingMs, undefined, { signal }).catch(() => {});
    while (
      !signal.aborted &&
      isRunning(child) &&
      String(await listModules(folders)) === String(modules)
    );
    if (!isRunning(child)) return;
    child.kill('SIGTERM');
    await ended;
  }
}

function isRunning({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null;
}

async function serveWatched(prefixes: readonly string[]): Promise<Pick<Serving, 'stop'>> {
  const over = new AbortController();
  const watching = watchModules(await Promise.all(prefixes.map(findRoot)), over.signal);
  return {
    async stop() {
      over.abort();
      await watching;
    },
  };
}

function warnOfNone(prefix: readonly string[]): void {
  note(`no controller in ${placesOf(prefix)}`);
}

function placesOf(prefix: readonly string[]): string {
  return choosePrefixes(prefix, process.env).join(', ');
}

function toAddress(text: string): HostPort {
  const address = parseListenAddress(text);
  if (address === undefined) {
    const hint = /^\d+$/.test(text) ? ` For a port alone write :${text}.` : '';
    throw new InvalidArgumentError(`It is not host:port.${hint}`);
  }
  return address;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Human-readable: on standard error, so a program that reads the output does not see it. */
function note(line: string): void {
  process.stderr.write(`${line}\n`);
}
