// The settings of the recording of decisions (recording.ts).
import { float, int, list, text } from '../../shared/settings/kind.ts';
import type { GroupValues } from '../../shared/settings/setting.ts';
import { maxBufferedBytes } from './record-buffer.ts';

export function recordingSettings() {
  return {
    path: text({
      names: ['RECORD_DECISIONS'],
      default: '',
      doc: 'File that decisions are recorded in, as JSON lines; a worker needs a file of its own; empty records nothing',
    }),
    rate: float({
      names: ['RECORD_DECISIONS_RATE'],
      default: 0.01,
      min: 0.000001,
      max: 1,
      doc: 'Share of descriptors to record: all requests of a descriptor or none, the same on each worker',
    }),
    maxPerSecond: int({
      names: ['RECORD_DECISIONS_MAX_PER_SECOND'],
      default: 1_000,
      min: 1,
      max: 1_000_000,
      doc: 'Decisions recorded in a second; further ones are counted, and missing in the file, which reports them',
    }),
    fileBytes: int({
      names: ['RECORD_DECISIONS_FILE_SIZE_IN_BYTES'],
      default: 100 * 1024 * 1024,
      min: 2 * maxBufferedBytes,
      doc: 'Size at which the file is rotated',
    }),
    files: int({
      names: ['RECORD_DECISIONS_FILES'],
      default: 3,
      min: 1,
      max: 1_000,
      doc: 'How many files are kept, including the current one; the others are its name with .1, .2 and so on',
    }),
    hashedKeys: list({
      names: ['RECORD_DECISIONS_HASHED_KEYS'],
      example: 'user,remote_address',
      doc: 'Keys of entries whose values are recorded as hashes, as a comma-separated list; * is all keys',
    }),
    hashKey: text({
      names: ['RECORD_DECISIONS_HASH_SECRET'],
      default: '',
      secret: 'whole',
      doc: 'Secret of these hashes: with the same one a value has the same hash on each worker',
    }),
  };
}

/** The part of the worker's settings from which recordings are made. */
export interface RecordingSettings {
  readonly recording: GroupValues<ReturnType<typeof recordingSettings>>;
  readonly processes: { readonly count: number };
}
