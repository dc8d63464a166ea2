// Rules from files: reads them at the start and whenever they change, as RUNTIME_WATCH_ROOT configures
// (behaviour: followed-files, files-of-rules). shared/rules-directory.ts decides which files count.

import { lstat, readlink, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type Clock, repeatAfter } from '../../shared/clock.ts';
import { toCountText } from '../../shared/count-text.ts';
import { AppError } from '../../shared/errors.ts';
import {
  createFileFollower,
  defaultFollowerTiming,
  type FollowerTiming,
  maxRereads,
  type Reading,
} from '../../shared/file-follower.ts';
import type { Log } from '../../shared/log.ts';
import { isError, type Problem, problemOf } from '../../shared/rules/problem/problem.ts';
import { codeOf, type Listing } from '../../shared/rules-directory.ts';
import { type Bounds, defaultBounds, type RulesFile } from '../../shared/rules-file.ts';
import { stackText } from '../../shared/source-positions.ts';
import type { Metrics } from '../metrics.ts';
import type { LoadResult, RulesSource } from './source.ts';

/**
 * Makes rules from the texts of all files, in the order in which they take effect. An unchanged file is the same object
 * as before.
 */
export type LoadRules = (
  files: readonly RulesFile[],
) => Promise<
  | Omit<LoadResult & { readonly ok: true }, 'origin'>
  | Omit<LoadResult & { readonly ok: false }, 'origin'>
>;

/** The RUNTIME_* settings (behaviour: followed-files). */
export interface FileSourceOptions {
  readonly root: string;
  readonly subdirectory: string;
  readonly appDirectory: string;
  readonly ignoreDotFiles: boolean;
  readonly watchRoot: boolean;
}

export interface FileSourceDeps {
  readonly options: FileSourceOptions;
  readonly load: LoadRules;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly clock: Clock;
  readonly timing?: Timing;
  readonly bounds?: Bounds;
}

/** Milliseconds. */
interface Timing extends FollowerTiming {
  /** Files that do not load are read again after this time: they may be in the middle of a write. */
  readonly settle: number;
}

const defaultTiming: Timing = { ...defaultFollowerTiming, settle: 150 };

/** Files that differ from those in force for this long are not in the middle of a swap. */
const staleMs = 30_000;

/** The trigger while the root does not exist. */
const rootIsAway = 'the root is missing';

export class FileSource implements RulesSource {
  readonly #deps: FileSourceDeps;
  readonly #timing;
  readonly #bounds;
  readonly #root;
  readonly #watchRoot;
  readonly #upper;
  readonly #directory;
  readonly #watchedAtStart;
  readonly #loadAttempts;
  readonly #loadFailures;
  readonly #fileCount;
  #onLoad: (result: LoadResult) => void = () => {};
  /** The trigger at the last delivered load. */
  #seenTrigger: string | undefined;
  #seenReading: Reading | undefined;
  #hasLoaded = false;
  /** Whether the rules in force came from at least one file. */
  #hadFiles = false;
  #lastLoad = 'nothing has been loaded yet';
  /** Since when the files differ from those that were last read, while only a swap loads them again. */
  #staleSinceMs: number | undefined;
  #hasLoggedStale = false;
  #closed = false;
  #isChecking = false;
  #isNewsWaiting = false;
  #stopPolling = () => {};
  readonly #follower;

