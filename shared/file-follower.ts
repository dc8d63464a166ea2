// Follows the rules files below a directory: hears of changes, and reads all files as they are at one moment.
// Which files count is left to rules-directory.ts, what becomes of them to the callers.
import type { FSWatcher } from 'node:fs';
import { watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Clock } from './clock.ts';
import { errorText } from './errors.ts';
import type { Log } from './log.ts';
import type { Problem } from './rules/problem.ts';
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
  /** Reads until nothing changes meanwhile, so that no reading mixes old files with new ones. What has not
   * changed since the last reading is not read again. Never rejects. */
  read(): Promise<Reading>;
  /** Hears of changes in exactly these directories, until the next reading says which; those that do not
   * exist are left out. */
  watch(directories: readonly string[]): Promise<void>;
  /** Hears of nothing, and forgets what was heard, until the next reading. */
  pause(): void;
  /** Idempotent. */
  close(): void;
}

export interface Reading {
  readonly listing: Listing;
  /** A file with the same text as in the last reading is the same object. */
  readonly files: readonly RulesFile[];
  /** Of listing and reading. */
  readonly problems: readonly Problem[];
  /** How often the files were read until they stood still. */
  readonly attempts: number;
}

export interface FileFollowerDeps {
  readonly files: ListOptions;
  /** Asked within each reading, before the files are read. */
  directoriesToWatch(listing: Listing): Promise<readonly string[]>;
  /** Whether it matters that this entry of the directory was created, changed or removed. */
  isNews(directory: string, name: string): boolean;
  /** Once for changes that come together. */
  onNews(): void;
  readonly timing: FollowerTiming;
  readonly log: Log;
  readonly clock: Clock;
}

/** Milliseconds. */
export interface FollowerTiming {
  /** A change is looked at after this long without another... */
  readonly quiet: number;
  /** ...but no later than this after the first. */
  readonly patience: number;
  /** How often the caller looks when nothing was heard: not every file system tells. */
  readonly poll: number;
}

export const defaultFollowerTiming: FollowerTiming = { quiet: 50, patience: 250, poll: 10_000 };

/** How often files that change while they are read are read again before they are taken as found. */
export const maxRereads = 5;

/** A file that changed so shortly before it was read may be written again without looking different: the
 * clock of a file system has ticks, of up to two seconds. */
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

  /** Said once for each directory, until it can be watched. */
  function noteTrouble(directory: string, error: unknown): void {
    drop(directory);
    if (troubled.has(directory)) return;
    troubled.add(directory);
    const seconds = timing.poll / 1000;
    log.warning(`Changes in ${directory} are noticed only every ${seconds}s: ${errorText(error)}`);
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
      const watcher = watch(directory, (_type, name) => {
        // The system does not always say which entry it was.
        if (name === null || deps.isNews(directory, name)) noteNews();
      });
      watcher.on('error', (error) => noteTrouble(directory, error));
      watched.set(directory, { identity, watcher });
      troubled.delete(directory);
    } catch (error) {
      noteTrouble(directory, error);
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
      const file = last?.file.text === now.text ? last.file : now;
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
        // What changed before the watch was in place is found here as well.
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
