// Keeps the state of a rollout on disk, for a control plane that is killed during it: how far it is, or
// that it was taken back.
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import Type from 'typebox';
import { Value } from 'typebox/value';
import { errorText } from '../../shared/errors.ts';
import type { Log } from '../../shared/log.ts';
import { codeOf } from '../../shared/rules-directory.ts';
import { writeFileAtomically } from '../store/atomic-file.ts';

const recordJson = Type.Object({
  format: Type.Literal(1),
  /** The description of the revision's store. */
  store: Type.String(),
  revision: Type.String(),
  outcome: Type.Union([
    Type.Literal('running'),
    Type.Literal('paused'),
    Type.Literal('taken_back'),
    Type.Literal('in_force'),
  ]),
  /** Counted from 0. */
  step: Type.Integer({ minimum: 0 }),
  /** Nodes up to this place have it (share.ts). */
  limit: Type.Number(),
  reason: Type.String(),
});
type StoredRecord = Type.Static<typeof recordJson>;
export type RolloutRecord = Omit<StoredRecord, 'format' | 'store'>;

export interface RecordFile {
  /** Undefined when there is none, or one of another store. Never rejects: what cannot be read is said,
   * and the rollout starts again. */
  read(): Promise<RolloutRecord | undefined>;
  /** Returns at once; the newest is written last. Failures are logged. */
  keep(record: RolloutRecord): void;
  /** Resolves when nothing is being written any more. */
  settled(): Promise<void>;
}

export function openRecordFile(stateDirectory: string, store: string, log: Log): RecordFile {
  const path = join(stateDirectory, 'rollout.json');
  let newest: RolloutRecord | undefined;
  let writing: Promise<void> = Promise.resolve();

  async function write(record: RolloutRecord): Promise<void> {
    if (record !== newest) return;
    try {
      await mkdir(stateDirectory, { recursive: true, mode: 0o700 });
      await writeFileAtomically(path, JSON.stringify({ format: 1, store, ...record }), 0o600);
    } catch (error) {
      log.warning(
        `${path} cannot be written (${errorText(error)}): a restart begins the rollout of ${record.revision} anew`,
      );
    }
  }

  return {
    async read() {
      try {
        const content: unknown = JSON.parse(await readFile(path, 'utf8'));
        if (!Value.Check(recordJson, content)) throw new Error('it is not the record of a rollout');
        return content.store === store ? content : undefined;
      } catch (error) {
        if (codeOf(error) !== 'ENOENT') {
          log.warning(`${path} cannot be read (${errorText(error)}): the rollout starts again`);
        }
        return undefined;
      }
    },
    keep(record) {
      newest = record;
      writing = writing.then(() => write(record));
    },
    settled: () => writing,
  };
}
