// Remembers the authors and reasons of the last changes of a directory, in a file beside its rules, for every control
// plane there. A revision is its rules: this file can only name an author and a message for it.
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';
import { codeOf, unreadable } from '../../shared/rules-directory.ts';
import { toOtherVersion } from './kept-version.ts';
import { type RevisionInfo, type StoredFile, toInfoText } from './revision.ts';
import { setAside } from './set-aside.ts';

export interface DirectoryAttribution {
  /**
   * The author of the newest revision, which has this id; undefined when nobody is known. `known` are the
   * revisions that were seen before, newest first.
   *
   * Content may come back without its author: an edit by hand can lead to rules that somebody made earlier, and
   * meant to be served at once then. So a line is for one revision alone, and never for one that is seen
   * after something newer.
   */
  find(id: string, known: readonly RevisionInfo[]): Promise<RevisionInfo | undefined>;
  /** The file with one more revision, to be written before the rules are. */
  add(revision: RevisionInfo): Promise<StoredFile>;
}

/** Hidden, so that it is no rules file and a change of it alone is not noticed. */
const fileName = '.ratelane-revisions.json';
const format = 1;
export const maxRevisions = 50;
/** The longest author and message are a fifth of it. */
const maxBytes = 256 * 1024;
/** The clocks of the machines may differ by this much. */
export const clockToleranceMs = 600_000;
const maxTimeMs = 8.64e15;

export function createDirectoryAttribution(
  directory: string,
  { log, clock }: { readonly log: Log; readonly clock: Clock },
): DirectoryAttribution {
  const path = join(directory, fileName);
  let logged: string | undefined;

  /** Newest first. Never rejects: what is wrong with the file is logged, once. */
  async function read(): Promise<readonly RevisionInfo[]> {
    const { revisions, problem } = await readAttribution(path);
    if (problem !== undefined && problem !== logged) {
      const where = isDamage(problem)
        ? await setAside(path)
        : 'the next change through the admin API replaces it';
      log.warning(
        `${path} is ignored, so the authors and messages of changes may be missing: ${problem}; ${where}`,
      );
    }
    logged = problem;
    return revisions;
  }

  return {
    async find(id, known) {
      const newestMs = known[0]?.atMs ?? 0;
      return (await read()).find(
        ({ id: ofId, atMs }) =>
          ofId === id &&
          atMs <= clock.wallMs() + clockToleranceMs &&
          atMs >= newestMs - clockToleranceMs &&
          !known.some((each) => each.id === id && each.atMs === atMs),
      );
    },
    async add(revision) {
      return { path: fileName, text: toText([revision, ...(await read())]) };
    },
  };
}

const damaged = 'it is damaged';
const tooLong = `it has more than ${maxBytes} bytes`;

function isDamage(problem: string): boolean {
  return problem === damaged || problem === tooLong;
}

interface FoundAttribution {
  /** Newest first; none when there is a problem, or no file. */
  readonly revisions: readonly RevisionInfo[];
  readonly problem: string | undefined;
}

async function readAttribution(path: string): Promise<FoundAttribution> {
  const ignored = (problem: string) => ({ revisions: [], problem });
  try {
    // Neither a link is followed, nor can a pipe hold the reader for ever.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const handle = await open(path, flags);
    try {
      if (!(await handle.stat()).isFile()) return ignored('it is not a file');
      const bytes = await buffer(handle.createReadStream({ end: maxBytes, autoClose: false }));
      if (bytes.length > maxBytes) return ignored(tooLong);
      return parseAttribution(bytes.toString());
    } finally {
      await handle.close();
    }
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT') return { revisions: [], problem: undefined };
    return ignored(code === 'ELOOP' ? 'it is a symbolic link' : `it ${unreadable(error)}`);
  }
}

export function parseAttribution(text: string): FoundAttribution {
  const ignored = (problem: string) => ({ revisions: [], problem });
  let content: { format?: unknown; revisions?: unknown } | null;
  try {
    content = JSON.parse(text);
  } catch {
    return ignored(damaged);
  }
  const other = toOtherVersion(content, [format]);
  if (other !== undefined) return ignored(`it is of ${other}`);
  if (content?.format !== format || !Array.isArray(content.revisions)) return ignored(damaged);
  const revisions = content.revisions.map(parseRevision);
  return revisions.length <= maxRevisions && revisions.every((each) => each !== undefined)
    ? { revisions, problem: undefined }
    : ignored(damaged);
}

function parseRevision(value: unknown): RevisionInfo | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { id, atMs, author = '', message = '' }: Record<string, unknown> = { ...value };
  if (typeof id !== 'string' || !/^[0-9a-f]{40}$/.test(id)) return undefined;
  if (typeof atMs !== 'number' || !(Math.abs(atMs) <= maxTimeMs)) return undefined;
  if (typeof author !== 'string' || typeof message !== 'string') return undefined;
  return { id, atMs, author: toInfoText(author), message: toInfoText(message) };
}

/** As many of the newest as the bounds allow. */
function toText(revisions: readonly RevisionInfo[]): string {
  for (let count = maxRevisions; ; count--) {
    const text = JSON.stringify({ format, revisions: revisions.slice(0, count) });
    if (Buffer.byteLength(text) <= maxBytes) return text;
  }
}
