// The record in the state directory: a copy for the next start of this control plane, or the record itself if this
// control plane shares none.
import { access, mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import Type, { type Static } from 'typebox';
import { Value } from 'typebox/value';
import { errorText } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import { codeOf } from '../../../shared/rules-directory.ts';
import { readSmallFile } from '../../../shared/small-file.ts';
import { lastGoodFile } from '../snapshot/last-good.ts';
import { writeFileAtomically } from '../store/atomic-file.ts';
import { setAside } from '../store/set-aside.ts';
import { maxSharedTextBytes } from '../store/shared-text.ts';
import { parseRecord, toRecordText, toTakenBackOnly } from './record.ts';
import { readTextBesideRules, removeTextsBesideRules } from './record-beside-rules.ts';

const fileJson = Type.Object({
  /** The description of the revision's store. */
  store: Type.String(),
  text: Type.String(),
  /** Identifies this control plane, the same over restarts; a text of the previous version has none. */
  plane: Type.Optional(Type.String({ maxLength: 64 })),
});
export type OwnRecord = Readonly<Omit<Static<typeof fileJson>, 'store'>>;

export interface OwnTextOptions {
  readonly stateDirectory: string;
  /** The description of the revision's store. */
  readonly store: string;
  /** The directory of the rules; undefined if they are in Git. */
  readonly rulesDirectory?: string | undefined;
  /** Whether the record is beside the rules in Git, so that this text is a copy. */
  readonly isInGit: boolean;
}

/** A text that cannot be read is logged; no call rejects. */
export interface OwnText {
  /** Human-readable: where it is. */
  readonly path: string;
  /** Undefined if this store does not have it. The text may be of a version that this program cannot read. */
  read(): Promise<OwnRecord | undefined>;
  /** Renames the text that was read, and resolves with its description for a log line. */
  setAside(): Promise<string>;
  /** Returns at once; logs a failure. */
  save(record: OwnRecord): void;
  /** Resolves with why the text cannot be written, human-readable; with undefined once it is written. */
  write(record: OwnRecord): Promise<string | undefined>;
  /** Returns at once; rewrites what this process has written if it was removed, and logs that. */
  restore(): void;
  /** Resolves when no write is under way any more. */
  settled(): Promise<void>;
}

/** The limit for the text and the fields around it. */
const maxBytes = 8 * maxSharedTextBytes;

/** Throws if the text is not in the format that control planes write. */
function parse(text: string): Static<typeof fileJson> {
  const content: unknown = JSON.parse(text);
  if (!Value.Check(fileJson, content)) throw new Error('it is not the record of a rollout');
  const parsed = parseRecord(content.text);
  if (!parsed.ok && !parsed.ofOtherVersion) throw new Error(parsed.problem);
  return content;
}

export function openOwnText(options: OwnTextOptions, log: Log): OwnText {
  const { stateDirectory, store, rulesDirectory, isInGit } = options;
  const path = join(stateDirectory, 'rollout.json');
  let newest: OwnRecord | undefined;
  /** The text on the disk. */
  let written: string | undefined;
  let hasFailed = false;
  let isRemovedBesideRules = false;
  let writing: Promise<string | undefined> = Promise.resolve(undefined);

  async function write(given: OwnRecord): Promise<string | undefined> {
    // A newer text is waiting.
    if (given !== newest) return undefined;
    // The previous version rejects a file without this field, and continues without the record.
    const text = JSON.stringify({ store, ...given, isAlone: !isInGit });
    if (text === written) return undefined;
    try {
      await mkdir(stateDirectory, { recursive: true, mode: 0o700 });
      await writeFileAtomically(path, text, 0o600).catch((error: unknown) =>
        writeInPlace(path, text, error),
      );
      written = text;
    } catch (error) {
      return errorText(error);
    }
    await removeBesideRules();
    return undefined;
  }

  async function removeBesideRules(): Promise<void> {
    if (rulesDirectory === undefined || isRemovedBesideRules) return;
    isRemovedBesideRules = true;
    try {
      await removeTextsBesideRules(rulesDirectory);
    } catch (error) {
      const text = `${rulesDirectory}: the record of an earlier version cannot be removed (${errorText(error)})`;
      log.warning(`${text}: remove .ratelane-rollout.*.json before that version runs again`);
    }
  }

  async function readBesideRules(): Promise<OwnRecord | undefined> {
    if (rulesDirectory === undefined) return undefined;
    try {
      const found = await readTextBesideRules(rulesDirectory);
      if (found === undefined) return undefined;
      const parsed = parseRecord(found.text);
      if (!parsed.ok) throw new Error(`${found.path}: ${parsed.problem}`);
      // Authors of rules can write there: without state of an earlier version it could be their own approval.
      const isOurs = await canAccess(join(stateDirectory, lastGoodFile));
      const what = isOurs ? 'the record' : 'what was taken back';
      log.notice(`Rollout: ${what} is read from ${found.path}, of an earlier version`);
      return { text: isOurs ? found.text : toRecordText(toTakenBackOnly(parsed.record)) };
    } catch (error) {
      log.warning(
        `The record of an earlier version cannot be read (${errorText(error)}): it is ignored`,
      );
      return undefined;
    }
  }

  async function save(given: OwnRecord): Promise<string | undefined> {
    const problem = await write(given);
    if (problem !== undefined && !hasFailed) {
      log.warning(`${path} cannot be written (${problem}): a restart will not find this record`);
    }
    hasFailed = problem !== undefined;
    return problem;
  }

  async function restore(): Promise<string | undefined> {
    if (written === undefined || newest === undefined || (await isThere(path))) return undefined;
    log.warning(`${path} was removed: writing it again`);
    written = undefined;
    return save(newest);
  }

  return {
    path,
    setAside: () => setAside(path),
    async read() {
      let content: Static<typeof fileJson>;
      try {
        content = parse(await readSmallFile(path, maxBytes));
      } catch (error) {
        const isFault = error instanceof Error && 'code' in error;
        if (codeOf(error) === 'ENOENT') return readBesideRules();
        const where = isFault ? '' : `; ${await setAside(path)}`;
        log.warning(`${path} cannot be read (${errorText(error)}): it is ignored${where}`);
        return undefined;
      }
      const { store: of, text, plane } = content;
      return of === store ? { text, ...(plane !== undefined && { plane }) } : undefined;
    },
    save(record) {
      newest = record;
      writing = writing.then(() => save(record));
    },
    write(record) {
      newest = record;
      writing = writing.then(() => write(record));
      return writing;
    },
    restore() {
      writing = writing.then(restore);
    },
    settled: async () => void (await writing),
  };
}

/** For example on a full disk: what was taken back must not return after a restart. `why`: why no other file can be
 * written. */
async function writeInPlace(path: string, text: string, why: unknown): Promise<void> {
  const file = await open(path, 'r+').catch(() => Promise.reject(why));
  try {
    // More than its blocks have would leave a part.
    if ((await file.stat()).blocks * 512 < Buffer.byteLength(text)) throw why;
    await file.truncate((await file.write(text, 0)).bytesWritten);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function canAccess(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** False only if the file is known to be missing. */
async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    (error: unknown) => codeOf(error) !== 'ENOENT',
  );
}
