// Plans lifts in large files in the thread: a file is parsed before and after each lift.
import { HttpError } from '../../../shared/router/index.ts';
import {
  type JobThread,
  type Next,
  type Steps,
  TooMuch,
} from '../../../shared/thread/job-thread.ts';
import { isLarge } from '../snapshot/building.ts';
import { receiveFiles, toFilePieces } from '../snapshot/building-pieces.ts';
import type { StoredFile } from '../store/revision.ts';
import type { WorkHead } from '../work-thread.ts';
import { unlessBusy } from './examination.ts';
import { LiftRefused, type LiftsAsked, planLifts } from './lift.ts';

/** The first answer: the changed files follow, unless the lifts are refused. */
export interface LiftHead {
  readonly refused: Pick<LiftRefused, 'status' | 'message'> | undefined;
}

/** Like planLifts, in the thread if the files are large. Rejects with an HttpError: 429 if too many jobs wait. */
export async function planLiftsApart(
  thread: JobThread,
  files: readonly StoredFile[],
  asked: LiftsAsked,
): Promise<StoredFile[]> {
  const [first] = files;
  const subject = files.length === 1 && first ? first.path : `domain ${asked.domain}`;
  const size = files.reduce((sum, { text }) => sum + text.length, 0);
  const job = { subject, size, send: toPieces(files, asked), receive };
  try {
    return await (isLarge({ files }) ? unlessBusy(thread.run(job)) : planLifts(files, asked));
  } catch (error) {
    if (error instanceof LiftRefused) throw new HttpError(error.status, { detail: error.message });
    if (!(error instanceof TooMuch)) throw error;
    throw new HttpError(409, { detail: `${error.message}: write the lift into the file yourself` });
  }
}

function* toPieces(files: readonly StoredFile[], asked: LiftsAsked): Generator<object, void> {
  yield { work: 'lift' } satisfies WorkHead;
  yield asked;
  yield* toFilePieces(files);
}

function* receive(next: Next): Steps<StoredFile[]> {
  const { refused } = next() as LiftHead;
  if (refused !== undefined) throw new LiftRefused(refused.status, refused.message);
  return yield* receiveFiles(next);
}
