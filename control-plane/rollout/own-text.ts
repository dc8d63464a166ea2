// The record of a rollout where no other control plane has it: in memory, and in the state directory for the
// next start of this one.
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import Type from 'typebox';
import { Value } from 'typebox/value';
import { errorText } from '../../shared/errors.ts';
import type { Log } from '../../shared/log.ts';
import { codeOf } from '../../shared/rules-directory.ts';
import { writeFileAtomically } from '../store/atomic-file.ts';
import type { SharedText, VersionedText } from '../store/shared-text.ts';

const fileJson = Type.Object({
  /** The description of the revision's store. */
  store: Type.String(),
  text: Type.String(),
});

export interface OwnText extends SharedText {
  /** Resolves when nothing is being written any more. */
  settled(): Promise<void>;
}

/** What cannot be read or written is logged, and the rollout starts again after a restart: no call rejects,
 * and each swap succeeds. */
export function openOwnText(stateDirectory: string, store: string, log: Log): OwnText {
  const path = join(stateDirectory, 'rollout.json');
  let newest: VersionedText | undefined;
  let writes = 0;
  let isRead = false;
  let writing: Promise<void> = Promise.resolve();

  async function write(given: VersionedText): Promise<void> {
    // A newer one is waiting.
    if (given !== newest) return;
    try {
      await mkdir(stateDirectory, { recursive: true, mode: 0o700 });
      await writeFileAtomically(path, JSON.stringify({ store, text: given.text }), 0o600);
    } catch (error) {
      log.warning(
        `${path} cannot be written (${errorText(error)}): a restart begins the rollout anew`,
      );
    }
  }

  async function readFromDisk(): Promise<VersionedText | undefined> {
    try {
      const content: unknown = JSON.parse(await readFile(path, 'utf8'));
      if (!Value.Check(fileJson, content)) throw new Error('it is not the record of a rollout');
      return content.store === store ? { version: 'kept', text: content.text } : undefined;
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') {
        log.warning(`${path} cannot be read (${errorText(error)}): the rollout starts again`);
      }
      return undefined;
    }
  }

  return {
    description: path,
    async read() {
      if (!isRead) newest = await readFromDisk();
      isRead = true;
      return newest;
    },
    async swap(_before, text) {
      const given = { version: String(++writes), text };
      newest = given;
      isRead = true;
      writing = writing.then(() => write(given));
      return { kind: 'written', version: given.version };
    },
    settled: () => writing,
    close() {},
  };
}
