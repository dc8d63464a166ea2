// Hears of changes of the entries of directories. What a change means is left to the callers.
import type { FSWatcher } from 'node:fs';
import { watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { errorText } from './errors.ts';

export interface DirectoryWatch {
  /** Watches exactly these directories from now on; those that do not exist are left out. */
  update(directories: readonly string[]): Promise<void>;
  /** Idempotent. */
  close(): void;
}

export interface DirectoryWatchDeps {
  /** `name` is the entry that was created, written, removed, renamed, or had its mode changed;
   * undefined when the system does not say. */
  onEvent(directory: string, name: string | undefined): void;
  /** A directory cannot be watched: `reason` says why. Said once per directory until it can. */
  onTrouble(directory: string, reason: string): void;
}

export function createDirectoryWatch({ onEvent, onTrouble }: DirectoryWatchDeps): DirectoryWatch {
  const watched = new Map<string, { readonly identity: string; readonly watcher: FSWatcher }>();
  const troubled = new Set<string>();
  let closed = false;

  function drop(directory: string): void {
    watched.get(directory)?.watcher.close();
    watched.delete(directory);
  }

  function trouble(directory: string, error: unknown): void {
    drop(directory);
    if (troubled.has(directory)) return;
    troubled.add(directory);
    onTrouble(directory, errorText(error));
  }

  async function add(directory: string): Promise<void> {
    const identity = await stat(directory).then(
      // The number of an inode that was freed may be given out again.
      ({ dev, ino, birthtimeMs }) => `${dev} ${ino} ${birthtimeMs}`,
      () => undefined,
    );
    if (closed || identity === watched.get(directory)?.identity) return;
    // Another directory took this name: the watch still hears of the old one.
    drop(directory);
    if (identity === undefined) return;
    try {
      const watcher = watch(directory, (_type, name) => onEvent(directory, name ?? undefined));
      watcher.on('error', (error) => trouble(directory, error));
      watched.set(directory, { identity, watcher });
      troubled.delete(directory);
    } catch (error) {
      trouble(directory, error);
    }
  }

  return {
    async update(directories) {
      const wanted = new Set(directories);
      for (const directory of [...watched.keys()]) {
        if (!wanted.has(directory)) drop(directory);
      }
      for (const directory of wanted) await add(directory);
    },
    close() {
      closed = true;
      for (const directory of [...watched.keys()]) drop(directory);
    },
  };
}
