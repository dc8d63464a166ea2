// Keeps the last revisions on disk for a store that has no history of its own.
import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import Type from 'typebox';
import { Value } from 'typebox/value';
import { toCountText } from '../../../shared/count-text.ts';
import { errorText } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import { codeOf } from '../../../shared/rules-directory.ts';
import { writeFileAtomically } from './atomic-file.ts';
import { type Revision, type RevisionInfo, toRevisionInfo } from './revision.ts';
import { readRevisionFile, writeRevisionFile } from './revision-file.ts';
import { asideSuffix, setAside } from './set-aside.ts';

export interface RevisionHistory {
  /** Newest first. */
  list(): Promise<readonly RevisionInfo[]>;
  read(id: string): Promise<Revision | undefined>;
  /** Adds the newest revision; replaces the previous newest one if it has the same id. Never rejects: failures are
   * logged. */
  add(revision: Revision): Promise<void>;
}

export interface RevisionHistoryDeps {
  readonly folder: string;
  /** The description of the store. */
  readonly store: string;
  readonly maxRevisions: number;
  readonly maxBytes: number;
  readonly log: Log;
}

export function createRevisionHistory(deps: RevisionHistoryDeps): RevisionHistory {
  const { folder, store, maxRevisions, maxBytes, log } = deps;
  const index = join(folder, 'history.json');
  const fileOf = (id: string) => join(folder, `${id}.revision.json`);

  /** Why the index could not be read the last time: it is read at each poll of the store. */
  let failure: string | undefined;

  async function list(): Promise<readonly RevisionInfo[]> {
    let text: string;
    try {
      text = await readFile(index, 'utf8');
      failure = undefined;
    } catch (error) {
      const before = failure;
      failure = codeOf(error) === 'ENOENT' ? undefined : errorText(error);
      if (failure !== undefined && failure !== before) {
        log.warning(`${index} cannot be read: ${failure}`);
      }
      return [];
    }
    return parseIndex(text) ?? rebuild();
  }

  /** If the index is damaged, the revisions still exist. */
  async function rebuild(): Promise<readonly RevisionInfo[]> {
    const where = await setAside(index);
    const found: RevisionInfo[] = [];
    for (const name of await readdir(folder)) {
      const id = idOf(name);
      const revision = id && (await tryToRead(id));
      if (revision) found.push(toRevisionInfo(revision));
    }
    const infos = found.sort((a, b) => b.atMs - a.atMs).slice(0, maxRevisions);
    log.warning(
      `${index} is damaged: it is rebuilt from ${toCountText(infos.length, 'revision')}; ${where}`,
    );
    await writeFileAtomically(index, JSON.stringify(infos), 0o600).catch(() => {
      // The next poll creates it again.
    });
    return infos;
  }

  /** Undefined if the revision is damaged, which is logged: a rollback to the others is still possible. */
  async function tryToRead(id: string): Promise<Revision | undefined> {
    try {
      return await readRevisionFile(fileOf(id), store);
    } catch (error) {
      log.warning(`Revision ${id} can no longer be read: ${errorText(error)}`);
      return undefined;
    }
  }

  /** The entries within the limits, without those whose files were removed. */
  async function choose(infos: readonly RevisionInfo[]): Promise<RevisionInfo[]> {
    const chosen: RevisionInfo[] = [];
    const chosenIds = new Set<string>();
    let bytes = 0;
    for (const info of infos) {
      const size = chosenIds.has(info.id) ? 0 : await sizeOf(fileOf(info.id));
      if (size === undefined) continue;
      const isWithin = chosen.length < maxRevisions && bytes + size <= maxBytes;
      // The newest is kept whatever its size.
      if (!isWithin && chosen.length > 0) break;
      bytes += size;
      chosen.push(info);
      chosenIds.add(info.id);
    }
    return chosen;
  }

  /** Removes the files that are not in the index. */
  async function prune(infos: readonly RevisionInfo[]): Promise<void> {
    const chosenIds = new Set(infos.map(({ id }) => id));
    for (const name of await readdir(folder)) {
      const id = idOf(name) ?? idOf(name.replace(asideSuffix, ''));
      if (id !== undefined && !chosenIds.has(id)) await rm(join(folder, name), { force: true });
    }
  }

  return {
    list,
    async read(id) {
      if (!(await list()).some((info) => info.id === id)) return undefined;
      return tryToRead(id);
    },
    async add(revision) {
      const { id } = revision;
      try {
        await mkdir(folder, { recursive: true, mode: 0o700 });
        await writeRevisionFile(fileOf(id), store, revision);
        const [newest, ...older] = await list();
        const before = newest === undefined || newest.id === id ? older : [newest, ...older];
        const infos = await choose([toRevisionInfo(revision), ...before]);
        await writeFileAtomically(index, JSON.stringify(infos), 0o600);
        // Only after the index is on disk: otherwise it would list missing files.
        await prune(infos);
      } catch (error) {
        log.warning(
          `Revision ${id} of ${store} cannot be stored for a rollback: ${errorText(error)}`,
        );
      }
    },
  };
}

/** Undefined when the file does not exist. */
async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** The id of a revision's file; undefined for any other file. */
function idOf(name: string): string | undefined {
  const [id = '', ...rest] = name.split('.');
  return rest.join('.') === 'revision.json' ? id : undefined;
}

const indexJson = Type.Array(
  Type.Object({
    id: Type.String({ pattern: '^[0-9a-f]+$' }),
    atMs: Type.Number(),
    author: Type.Optional(Type.String()),
    message: Type.Optional(Type.String()),
  }),
);

/** Undefined when the index is not in the format that control planes write. */
function parseIndex(text: string): RevisionInfo[] | undefined {
  try {
    const infos: unknown = JSON.parse(text);
    if (!Value.Check(indexJson, infos)) return undefined;
    return infos.map(({ id, atMs, author, message }) => ({ id, atMs, author, message }));
  } catch {
    return undefined;
  }
}