  constructor(deps: FileSourceDeps) {
    this.#deps = deps;
    this.#timing = deps.timing ?? defaultTiming;
    this.#bounds = deps.bounds ?? defaultBounds;
    this.#root = deps.options.root;
    this.#watchRoot = deps.options.watchRoot;
    this.#upper = join(deps.options.root, deps.options.subdirectory);
    this.#directory = join(this.#upper, deps.options.appDirectory);
    // The reference also reads `config.anything.yaml` beside the directory `config`.
    const beside =
      deps.options.watchRoot && deps.options.appDirectory !== ''
        ? { directory: this.#upper, prefix: `${deps.options.appDirectory}.` }
        : undefined;
    this.#watchedAtStart = deps.options.watchRoot ? dirname(deps.options.root) : this.#directory;
    this.#loadAttempts = deps.metrics.counter('runtime.load_attempts');
    this.#loadFailures = deps.metrics.counter('runtime.load_failures');
    this.#fileCount = deps.metrics.gauge('runtime.num_values');
    this.#follower = createFileFollower({
      files: {
        directory: this.#directory,
        beside: beside,
        ignoreDotFiles: deps.options.ignoreDotFiles,
        bounds: this.#bounds,
      },
      directoriesToWatch: (listing) => this.#directoriesToWatch(listing),
      isNews: (path, name) => this.#isNews(path, name),
      onNews: () => void this.#check('news'),
      timing: this.#timing,
      log: deps.log,
      clock: deps.clock,
    });
  }

  #isNews(path: string, name: string): boolean {
    if (this.#watchRoot)
      return name === '..data' || (path === dirname(this.#root) && name === basename(this.#root));
    // Of a ConfigMap's own folders only the link to the current one counts.
    return !name.startsWith('..') || name === '..data';
  }

  /** Runs one check at a time; a change meanwhile triggers another one. */
  async #check(cause: 'news' | 'poll'): Promise<void> {
    if (this.#isChecking) {
      this.#isNewsWaiting ||= cause === 'news';
      return;
    }
    this.#isChecking = true;
    try {
      await this.#checkOnce(cause);
      while (this.#isNewsWaiting && !this.#closed) {
        this.#isNewsWaiting = false;
        await this.#checkOnce('news');
      }
    } finally {
      this.#isChecking = false;
    }
  }

  async #checkOnce(cause: 'news' | 'poll'): Promise<void> {
    const trigger = await this.#readTrigger();
    // Removing the root does not count as a change; its return does.
    if (trigger === rootIsAway && this.#seenTrigger !== undefined) return;
    // A write within one tick of the file system's clock only changes the content.
    const isContentCompared = cause === 'news' && !this.#watchRoot;
    if (this.#closed) return;
    if (trigger === this.#seenTrigger && !isContentCompared) {
      if (this.#watchRoot && cause === 'poll') await this.#noteStale();
      return;
    }

    let reading = await this.#read();
    if (trigger === this.#seenTrigger && isSame(reading, this.#seenReading)) return;
    let result = await this.#toResult(reading);
    for (let again = 0; !result.ok && again < maxRereads && !this.#closed; again++) {
      await new Promise<void>((resolve) => this.#deps.clock.after(this.#timing.settle, resolve));
      if ((await this.#follower.list()).signature === reading.listing.signature) break;
      reading = await this.#read();
      result = await this.#toResult(reading);
    }
    if (this.#closed) return;

    this.#seenTrigger = this.#watchRoot ? trigger : reading.listing.signature;
    this.#seenReading = reading;
    this.#staleSinceMs = undefined;
    this.#hasLoggedStale = false;
    this.#hasLoaded ||= result.ok;
    if (result.ok) this.#hadFiles = reading.files.length > 0;
    this.#fileCount.set(reading.files.length);
    this.#lastLoad = `${result.ok ? 'loaded' : 'could not load'} ${result.origin}`;
    this.#onLoad(result);
  }

  /** Logs once that files were edited in place, which does not load them. */
  async #noteStale(): Promise<void> {
    if (this.#hasLoggedStale) return;
    const { signature } = await this.#follower.list();
    if (signature === this.#seenReading?.listing.signature) this.#staleSinceMs = undefined;
    else this.#staleSinceMs ??= this.#deps.clock.monotonicMs();
    if (
      this.#staleSinceMs === undefined ||
      this.#deps.clock.monotonicMs() - this.#staleSinceMs < staleMs
    )
      return;
    this.#hasLoggedStale = true;
    this.#deps.log.warning(
      `The files in ${this.#directory} differ from the rules in force: they are loaded when ${this.#root} is replaced (RUNTIME_WATCH_ROOT=true), or, with RUNTIME_WATCH_ROOT=false, when files change`,
    );
  }

  /** Logs that rules are only loaded on a swap: a folder that is not a link is probably edited in place. */
  async #noteAwaited(): Promise<void> {
    if (!this.#watchRoot) return;
    const links = [
      this.#root,
      join(this.#root, '..data'),
      join(this.#upper, '..data'),
      join(this.#directory, '..data'),
    ];
    const areLinks = await Promise.all(
      links.map((path) =>
        lstat(path).then(
          (found) => found.isSymbolicLink(),
          () => false,
        ),
      ),
    );
    if (areLinks.some(Boolean)) return;
    this.#deps.log.notice(
      `RUNTIME_ROOT ${this.#root} is not a symlink: the rules are loaded again when it is replaced (RUNTIME_WATCH_ROOT=true), not when files in it change; to load them then, set RUNTIME_WATCH_ROOT=false`,
    );
  }

  /** The trigger: the rules are loaded again when this text changes. */
  async #readTrigger(): Promise<string> {
    if (!this.#watchRoot) return (await this.#follower.list()).signature;
    const links = [
      this.#root,
      join(this.#root, '..data'),
      join(this.#upper, '..data'),
      join(this.#directory, '..data'),
    ];
    const identities = await Promise.all([...new Set(links)].map(readLinkIdentity));
    if (identities[0] === 'ENOENT') return rootIsAway;
    const target = await realpath(this.#root).catch(codeOf);
    // The root may have been removed meanwhile.
    const isAway = target === 'ENOENT' && (await readLinkIdentity(this.#root)) === 'ENOENT';
    return isAway ? rootIsAway : [...identities, target].join('\n');
  }

  async #read(): Promise<Reading> {
    const reading = await this.#follower.read();
    this.#loadAttempts.add(reading.attempts);
    const errors = reading.problems.filter(isError).length;
    this.#loadFailures.add(errors + reading.listing.linkedDirectories);
    return reading;
  }

  async #directoriesToWatch(listing: Listing): Promise<string[]> {
    if (this.#watchRoot) return [dirname(this.#root), this.#root, this.#upper, this.#directory];
    return listing.missing ? [await nearestDirectory(this.#directory)] : [...listing.directories];
  }

  async #toResult({ listing, files, problems }: Reading): Promise<LoadResult> {
    // Includes files that could not be read.
    const found = listing.files.length;
    const origin = `${toCountText(found, 'file')} from ${this.#directory}`;
    const all = [...problems];
    const isEmpty = found === 0 && !listing.missing && !all.some(isError);
    const isEmptied = isEmpty && this.#hadFiles;
    if (listing.missing || isEmpty) all.push(this.#describeAbsence(listing.missing));
    let loaded: Awaited<ReturnType<LoadRules>>;
    try {
      loaded = await this.#deps.load(files);
    } catch (error) {
      const defect = `these files caused a defect of the program: ${stackText(error)}`;
      loaded = {
        ok: false,
        problems: [problemOf('error', 'program-defect', this.#directory, defect)],
      };
    }
    if (!loaded.ok) return { ok: false, problems: [...all, ...loaded.problems], origin };
    if (all.some(isError)) {
      return { ok: false, problems: [...all, ...loaded.warnings], origin, isEmptied };
    }
    return { ...loaded, warnings: [...all, ...loaded.warnings], origin };
  }

  /** The problem of a missing directory, or of a directory without rules. */
  #describeAbsence(isMissing: boolean): Problem {
    if (isMissing && this.#watchRoot && !this.#hasLoaded) {
      const message = 'the directory does not exist; no limit applies';
      const hint = `create it, then replace ${this.#root}: only that is noticed, as RUNTIME_WATCH_ROOT is true`;
      return problemOf('warning', 'no-rules-file', this.#directory, message, hint);
    }
    if (isMissing) {
      const message = 'the directory no longer exists';
      return problemOf('error', 'unreadable-file', this.#directory, message);
    }
    if (this.#hadFiles) {
      // Removing every limit is hardly ever intended: a missing mount has the same effect.
      const message = 'the last file named *.yaml or *.yml is gone';
      const hint =
        'to remove every limit, leave a file with a domain and no descriptors, or restart the worker';
      return problemOf('error', 'no-rules-file', this.#directory, message, hint);
    }
    const message = 'no file named *.yaml or *.yml; no limit applies';
    const hint = this.#watchRoot
      ? `changes are noticed when ${this.#root} is replaced, as RUNTIME_WATCH_ROOT is true`
      : undefined;
    return problemOf('warning', 'no-rules-file', this.#directory, message, hint);
  }

  async start(listener: (result: LoadResult) => void): Promise<void> {
    this.#onLoad = listener;
    await requireDirectory(this.#watchedAtStart, this.#directory, this.#watchRoot);
    await this.#follower.watch([this.#watchedAtStart]);
    await this.#check('news');
    await this.#noteAwaited();
    if (!this.#closed)
      this.#stopPolling = repeatAfter(this.#deps.clock, this.#timing.poll, () =>
        this.#check('poll'),
      );
  }

  describe(): string {
    const trigger = this.#watchRoot
      ? `loads again when ${this.#root} is replaced (RUNTIME_WATCH_ROOT=true)`
      : `loads again when a file below ${this.#directory} changes (RUNTIME_WATCH_ROOT=false)`;
    return `files: ${this.#lastLoad}; ${trigger}`;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#stopPolling();
    this.#follower.close();
  }
}

async function requireDirectory(
  path: string,
  directory: string,
  watchRoot: boolean,
): Promise<void> {
  const found = await stat(path).then(
    (stats) => (stats.isDirectory() ? undefined : 'it is not a directory'),
    (error) =>
      codeOf(error) === 'ENOENT' ? 'it does not exist' : `cannot be read (${codeOf(error)})`,
  );
  if (found === undefined) return;
  const role = watchRoot
    ? `the directory that holds RUNTIME_ROOT is watched for its replacement (RUNTIME_WATCH_ROOT=true; rules are read from ${directory})`
    : 'the rules are read from RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY';
  const hint = 'create it, or set RUNTIME_ROOT to a directory that is there';
  throw new AppError('cannot_start', `Cannot watch ${path}: ${found}; ${role}; ${hint}`);
}

function isSame({ listing, files }: Reading, other: Reading | undefined): boolean {
  return (
    other !== undefined &&
    listing.signature === other.listing.signature &&
    files.length === other.files.length &&
    files.every((file, index) => file === other.files[index])
  );
}

/** Changes when the link, or the directory in its place, is replaced, but not with the content of the directory. */
async function readLinkIdentity(path: string): Promise<string> {
  try {
    const found = await lstat(path);
    // The number of a freed inode may be reused.
    const identity = `${found.dev} ${found.ino} ${found.birthtimeMs}`;
    if (!found.isSymbolicLink()) return identity;
    return `${identity} ${found.ctimeMs} ${await readlink(path)}`;
  } catch (error) {
    return codeOf(error);
  }
}

/** The nearest existing parent directory, to detect when a missing one appears. */
async function nearestDirectory(path: string): Promise<string> {
  const above = dirname(path);
  if (above === path) return path;
  const isDirectory = await stat(above).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
  return isDirectory ? above : nearestDirectory(above);
}
