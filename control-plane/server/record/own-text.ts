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

/** Its public members. */
export type OwnText = Pick<OwnTextFile, keyof OwnTextFile>;

/** A text that cannot be read is logged; no call rejects. */
export class OwnTextFile {
  /** Human-readable: where it is. */
  readonly path: string;
  readonly #options: OwnTextOptions;
  readonly #log: Log;
  #newest: OwnRecord | undefined;
  /** The text on the disk. */
  #written: string | undefined;
  #hasFailed = false;
  #isRemovedBesideRules = false;
  #writing: Promise<string | undefined> = Promise.resolve(undefined);

  constructor(options: OwnTextOptions, log: Log) {
    this.path = join(options.stateDirectory, 'rollout.json');
    this.#options = options;
    this.#log = log;
  }

  /** Undefined if this store does not have it. The text may be of a version that this program cannot read. */
  async read(): Promise<OwnRecord | undefined> {
    let content: Static<typeof fileJson>;
    try {
      content = parse(await readSmallFile(this.path, maxBytes));
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return this.#readBesideRules();
      const isFault = error instanceof Error && 'code' in error;
      const where = isFault ? '' : `; ${await this.setAside()}`;
      this.#log.warning(`${this.path} cannot be read (${errorText(error)}): it is ignored${where}`);
      return undefined;
    }
    const { store, text, plane } = content;
    if (store !== this.#options.store) return undefined;
    return { text, ...(plane !== undefined && { plane }) };
  }

  /** Renames the text that was read, and resolves with its description for a log line. */
  setAside(): Promise<string> {
    return setAside(this.path);
  }

  /** Returns at once; logs a failure. */
  save(record: OwnRecord): void {
    this.#newest = record;
    this.#writing = this.#writing.then(() => this.#writeOrLog(record));
  }

  /** Resolves with why the text cannot be written, human-readable; with undefined once it is written. */
  write(record: OwnRecord): Promise<string | undefined> {
    this.#newest = record;
    this.#writing = this.#writing.then(() => this.#writeNewest(record));
    return this.#writing;
  }

  /** Returns at once; rewrites what this process has written if it was removed, and logs that. */
  restore(): void {
    this.#writing = this.#writing.then(async () => {
      if (this.#written === undefined || this.#newest === undefined) return undefined;
      if (await isThere(this.path)) return undefined;
      this.#log.warning(`${this.path} was removed: writing it again`);
      this.#written = undefined;
      return this.#writeOrLog(this.#newest);
    });
  }

  /** Resolves when no write is under way. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  async #writeOrLog(given: OwnRecord): Promise<string | undefined> {
    const problem = await this.#writeNewest(given);
    if (problem !== undefined && !this.#hasFailed) {
      const text = `${this.path} cannot be written (${problem})`;
      this.#log.warning(`${text}: a restart will not find this record`);
    }
    this.#hasFailed = problem !== undefined;
    return problem;
  }

  async #writeNewest(given: OwnRecord): Promise<string | undefined> {
    // A newer text is waiting.
    if (given !== this.#newest) return undefined;
    const { stateDirectory, store, isInGit } = this.#options;
    // The previous version rejects a file without this field, and continues without the record.
    const text = JSON.stringify({ store, ...given, isAlone: !isInGit });
    if (text === this.#written) return undefined;
    try {
      await mkdir(stateDirectory, { recursive: true, mode: 0o700 });
      await writeFileAtomically(this.path, text, 0o600).catch((error: unknown) =>
        writeInPlace(this.path, text, error),
      );
      this.#written = text;
    } catch (error) {
      return errorText(error);
    }
    await this.#removeBesideRules();
    return undefined;
  }

  async #removeBesideRules(): Promise<void> {
    const { rulesDirectory } = this.#options;
    if (rulesDirectory === undefined || this.#isRemovedBesideRules) return;
    this.#isRemovedBesideRules = true;
    try {
      await removeTextsBesideRules(rulesDirectory);
    } catch (error) {
      const text = `${rulesDirectory}: the record of an earlier version cannot be removed (${errorText(error)})`;
      this.#log.warning(`${text}: remove .ratelane-rollout.*.json before that version runs again`);
    }
  }

  async #readBesideRules(): Promise<OwnRecord | undefined> {
    const { rulesDirectory, stateDirectory } = this.#options;
    if (rulesDirectory === undefined) return undefined;
    try {
      const found = await readTextBesideRules(rulesDirectory);
      if (found === undefined) return undefined;
      const parsed = parseRecord(found.text);
      if (!parsed.ok) throw new Error(`${found.path}: ${parsed.problem}`);
      // Authors of rules can write there: without state of an earlier version it could be their own approval.
      const isOurs = await canAccess(join(stateDirectory, lastGoodFile));
      const what = isOurs ? 'the record' : 'the list of revisions taken back';
      this.#log.notice(`Rollout: reading ${what} of an earlier version from ${found.path}`);
      return { text: isOurs ? found.text : toRecordText(toTakenBackOnly(parsed.record)) };
    } catch (error) {
      this.#log.warning(
        `The record of an earlier version cannot be read (${errorText(error)}): it is ignored`,
      );
      return undefined;
    }
  }
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
