// Rules from files: reads them at the start and whenever they change, as RUNTIME_WATCH_ROOT says
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
import { stackText } from '../../shared/source-places.ts';
import type { Metrics } from '../metrics.ts';
import type { LoadResult, RulesSource } from './source.ts';

/** Makes rules of the texts of all files, in the order in which they take effect. An unchanged file is the
 * same object as before. */
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
  /** Files that do not load are read again after this long: they may be in the middle of a write. */
  readonly settle: number;
}

const defaultTiming: Timing = { ...defaultFollowerTiming, settle: 150 };

/** Files that differ for this long from those in force are no swap under way. */
const staleMs = 30_000;

/** Replaces the trigger of a load while there is no root. */
const rootIsAway = 'the root is away';

export function createFileSource({
  options,
  load,
  metrics,
  log,
  clock,
  timing = defaultTiming,
  bounds = defaultBounds,
}: FileSourceDeps): RulesSource {
  const { root, watchRoot } = options;
  const upper = join(root, options.subdirectory);
  const directory = join(upper, options.appDirectory);
  // The reference also takes `config.anything.yaml` beside the directory `config`.
  const beside =
    watchRoot && options.appDirectory !== ''
      ? { directory: upper, prefix: `${options.appDirectory}.` }
      : undefined;
  const watchedAtStart = watchRoot ? dirname(root) : directory;
  const loadAttempts = metrics.counter('runtime.load_attempts');
  const loadFailures = metrics.counter('runtime.load_failures');
  const fileCount = metrics.gauge('runtime.num_values');

  let onLoad: (result: LoadResult) => void = () => {};
  /** The state of the files at the last delivered load. */
  let seenTrigger: string | undefined;
  let seenReading: Reading | undefined;
  let hasLoaded = false;
  /** Whether the rules in force came from at least one file. */
  let hadFiles = false;
  let lastLoad = 'nothing was loaded yet';
  /** Since when the files differ from those that were read last, while only a swap loads them again. */
  let staleSinceMs: number | undefined;
  let hasSaidStale = false;
  let closed = false;
  let isChecking = false;
  let isNewsWaiting = false;
  let stopPolling = () => {};

  const follower = createFileFollower({
    files: { directory, beside, ignoreDotFiles: options.ignoreDotFiles, bounds },
    directoriesToWatch,
    isNews,
    onNews: () => void check('news'),
    timing,
    log,
    clock,
  });

  function isNews(path: string, name: string): boolean {
    if (watchRoot) return name === '..data' || (path === dirname(root) && name === basename(root));
    // Of a ConfigMap's own folders only the link to the current one matters.
    return !name.startsWith('..') || name === '..data';
  }

  /** One look at a time; a change meanwhile triggers one more. */
  async function check(cause: 'news' | 'poll'): Promise<void> {
    if (isChecking) {
      isNewsWaiting ||= cause === 'news';
      return;
    }
    isChecking = true;
    try {
      await checkOnce(cause);
      while (isNewsWaiting && !closed) {
        isNewsWaiting = false;
        await checkOnce('news');
      }
    } finally {
      isChecking = false;
    }
  }

  async function checkOnce(cause: 'news' | 'poll'): Promise<void> {
    const trigger = await readTrigger();
    // Removing the root is no change; its return is.
    if (trigger === rootIsAway && seenTrigger !== undefined) return;
    // A write within one tick of the file system's clock only shows in the content.
    const isContentCompared = cause === 'news' && !watchRoot;
    if (closed) return;
    if (trigger === seenTrigger && !isContentCompared) {
      if (watchRoot && cause === 'poll') await noteStale();
      return;
    }

    let reading = await read();
    if (trigger === seenTrigger && isSame(reading, seenReading)) return;
    let result = await toResult(reading);
    for (let again = 0; !result.ok && again < maxRereads && !closed; again++) {
      await new Promise<void>((resolve) => clock.after(timing.settle, resolve));
      if ((await follower.list()).signature === reading.listing.signature) break;
      reading = await read();
      result = await toResult(reading);
    }
    if (closed) return;

    seenTrigger = watchRoot ? trigger : reading.listing.signature;
    seenReading = reading;
    staleSinceMs = undefined;
    hasSaidStale = false;
    hasLoaded ||= result.ok;
    if (result.ok) hadFiles = reading.files.length > 0;
    fileCount.set(reading.files.length);
    lastLoad = `${result.ok ? 'loaded' : 'could not load'} ${result.origin}`;
    onLoad(result);
  }

  /** Says once that files were edited in place, which is not noticed here. */
  async function noteStale(): Promise<void> {
    if (hasSaidStale) return;
    const { signature } = await follower.list();
    if (signature === seenReading?.listing.signature) staleSinceMs = undefined;
    else staleSinceMs ??= clock.monotonicMs();
    if (staleSinceMs === undefined || clock.monotonicMs() - staleSinceMs < staleMs) return;
    hasSaidStale = true;
    log.warning(
      `The files in ${directory} differ from the rules in force: they are loaded when ${root} is replaced (RUNTIME_WATCH_ROOT=true), or, with RUNTIME_WATCH_ROOT=false, when files change`,
    );
  }

  /** A folder that stays in its place is probably edited in place. */
  async function noteAwaited(): Promise<void> {
    if (!watchRoot) return;
    const links = [root, join(root, '..data'), join(upper, '..data'), join(directory, '..data')];
    const areLinks = await Promise.all(
      links.map((path) =>
        lstat(path).then(
          (found) => found.isSymbolicLink(),
          () => false,
        ),
      ),
    );
    if (areLinks.some(Boolean)) return;
    log.notice(
      `RUNTIME_ROOT ${root} is not a link: the rules are loaded again when it is replaced (RUNTIME_WATCH_ROOT=true), not when files in it change; for that write RUNTIME_WATCH_ROOT=false`,
    );
  }

  /** The rules are loaded again when this text changes. */
  async function readTrigger(): Promise<string> {
    if (!watchRoot) return (await follower.list()).signature;
    const links = [root, join(root, '..data'), join(upper, '..data'), join(directory, '..data')];
    const identities = await Promise.all([...new Set(links)].map(readLinkIdentity));
    if (identities[0] === 'ENOENT') return rootIsAway;
    const target = await realpath(root).catch(codeOf);
    // It may have been removed since the look.
    const isAway = target === 'ENOENT' && (await readLinkIdentity(root)) === 'ENOENT';
    return isAway ? rootIsAway : [...identities, target].join('\n');
  }

  async function read(): Promise<Reading> {
    const reading = await follower.read();
    loadAttempts.add(reading.attempts);
    const errors = reading.problems.filter(isError).length;
    loadFailures.add(errors + reading.listing.linkedDirectories);
    return reading;
  }

  async function directoriesToWatch(listing: Listing): Promise<string[]> {
    if (watchRoot) return [dirname(root), root, upper, directory];
    return listing.missing ? [await nearestDirectory(directory)] : [...listing.directories];
  }

  async function toResult({ listing, files, problems }: Reading): Promise<LoadResult> {
    // Also those that could not be read.
    const found = listing.files.length;
    const origin = `${toCountText(found, 'file')} from ${directory}`;
    const all = [...problems];
    const isEmpty = found === 0 && !listing.missing && !all.some(isError);
    const isEmptied = isEmpty && hadFiles;
    if (listing.missing || isEmpty) all.push(describeAbsence(listing.missing));
    let loaded: Awaited<ReturnType<LoadRules>>;
    try {
      loaded = await load(files);
    } catch (error) {
      const defect = `these files met a defect of the program: ${stackText(error)}`;
      loaded = { ok: false, problems: [problemOf('error', 'program-defect', directory, defect)] };
    }
    if (!loaded.ok) return { ok: false, problems: [...all, ...loaded.problems], origin };
    if (all.some(isError)) {
      return { ok: false, problems: [...all, ...loaded.warnings], origin, isEmptied };
    }
    return { ...loaded, warnings: [...all, ...loaded.warnings], origin };
  }

  /** The problem of a missing directory, or else of missing rules in it. */
  function describeAbsence(isMissing: boolean): Problem {
    if (isMissing && watchRoot && !hasLoaded) {
      const message = 'the directory does not exist; no limit applies';
      const hint = `create it, then replace ${root}: only that is noticed, as RUNTIME_WATCH_ROOT is true`;
      return problemOf('warning', 'no-rules-file', directory, message, hint);
    }
    if (isMissing) {
      const message = 'the directory does not exist any more';
      return problemOf('error', 'unreadable-file', directory, message);
    }
    if (hadFiles) {
      // Removing every limit is hardly ever meant: a missing mount looks the same.
      const message = 'no file named *.yaml or *.yml any more';
      const hint =
        'to remove every limit, leave a file with a domain and no descriptors, or start the worker anew';
      return problemOf('error', 'no-rules-file', directory, message, hint);
    }
    const message = 'no file named *.yaml or *.yml; no limit applies';
    const hint = `changes are noticed when ${root} is replaced, as RUNTIME_WATCH_ROOT is true`;
    return problemOf('warning', 'no-rules-file', directory, message, watchRoot ? hint : undefined);
  }

  return {
    async start(listener) {
      onLoad = listener;
      await requireDirectory(watchedAtStart, directory, watchRoot);
      await follower.watch([watchedAtStart]);
      await check('news');
      await noteAwaited();
      if (!closed) stopPolling = repeatAfter(clock, timing.poll, () => check('poll'));
    },
    describe() {
      const trigger = watchRoot
        ? `loads again when ${root} is replaced (RUNTIME_WATCH_ROOT=true)`
        : `loads again when a file below ${directory} changes (RUNTIME_WATCH_ROOT=false)`;
      return `files: ${lastLoad}; ${trigger}`;
    },
    async close() {
      closed = true;
      stopPolling();
      follower.close();
    },
  };
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

/** Changes when the link, or the directory in its place, is replaced; not when something inside of
 * the directory changes. */
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

/** The nearest existing parent directory, to see a missing one appear. */
async function nearestDirectory(path: string): Promise<string> {
  const above = dirname(path);
  if (above === path) return path;
  const isDirectory = await stat(above).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
  return isDirectory ? above : nearestDirectory(above);
}
