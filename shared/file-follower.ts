// Watches the rules files below a directory, and reads all of them in a consistent state.
// rules-directory.ts decides which files count.
import type { FSWatcher } from 'node:fs';
import { watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Clock } from './clock.ts';
import { errorText } from './errors.ts';
import { runInSlices } from './in-slices.ts';
import type { Log } from './log.ts';
import type { Problem } from './rules/problem/problem.ts';
import {
  type ListedFile,
  type Listing,
  type ListOptions,
  listRulesFiles,
  readRulesFiles,
} from './rules-directory.ts';
import type { RulesFile } from './rules-file.ts';

export interface FileFollower {
  list(): Promise<Listing>;
  /**
   * Repeats the reading until no file changed during it, so that a reading never mixes old files with new ones.
   * Unchanged files are not read again. Never rejects.
   */
  read(): Promise<Reading>;
  /** Watches exactly these directories until the next reading, skipping those that do not exist. */
  watch(directories: readonly string[]): Promise<void>;
  /** Stops watching, and forgets pending changes, until the next reading. */
  pause(): void;
  /** Idempotent. */
  close(): void;
}

export interface Reading {
  readonly listing: Listing;
  /** A file with the same text as in the last reading is the same object. */
  readonly files: readonly RulesFile[];
  /** Problems found while listing and reading. */
  readonly problems: readonly Problem[];
  /** How many times the files were read until they stopped changing. */
  readonly attempts: number;
}

export interface FileFollowerDeps {
  readonly files: ListOptions;
  /** Called in each reading, before the files are read. */
  directoriesToWatch(listing: Listing): Promise<readonly string[]>;
  /** Whether it matters that this entry of the directory was created, changed or removed. */
  isNews(directory: string, name: string): boolean;
  /** Called once for changes that arrive together. */
  onNews(): void;
  readonly timing: FollowerTiming;
  readonly log: Log;
  readonly clock: Clock;
}

/** All in milliseconds. */
export interface FollowerTiming {
  /** Changes are reported after this long without another change. */
  readonly quiet: number;
  /** The longest time from the first change until it is reported. */
  readonly patience: number;
  /** The caller reads this often without a notification, since some file systems send none. */
  readonly poll: number;
}

export const defaultFollowerTiming: FollowerTiming = { quiet: 50, patience: 250, poll: 10_000 };

/** How often files that change during a reading are read again before they are accepted as they are. */
export const maxRereads = 5;

/** A file that changed this shortly before it was read may change again with the same timestamp: file
 * systems have ticks of up to two seconds. */
const settledMs = 2_500;

/** A file as it was read. */
interface KnownFile {
  readonly file: RulesFile;
  readonly identity: string;
  /** Whether the same identity means the same content. */
  readonly isSettled: boolean;
}

export function createFileFollower(deps: FileFollowerDeps): FileFollower {
  const { files, timing, log, clock } = deps;
  /** The files as they were read last, by path. */
  let known: ReadonlyMap<string, KnownFile> = new Map();
  const watched = new Map<string, { readonly identity: string; readonly watcher: FSWatcher }>();
  const troubled = new Set<string>();
  let closed = false;
  let firstNewsMs: number | undefined;
  let cancelNews = () => {};

  function drop(directory: string): void {
    watched.get(directory)?.watcher.close();
    watched.delete(directory);
  }

  /** Logged once for each directory, until it can be watched. */
  function noteError(directory: string, error: unknown): void {
    drop(directory);
    if (troubled.has(directory)) return;
    troubled.add(directory);
    const seconds = timing.poll / 1000;
    log.warning(`Cannot watch ${directory} (${errorText(error)}): checking it every ${seconds}s`);
  }

  async function add(directory: string): Promise<void> {
    const identity = await stat(directory).then(
      // The number of an inode that was freed may be given out again.
      ({ dev, ino, birthtimeMs }) => `${dev} ${ino} ${birthtimeMs}`,
      () => undefined,
    );
    if (closed || identity === watched.get(directory)?.identity) return;
    // A new directory has this name now: the watch is still on the old one.
    drop(directory);
    if (identity === undefined) return;
    try {
      const watcher = watch(directory, (_type, name) => {
        // The system does not always report which entry changed.
        if (name === null || deps.isNews(directory, name)) noteNews();
      });
      watcher.on('error', (error) => noteError(directory, error));
      watched.set(directory, { identity, watcher });
      troubled.delete(directory);
    } catch (error) {
      noteError(directory, error);
    }
  }

  async function watchOnly(directories: readonly string[]): Promise<void> {
    const wanted = new Set(directories);
    for (const directory of [...watched.keys()]) if (!wanted.has(directory)) drop(directory);
    for (const directory of wanted) await add(directory);
  }

  function noteNews(): void {
    if (closed) return;
    const now = clock.monotonicMs();
    firstNewsMs ??= now;
    cancelNews();
    const waitMs = Math.min(timing.quiet, firstNewsMs + timing.patience - now);
    cancelNews = clock.after(Math.max(0, waitMs), () => {
      firstNewsMs = undefined;
      deps.onNews();
    });
  }

  function pause(): void {
    cancelNews();
    firstNewsMs = undefined;
    for (const directory of [...watched.keys()]) drop(directory);
  }

  function list(): Promise<Listing> {
    return listRulesFiles(files);
  }

  async function readChanged(
    listed: readonly ListedFile[],
  ): Promise<Pick<Reading, 'files' | 'problems'>> {
    const changed = listed.filter((file) => {
      const last = known.get(file.path);
      return last === undefined || last.identity !== file.identity || !last.isSettled;
    });
    const readMs = clock.wallMs();
    const read = await readRulesFiles(changed, files.bounds);
    const texts = new Map(read.files.map((file) => [file.path, file]));
    const next = new Map<string, KnownFile>();
    const changedPaths = new Set(changed.map(({ path }) => path));
    for (const { path, identity, changedMs } of listed) {
      const last = known.get(path);
      const now = changedPaths.has(path) ? texts.get(path) : last?.file;
      if (now === undefined) continue;
      const isSame =
        last !== undefined && (await runInSlices(isSameText(last.file.text, now.text)));
      const file = isSame ? last.file : now;
      next.set(path, { file, identity, isSettled: readMs - changedMs > settledMs });
    }
    known = next;
    return { files: [...next.values()].map(({ file }) => file), problems: read.problems };
  }

  return {
    list,
    async read() {
      for (let attempts = 1; ; attempts++) {
        const listing = await list();
        await watchOnly(await deps.directoriesToWatch(listing));
        const read = await readChanged(listing.files);
        // Also finds what changed before the watch was in place.
        const isStable = (await list()).signature === listing.signature;
        if (!isStable && attempts <= maxRereads && !closed) continue;
        const problems = [...listing.problems, ...read.problems];
        return { listing, files: read.files, problems, attempts };
      }
    },
    watch: watchOnly,
    pause,
    close() {
      closed = true;
      pause();
    },
  };
}

/** The characters compared at once: comparing some megabytes takes ten milliseconds. */
const charactersAtOnce = 128 * 1024;

/** Yields so that the thread can serve other callers. */
function* isSameText(one: string, other: string): Generator<void, boolean> {
  if (one.length !== other.length) return false;
  for (let at = 0; at < one.length; at += charactersAtOnce) {
    const end = at + charactersAtOnce;
    if (one.slice(at, end) !== other.slice(at, end)) return false;
    yield;
  }
  return true;
}
