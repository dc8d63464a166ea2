// Rules from files: reads them once and again whenever they change, the way RUNTIME_WATCH_ROOT says
// (behaviour: followed-files, files-of-rules). Which files count is left to
// shared/rules-directory.ts, what they mean to `load`.
import { lstat, readlink, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Clock } from '../../shared/clock.ts';
import { createDirectoryWatch } from '../../shared/directory-watch.ts';
import { AppError } from '../../shared/errors.ts';
import type { Log } from '../../shared/log.ts';
import { isError, type Problem } from '../../shared/rules/problem.ts';
import type { Bounds, ListedFile, Listing, RulesFile } from '../../shared/rules-directory.ts';
import {
  codeOf,
  defaultBounds,
  listRulesFiles,
  problemOf,
  readRulesFiles,
} from '../../shared/rules-directory.ts';
import type { Metrics } from '../metrics.ts';
import type { LoadResult, RulesSource } from './source.ts';

/** Text to rules, all files at once, in the order in which they take effect. A file that has not changed is
 * the same object as before. */
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
interface Timing {
  /** A change is looked at after this long without another... */
  readonly quiet: number;
  /** ...but no later than this after the first. */
  readonly patience: number;
  /** Files that do not load are looked at again after this long: somebody may be writing them. */
  readonly settle: number;
  /** How often the files are compared when nothing was heard: not every file system tells. */
  readonly poll: number;
}

const defaultTiming: Timing = { quiet: 50, patience: 250, settle: 150, poll: 10_000 };

/** How often files that change while they are read are read again before they are taken as found. */
const maxRereads = 5;

/** In place of what would trigger a load, while there is no root. */
const rootIsAway = 'the root is away';

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

