// Keeps a part of a process' state in a file of the state directory, so that the next process goes on with it:
// written every half minute while there is news, and at the end. A killed process loses the changes since.
import { mkdir, readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Static, TSchema } from 'typebox';
import { Value } from 'typebox/value';
import { type Clock, repeatAfter } from '../shared/clock.ts';
import { errorText } from '../shared/errors.ts';
import type { Log } from '../shared/log.ts';
import { codeOf } from '../shared/rules-directory.ts';
import { writeFileAtomically } from './store/atomic-file.ts';

export interface KeptFile<Content> {
  /** Undefined where there is none, or it is damaged or of something else, which is logged: it never rejects. */
  read(): Promise<Content | undefined>;
  /** Begins to write it. */
  start(): void;
  /** Resolves when it is written. */
  stop(): Promise<void>;
}

export interface KeptFileDeps<Schema extends TSchema> {
  readonly path: string;
  readonly schema: Schema;
  readonly maxBytes: number;
  /** Names the content for people, such as `the last hour of charts`. */
  readonly what: string;
  /** Says how it goes on when it cannot be read or written, such as `the charts begin anew`. */
  readonly without: string;
  /** Why this content is not taken; undefined where it is. */
  readonly refuse: (content: Static<Schema>) => string | undefined;
  /** Undefined while there is nothing to keep. */
  readonly toContent: () => Static<Schema> | undefined;
  readonly log: Log;
  readonly clock: Clock;
}

export const keepMs = 30_000;

export function openKeptFile<Schema extends TSchema>(
  deps: KeptFileDeps<Schema>,
): KeptFile<Static<Schema>> {
  const { path, schema, log } = deps;
  let written = '';
  let hasFailed = false;
  let writing: Promise<void> = Promise.resolve();
  let stopWriting = () => {};

  async function write(): Promise<void> {
    const content = deps.toContent();
    const text = content === undefined ? undefined : JSON.stringify(content);
    if (text === undefined || text === written) return;
    try {
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

  function keep(): Promise<void> {
    writing = writing.then(write);
    return writing;
  }

  return {
    async read() {
      try {
        if ((await stat(path)).size > deps.maxBytes) throw new Error('it is too large');
        const content: unknown = JSON.parse(await readFile(path, 'utf8'));
        if (!Value.Check(schema, content)) throw new Error(`it is not ${deps.what}`);
        const refusal = deps.refuse(content);
        if (refusal !== undefined) throw new Error(refusal);
        return content;
      } catch (error) {
        if (codeOf(error) !== 'ENOENT') {
          log.warning(`${path} cannot be read (${errorText(error)}): ${deps.without}`);
        }
        return undefined;
      }
    },
    start() {
      stopWriting = repeatAfter(deps.clock, keepMs, keep);
    },
    stop() {
      stopWriting();
      return keep();
    },
  };
}
