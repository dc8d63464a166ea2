#!/usr/bin/env node
// The command: serves a folder of controllers, or lists what would be served.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { endWhenOutputIsClosed } from '../../closed-output.ts';
import { type HostPort, parseHostPort } from '../../host-port.ts';
import { endWithNpx, listenForStopSignals } from '../../stop-signals.ts';
import { readVersion } from '../../version.ts';
import { type App, type AppOptions, createApp } from '../app.ts';
import { StartError } from '../errors.ts';
import { choosePrefixes, findRoot } from '../table/module-tree.ts';
import { toPathText } from '../table/route-list.ts';
import { createDevelopment } from './development.ts';
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
    note(`methods served: ${app.routes.length}`);
  });

withPrefix(program.command('routes').description('print the methods that would be served')).action(
  async ({ prefix }: PrefixOptions) => {
    const { routes } = await loadApp(prefix);
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

/** Uses `node --watch`, since modules cannot be unloaded: for the folders of controllers, and for the modules that are
 * beside them at the start. A file that an application writes, such as a database, does not restart it. */
async function serveWatched(prefixes: readonly string[]): Promise<Pick<Serving, 'stop'>> {
  const folders = await Promise.all(prefixes.map(findRoot));
  const modules = globSync('**/*.{ts,cts,mts,tsx,js,cjs,mjs,jsx}', {
    exclude: (path) => /(?:^|[\\/])(?:\.|node_modules$)/.test(path),
  });
  const watched = [...folders, ...modules].map((path) => `--watch-path=${path}`);
  const args = process.argv.slice(1).map((arg) => (arg === '--watch' ? '--develop' : arg));
  const flags = [...process.execArgv, ...watched, '--watch-preserve-output'];
  const child = spawn(process.execPath, [...flags, ...args], { stdio: 'inherit' });
  const ended = once(child, 'exit');
  return {
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

function toAddress(text: string): HostPort {
  const address = parseHostPort(text, 0);
  if (!address.ok) throw new InvalidArgumentError(`It is not host:port: ${address.reason}.`);
  const { host, port } = address.value;
  return { host: host || 'localhost', port };
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Human-readable: on standard error, so a program that reads the output does not see it. */
function note(line: string): void {
  process.stderr.write(`${line}\n`);
}
