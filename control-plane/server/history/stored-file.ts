// Keeps a part of a process' state in a file of the state directory, so that the next process continues with it:
// written every half minute if it has changed, and at the end. A killed process loses the changes since.
import { mkdir, readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Static, TSchema } from 'typebox';
import { Value } from 'typebox/value';
import { type Clock, repeatAfter } from '../../../shared/clock.ts';
import { errorText } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import { codeOf } from '../../../shared/rules-directory.ts';
import { writeFileAtomically } from '../store/atomic-file.ts';
import { toOtherVersion } from '../store/format-version.ts';
import { setAside } from '../store/set-aside.ts';

export interface StoredFile<Content> {
  /** Undefined if there is no content, or it is damaged or belongs to another store; the latter two are logged. Never
   * rejects. Damaged content is set aside. */
  read(): Promise<Content | undefined>;
  /** Starts writing periodically. */
  start(): void;
  /** Resolves when the last write is done. */
  stop(): Promise<void>;
}

export interface StoredFileDeps<Schema extends TSchema> {
  readonly path: string;
  readonly schema: Schema;
  readonly maxBytes: number;
  /** Names the content, human-readable, such as `the last hour of charts`. */
  readonly what: string;
  /** The consequence of a failed read or write, such as `the charts start empty`. */
  readonly without: string;
  /** Why this content is refused; undefined where it is accepted. */
  readonly refuse: (content: Static<Schema>) => string | undefined;
  /** The newest content, at most the fraction `share` of all; undefined while there is nothing to keep. */
  readonly toContent: (share: number) => Static<Schema> | undefined;
  readonly log: Log;
  readonly clock: Clock;
}

export const writeIntervalMs = 30_000;
/** The format version of all these files. */
export const storedFormat = 1 as const;
const smallestShare = 0.001;

/** The reason why content is damaged. */
class Damage extends Error {}

export function openStoredFile<Schema extends TSchema>(
  deps: StoredFileDeps<Schema>,
): StoredFile<Static<Schema>> {
  const { path, schema, log } = deps;
  let written = '';
  let hasFailed = false;
  let writing: Promise<void> = Promise.resolve();
  let stopWriting = () => {};

  /** The content in a form that can be read again; reduced where all of it would be too large. */
  function toText(): string | undefined {
    for (let share = 1; share > smallestShare; share /= 2) {
      const content = deps.toContent(share);
      if (content === undefined) return undefined;
      const text = JSON.stringify(content);
      if (Buffer.byteLength(text) > deps.maxBytes) continue;
      // For example, a number that is not finite is written as null.
      if (!Value.Check(schema, JSON.parse(text))) {
        throw new Error('it could not be read again');
      }
      return text;
    }
    throw new Error('it is too large');
  }

  async function write(): Promise<void> {
    try {
      const text = toText();
      if (text === undefined || text === written) return;
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      await writeFileAtomically(path, text, 0o600);
      written = text;
      hasFailed = false;
    } catch (error) {
      if (!hasFailed) {
        log.warning(
          `${path} cannot be written (${errorText(error)}): after a restart ${deps.without}`,
        );
      }
      hasFailed = true;
    }
  }

  /** Rejects with the file system's error. */
  async function readContent(): Promise<unknown> {
    if ((await stat(path)).size > deps.maxBytes) return new Damage('it is too large');
    const text = await readFile(path, 'utf8');
    try {
      return JSON.parse(text);
    } catch (error) {
      return new Damage(errorText(error));
    }
  }

  function toReason(content: unknown): string {
    const other = toOtherVersion(content, [storedFormat]);
    return other === undefined ? `it is not ${deps.what}` : `it is of ${other}`;
  }

  function enqueueWrite(): Promise<void> {
    writing = writing.then(write);
    return writing;
  }

  return {
    async read() {
      let content: unknown;
      try {
        content = await readContent();
      } catch (error) {
        if (codeOf(error) !== 'ENOENT') {
          log.warning(`${path} cannot be read (${errorText(error)}): ${deps.without}`);
        }
        return undefined;
      }
      if (!Value.Check(schema, content)) {
        const reason = content instanceof Damage ? content.message : toReason(content);
        const where = await setAside(path);
        log.warning(`${path} cannot be read (${reason}): ${deps.without}; ${where}`);
        return undefined;
      }
      const refusal = deps.refuse(content);
      if (refusal === undefined) return content;
      log.warning(`${path} cannot be read (${refusal}): ${deps.without}`);
      return undefined;
    },
    start() {
      stopWriting = repeatAfter(deps.clock, writeIntervalMs, enqueueWrite);
    },
    stop() {
      stopWriting();
      return enqueueWrite();
    },
  };
}
