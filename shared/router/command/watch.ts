// `serve --watch`: the command runs as a child, and is restarted when a file of the project has changed. Modules
// cannot be unloaded, so a process is what is replaced.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { watch } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { StartError } from '../errors.ts';

/** Editors write a file in several steps. */
const settleMs = 100;
/** Requests under way have this time to end; those of events never do. */
const endMs = 1_000;

const hidden = /(?:^|[/\\])(?:\.|node_modules)/;
const module = /\.[cm]?[jt]sx?$/;

/** Whether the application is restarted for a change of this file. Other files than modules it may write itself: a
 * database, a log, uploads; each start would lead to the next. */
export function isWatched(name: string): boolean {
  return module.test(name) && !hidden.test(name);
}

export interface Watching {
  /** Ends the child. */
  stop(): Promise<void>;
}

/**
 * Watches a folder without hidden ones and packages. `command` is the program with its arguments. Rejects with a
 * StartError where it cannot be started; where it cannot be restarted, that is reported, and the next change tries again.
 */
export async function startWatching(
  folder: string,
  command: readonly [string, ...string[]],
  tell: (text: string) => void,
): Promise<Watching> {
  let child = await start(command).catch((error: Error) => {
    throw new StartError([error.message], { cause: error });
  });
  let restarting = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;

  async function restart(): Promise<void> {
    await end(child);
    if (isOver) return;
    try {
      child = await start(command);
    } catch (error) {
      tell(`${error instanceof Error ? error.message : error}; the next change tries it again`);
    }
  }

  function changed(_event: string, name: string | null): void {
    if (name !== null && !isWatched(name)) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      restarting = restarting.then(restart);
    }, settleMs);
  }

  // A recursive watcher would watch all packages too.
  const watchers = [watch(folder, changed)];
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const isOurs = !entry.name.startsWith('.') && entry.name !== 'node_modules';
    if (!entry.isDirectory() || !isOurs) continue;
    watchers.push(watch(join(folder, entry.name), { recursive: true }, changed));
  }
  return {
    async stop() {
      isOver = true;
      clearTimeout(timer);
      for (const watcher of watchers) watcher.close();
      await restarting;
      await end(child);
    },
  };
}

/** Rejects with an Error that names the program. */
async function start([program, ...args]: readonly [string, ...string[]]): Promise<ChildProcess> {
  try {
    const child = spawn(program, args, { stdio: 'inherit' });
    await once(child, 'spawn');
    return child;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : cause;
    throw new Error(`cannot start ${program}: ${reason}`, { cause });
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), endMs);
  await ended;
  clearTimeout(timer);
}
