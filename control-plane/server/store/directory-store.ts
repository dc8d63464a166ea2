// Stores configuration in a directory that users, tools or a mounted volume write to. shared/rules-directory.ts decides
// which files count; directory-change.ts writes changes.

import { readlink } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import type { Clock } from '../../../shared/clock.ts';
import { AppError } from '../../../shared/errors.ts';
import {
  createFileFollower,
  defaultFollowerTiming,
  type FollowerTiming,
} from '../../../shared/file-follower.ts';
import { runInSlices } from '../../../shared/in-slices.ts';
import type { Log } from '../../../shared/log.ts';
import { isError } from '../../../shared/rules/problem/problem.ts';
import { codeOf, type Listing } from '../../../shared/rules-directory.ts';
import { type Bounds, controlPlaneBounds } from '../../../shared/rules-file.ts';
import { findObstacles, writeChange } from './directory-change.ts';
import { checkingChange, existingPaths } from './file-change.ts';
import { toJsonDigest } from './json-digest.ts';
import { PollLoop } from './poll-loop.ts';
import {
  byPath,
  type Revision,
  type RevisionInfo,
  toInfoText,
  toRevisionInfo,
} from './revision.ts';
import { createRevisionHistory } from './revision-history.ts';
import {
  type Change,
  type ConfigStore,
  maxLineage,
  shortestRevisionPrefix,
  type WriteOptions,
  type WriteResult,
} from './store.ts';

export interface DirectoryStoreOptions {
  /** May be a symbolic link, or be below one: replacing the link is noticed. */
  readonly directory: string;
  /** A directory used only by this control plane, for the history. Created if missing. */
  readonly stateDirectory: string;
}

export interface DirectoryStoreDeps {
  readonly options: DirectoryStoreOptions;
  readonly log: Log;
  readonly clock: Clock;
  readonly timing?: Partial<FollowerTiming>;
  readonly bounds?: Bounds;
}

type Content = Pick<Revision, 'files' | 'problems'>;

const maxLinks = 40;
const maxRevisions = 50;
const maxHistoryBytes = 256 * 1024 * 1024;

/** A revision's id is a hash of its content, so that two control planes on copies of a directory agree. Files and
 * folders whose names begin with a dot are skipped.
 *
 * `write` replaces each file by a rename: no reader sees a partial file, but for a moment a reader may see some files
 * of a change and not others. If the disk fails in between, the error reports it. The author and the reason are known
 * only to this control plane, from its history. */
