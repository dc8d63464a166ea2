// The last good revision on disk, for a start when the store has none.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { errorText } from '../../shared/errors.ts';
import type { Log } from '../../shared/log.ts';
import type { Revision } from '../store/revision.ts';
import { readRevisionFile, writeRevisionFile } from '../store/revision-file.ts';

export interface LastGood {
  /** From the same store; undefined when there is none. Rejects with an AppError `store` when the file is
   * damaged. */
  read(): Promise<Revision | undefined>;
  /** Returns at once. Failures are logged. */
  keep(revision: Revision): void;
  /** Resolves when nothing is being written any more. */
  settled(): Promise<void>;
}

export interface LastGoodDeps {
  readonly stateDirectory: string;
  /** The description of the store. */
  readonly store: string;
  readonly log: Log;
}

export function createLastGood({ stateDirectory, store, log }: LastGoodDeps): LastGood {
  const file = join(stateDirectory, 'last-good.revision.json');
  let keptId: string | undefined;
  let writing: Promise<void> = Promise.resolve();

  async function write(revision: Revision): Promise<void> {
    // A newer one is waiting.
    if (keptId !== revision.id) return;
    try {
      await mkdir(stateDirectory, { recursive: true, mode: 0o700 });
      await writeRevisionFile(file, store, revision);
    } catch (error) {
      // Unless a newer one is waiting, which is written anyway.
      if (keptId === revision.id) keptId = undefined;
      log.warning(
        `Revision ${revision.id} cannot be kept for the next start: ${errorText(error)}; it is served all the same`,
      );
    }
  }

  return {
    async read() {
      const revision = await readRevisionFile(file, store);
      keptId = revision?.id;
      return revision;
    },
    keep(revision) {
      if (revision.id === keptId) return;
      keptId = revision.id;
      writing = writing.then(() => write(revision));
    },
    settled: () => writing,
  };
}
