// Replays decisions that workers recorded into one directory under other rules: the newest part of each file.
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../../../shared/clock.ts';
import type { RuleDocument } from '../../../../shared/rules/rule-document.ts';
import { unreadable } from '../../../../shared/rules-directory.ts';
import { listBelow } from '../../folder-entries.ts';
import { openRecordedDecisions } from '../replay/recorded-decisions.ts';
import { type ReplayResult, replayRecording } from '../replay/recording-replay.ts';

export interface RecordingsInput {
  /** Contains one file, or one folder of files, for each worker. */
  readonly directory: string;
  readonly domain: string;
  readonly documents: readonly RuleDocument[];
  /** The documents to compare with. */
  readonly others: readonly RuleDocument[];
  readonly clock: Clock;
}

/** The total for all files; a megabyte has about 3,000 decisions. */
export const mostBytes = 16 * 1024 * 1024;
const mostFiles = 100;
export const mostMs = 4_000;

export async function replayRecordings(input: RecordingsInput): Promise<ReplayResult> {
  const { directory, domain, documents, others, clock } = input;
  const paths = await listFiles(directory);
  if (typeof paths === 'string') return { ok: false, message: paths };
  if (paths.length === 0) return { ok: false, message: 'there is no recording yet' };
  const opened = await openRecordedDecisions(paths, Math.floor(mostBytes / paths.length));
  if (!opened.ok) return opened;
  const endMs = clock.monotonicMs() + mostMs;
  return replayRecording({
    ...{ recorded: opened.recorded, documents, others, domain },
    // All rules are one domain.
    mergeDomains: true,
    isEnough: () => clock.monotonicMs() > endMs,
  });
}

/** The most recently written files, or why they cannot be listed. */
async function listFiles(directory: string): Promise<readonly string[] | string> {
  const found: { readonly path: string; readonly atMs: number }[] = [];
  try {
    for (const { name, parentPath } of await listBelow(directory, 10 * mostFiles)) {
      const path = join(parentPath, name);
      // A file may be rotated meanwhile.
      const status = await stat(path).catch(() => undefined);
      if (status?.isFile()) found.push({ path, atMs: status.mtimeMs });
    }
  } catch (error) {
    return `the recordings ${unreadable(error)}`;
  }
  return found
    .sort((a, b) => b.atMs - a.atMs)
    .slice(0, mostFiles)
    .map(({ path }) => path);
}