export function createDirectoryStore(deps: DirectoryStoreDeps): ConfigStore {
  const { log, clock, bounds = controlPlaneBounds } = deps;
  const timing = { ...defaultFollowerTiming, ...deps.timing };
  const directory = resolve(deps.options.directory);
  const start = join(directory, sep);
  const history = createRevisionHistory({
    folder: join(deps.options.stateDirectory, 'directory-history'),
    store: directory,
    maxRevisions,
    maxBytes: maxHistoryBytes,
    log,
  });
  /** For each directory on the path to the rules, the names that matter. */
  let links: ReadonlyMap<string, ReadonlySet<string>> = new Map();
  let ours: ReadonlySet<string> = new Set();

  const follower = createFileFollower({
    files: { directory, beside: undefined, ignoreDotFiles: true, staysInside: true, bounds },
    directoriesToWatch,
    isNews: (path, name) => links.get(path)?.has(name) === true || (ours.has(path) && isNews(name)),
    onNews: () => void loop.trigger(),
    timing,
    log,
    clock,
  });

  const loop = new PollLoop({
    description: directory,
    poll: () => poll(),
    onIdle: follower.pause,
    pollMs: timing.poll,
    leastMs: 0,
    log,
    clock,
  });

  /** `own`: the author and reason of the state found, if it was not known before. */
  async function poll(own?: Omit<RevisionInfo, 'id'>): Promise<Revision> {
    const { files, problems } = await read();
    const id = await toContentId({ files, problems });
    const { seen } = loop;
    if (seen?.id === id) return seen;
    const [newest] = await history.list();
    if (newest?.id === id) return Object.freeze({ ...newest, files, problems });
    const unknownOrigin = { atMs: clock.wallMs(), author: undefined, message: undefined };
    const revision = Object.freeze({ ...(own ?? unknownOrigin), id, files, problems });
    await history.add(revision);
    return revision;
  }

  async function read(): Promise<Content> {
    const { listing, files, problems } = await follower.read();
    if (listing.missing)
      throw new AppError(
        'store',
        'the directory does not exist: create it, or correct --config-dir',
      );
    return {
      files: files.map(({ path, text }) => ({ path: toStorePath(path), text })).sort(byPath),
      problems: problems.map((problem) => ({ ...problem, file: toStorePath(problem.file) })),
    };
  }

  function toStorePath(path: string): string {
    // `relative` resolves both paths on each call, which takes 20 ms for 10,000 files.
    const below = path.startsWith(start) ? path.slice(start.length) : relative(directory, path);
    return below.split(sep).join('/') || '.';
  }

  async function directoriesToWatch(listing: Listing): Promise<readonly string[]> {
    if (!loop.isWatched) return [];
    links = await linksOf(directory);
    ours = new Set(listing.directories);
    return [...ours, ...links.keys()];
  }

  async function write(change: Change, options: WriteOptions): Promise<WriteResult> {
    return loop.exclusively(async (publish) => {
      const before = await poll();
      publish(before);
      const { expectedRevision } = options;
      if (expectedRevision !== undefined && expectedRevision !== before.id) {
        return { ok: false, reason: 'changed_since', current: toRevisionInfo(before) };
      }
      const impossible = await runInSlices(checkingChange(change, existingPaths(before), bounds));
      const problems = impossible.length > 0 ? impossible : await writeChange(directory, change);
      if (problems.length > 0) return { ok: false, reason: 'refused', problems };
      return { ok: true, revision: publish(await poll(toMade(options))) };
    });
  }

  function toMade({ author, message }: WriteOptions): Omit<RevisionInfo, 'id'> {
    const name = author.email === '' ? author.name : `${author.name} <${author.email}>`;
    return { atMs: clock.wallMs(), author: toInfoText(name), message: toInfoText(message) };
  }

  return {
    description: directory,
    read: () => loop.read(),
    watch: (onRevision) => loop.watch(onRevision),
    trigger: () => loop.trigger(),
    status: () => loop.status(),
    write,
    async between(older, newer) {
      const infos = await history.list();
      const from = infos.findIndex(({ id }) => id === newer);
      const to = infos.findIndex(({ id }, index) => index > from && id === older);
      const start = Math.max(0, from);
      const end = Math.min(to === -1 ? infos.length : to, start + maxLineage);
      return { revisions: infos.slice(start, end).reverse(), isCut: to !== end };
    },
    findObstacles: async (change, before) => [
      ...(await runInSlices(checkingChange(change, existingPaths(before), bounds))),
      ...(await findObstacles(directory, change)),
    ],
    async history(limit) {
      return (await history.list()).slice(0, limit);
    },
    async locate(id, newest) {
      if (id.length < shortestRevisionPrefix) return undefined;
      const ids = (await history.list()).map((each) => each.id);
      const [found, ...others] = new Set(ids.filter((each) => each.startsWith(id)));
      if (found === undefined || others.length > 0) return undefined;
      // A state that returns is in the list twice: what matters is whether it occurred earlier.
      return { id: found, isIncluded: ids.lastIndexOf(found) >= ids.indexOf(newest) };
    },
    async readRevision(id) {
      if (id === loop.seen?.id) return loop.seen;
      return history.read(id);
    },
    async close() {
      await loop.close();
      follower.close();
    },
  };
}

/** Of hidden names, only the link to a mounted volume's current content matters. */
function isNews(name: string): boolean {
  return !name.startsWith('.') || name === '..data';
}

/** Warnings are not hashed: replicas agree, whatever files exist beside the rules. */
async function toContentId({ files, problems }: Content): Promise<string> {
  const errors = problems.filter(isError);
  const hashed = [
    ...files.map(({ path, text }) => [path, text]),
    ...errors.map(({ severity, file, message }) => [file, message, severity]),
  ];
  return (await toJsonDigest(hashed)).slice(0, 40);
}

/** The symbolic links on the path to a directory: replacing one leads to another directory, and only a watch on the
 * link's folder notices that. For each folder to watch, the names whose replacement changes the path: links, the first
 * missing part, and the directory itself. `path` is absolute. Never rejects. */
async function linksOf(path: string): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const found = new Map<string, Set<string>>();
  const note = (folder: string, name: string) => {
    found.set(folder, (found.get(folder) ?? new Set()).add(name));
  };
  note(dirname(path), basename(path));
  let current = '/';
  let rest = toParts(path);
  for (let links = 0; rest.length > 0 && links <= maxLinks; ) {
    const [part = '', ...others] = rest;
    rest = others;
    if (part === '..') {
      current = dirname(current);
      continue;
    }
    const target = await readlink(join(current, part)).catch(codeOf);
    if (target === 'EINVAL') {
      current = join(current, part);
      continue;
    }
    note(current, part);
    // A missing or unreadable part ends the path.
    if (/^E[A-Z]+$/.test(target)) break;
    links++;
    if (target.startsWith('/')) current = '/';
    rest = [...toParts(target), ...rest];
  }
  return found;
}

function toParts(path: string): string[] {
  return path.split('/').filter((part) => part !== '' && part !== '.');
}