/** One consistent look at the files. */
interface Reading {
  readonly listing: Listing;
  readonly files: readonly RulesFile[];
  readonly problems: readonly Problem[];
}

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
  /** What the last delivered load was made from. */
  let seenTrigger: string | undefined;
  let seenReading: Reading | undefined;
  /** The files as they were read last, by path. */
  let known: ReadonlyMap<string, KnownFile> = new Map();
  let hasLoaded = false;
  /** Whether the rules in force came from at least one file. */
  let hadFiles = false;
  let lastLoad = 'nothing was loaded yet';
  let closed = false;
  let isChecking = false;
  let isNewsWaiting = false;
  let firstNewsMs: number | undefined;
  let cancelNews = () => {};
  let cancelPoll = () => {};

  const watch = createDirectoryWatch({
    onEvent(path, name) {
      if (isRelevant(path, name)) noteNews();
    },
    onTrouble(path, reason) {
      const seconds = timing.poll / 1000;
      log.warning(`Changes in ${path} are noticed only every ${seconds}s: ${reason}`);
    },
  });

  function isRelevant(path: string, name: string | undefined): boolean {
    if (name === undefined) return true;
    if (watchRoot) return name === '..data' || (path === dirname(root) && name === basename(root));
    // Of a ConfigMap's own folders only the link that makes a new one current matters.
    return !name.startsWith('..') || name === '..data';
  }

  function noteNews(): void {
    if (closed) return;
    const now = clock.monotonicMs();
    firstNewsMs ??= now;
    cancelNews();
    const waitMs = Math.min(timing.quiet, firstNewsMs + timing.patience - now);
    cancelNews = clock.after(Math.max(0, waitMs), () => {
      firstNewsMs = undefined;
      void check('news');
    });
  }

  function schedulePoll(): void {
    cancelPoll = clock.after(timing.poll, () => {
      void check('poll').then(() => {
        if (!closed) schedulePoll();
      });
    });
  }

  /** One look at a time; news that arrives meanwhile is followed by one more. */
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
    // That the root is taken away is no change; that it comes back is.
    if (trigger === rootIsAway && seenTrigger !== undefined) return;
    // A write within one tick of the file system's clock shows only in the content.
    const isContentCompared = cause === 'news' && !watchRoot;
    if (closed || (trigger === seenTrigger && !isContentCompared)) return;

    let reading = await readStable();
    if (trigger === seenTrigger && isSame(reading, seenReading)) return;
    let result = await toResult(reading);
    for (let again = 0; !result.ok && again < maxRereads && !closed; again++) {
      await new Promise<void>((resolve) => clock.after(timing.settle, resolve));
      if ((await list()).signature === reading.listing.signature) break;
      reading = await readStable();
      result = await toResult(reading);
    }
    if (closed) return;

    seenTrigger = watchRoot ? trigger : reading.listing.signature;
    seenReading = reading;
    hasLoaded ||= result.ok;
    if (result.ok) hadFiles = reading.files.length > 0;
    fileCount.set(reading.files.length);
    lastLoad = `${result.ok ? 'loaded' : 'could not load'} ${result.origin}`;
    onLoad(result);
  }

  function list(): Promise<Listing> {
    return listRulesFiles({ directory, beside, ignoreDotFiles: options.ignoreDotFiles, bounds });
  }

  /** What must change for the rules to be loaded again. */
  async function readTrigger(): Promise<string> {
    if (!watchRoot) return (await list()).signature;
    const links = [root, join(root, '..data'), join(upper, '..data'), join(directory, '..data')];
    const identities = await Promise.all([...new Set(links)].map(readLinkIdentity));
    if (identities[0] === 'ENOENT') return rootIsAway;
    const target = await realpath(root).catch(codeOf);
    // It may have been taken away since the look at it.
    const isAway = target === 'ENOENT' && (await readLinkIdentity(root)) === 'ENOENT';
    return isAway ? rootIsAway : [...identities, target].join('\n');
  }

  /** Reads until nothing changes meanwhile, so that no load mixes old files with new ones. */
  async function readStable(): Promise<Reading> {
    for (let again = 0; ; again++) {
      const listing = await list();
      await watch.update(await directoriesToWatch(listing));
      loadAttempts.add(1);
      const { files, problems } = await readChanged(listing.files);
      const isStable = (await list()).signature === listing.signature;
      if (!isStable && again < maxRereads && !closed) continue;
      const all = [...listing.problems, ...problems];
      loadFailures.add(all.filter(isError).length + listing.linkedDirectories);
      return { listing, files, problems: all };
    }
  }

  /** What has not changed since it was read is not read again. */
  async function readChanged(
    listed: readonly ListedFile[],
  ): Promise<Pick<Reading, 'files' | 'problems'>> {
    const changed = listed.filter((file) => {
      const last = known.get(file.path);
      return last === undefined || last.identity !== file.identity || !last.isSettled;
    });
    const readMs = clock.wallMs();
    const read = await readRulesFiles(changed, bounds);
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

  async function directoriesToWatch(listing: Listing): Promise<string[]> {
    if (watchRoot) return [dirname(root), root, upper, directory];
    return listing.missing ? [await nearestDirectory(directory)] : [...listing.directories];
  }

  async function toResult({ listing, files, problems }: Reading): Promise<LoadResult> {
    // Also those that could not be read.
    const found = listing.files.length;
    const origin = `${found} ${found === 1 ? 'file' : 'files'} from ${directory}`;
    const all = [...problems];
    const isEmpty = found === 0 && !listing.missing && !all.some(isError);
    const isEmptied = isEmpty && hadFiles;
    if (listing.missing) all.push(missingProblem());
    else if (isEmptied) all.push(emptiedProblem());
    else if (isEmpty) all.push(emptyProblem());
    let loaded: Awaited<ReturnType<LoadRules>>;
    try {
      loaded = await load(files);
    } catch (error) {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      const defect = `these files met a defect of the program: ${text}`;
      loaded = { ok: false, problems: [problemOf('error', 'program-defect', directory, defect)] };
    }
    if (!loaded.ok) return { ok: false, problems: [...all, ...loaded.problems], origin };
    if (all.some(isError)) {
      return { ok: false, problems: [...all, ...loaded.warnings], origin, isEmptied };
    }
    return { ...loaded, warnings: [...all, ...loaded.warnings], origin };
  }

  function missingProblem(): Problem {
    if (watchRoot && !hasLoaded) {
      return problemOf(
        'warning',
        'no-rules-file',
        directory,
        'the directory does not exist; no limit applies',
        `create it, then replace ${root}: only that is noticed, as RUNTIME_WATCH_ROOT is true`,
      );
    }
    return problemOf(
      'error',
      'unreadable-file',
      directory,
      'the directory does not exist any more',
    );
  }

  /** Taking away every limit is hardly ever meant: a mount that is gone looks the same. */
  function emptiedProblem(): Problem {
    return problemOf(
      'error',
      'no-rules-file',
      directory,
      'no file named *.yaml or *.yml any more',
      'to remove every limit, leave a file with a domain and no descriptors, or start the worker anew',
    );
  }

  function emptyProblem(): Problem {
    return problemOf(
      'warning',
      'no-rules-file',
      directory,
      'no file named *.yaml or *.yml; no limit applies',
      watchRoot
        ? `changes are noticed when ${root} is replaced, as RUNTIME_WATCH_ROOT is true`
        : undefined,
    );
  }

  return {
    async start(listener) {
      onLoad = listener;
      await requireDirectory(watchedAtStart, directory, watchRoot);
      await watch.update([watchedAtStart]);
      await check('news');
      if (!closed) schedulePoll();
    },
    describe() {
      const trigger = watchRoot
        ? `loads again when ${root} is replaced (RUNTIME_WATCH_ROOT=true)`
        : `loads again when a file below ${directory} changes (RUNTIME_WATCH_ROOT=false)`;
      return `files: ${lastLoad}; ${trigger}`;
    },
    async close() {
      closed = true;
      cancelNews();
      cancelPoll();
      watch.close();
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
    // The number of an inode that was freed may be given out again.
    const identity = `${found.dev} ${found.ino} ${found.birthtimeMs}`;
    if (!found.isSymbolicLink()) return identity;
    return `${identity} ${found.ctimeMs} ${await readlink(path)}`;
  } catch (error) {
    return codeOf(error);
  }
}

/** The nearest directory above that exists, to see a missing one appear. */
async function nearestDirectory(path: string): Promise<string> {
  const above = dirname(path);
  if (above === path) return path;
  const isDirectory = await stat(above).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
  return isDirectory ? above : nearestDirectory(above);
}
