// The thread's side of lift-job.ts. It loads nothing of the API.
import { runAtOnce } from '../../../shared/in-slices.ts';
import type { DoJob } from '../../../shared/thread/thread-side.ts';
import { receiveFiles, toFilePieces } from '../snapshot/building-pieces.ts';
import type { StoredFile } from '../store/revision.ts';
import { LiftRefused, type LiftsAsked, planLifts } from './lift.ts';
import type { LiftHead } from './lift-job.ts';

export const doLiftJob: DoJob = (next, send) => {
  const asked = next() as LiftsAsked;
  const files = runAtOnce(receiveFiles(next));
  let planned: StoredFile[];
  try {
    planned = planLifts(files, asked);
  } catch (error) {
    if (!(error instanceof LiftRefused)) throw error;
    const { status, message } = error;
    send({ refused: { status, message } } satisfies LiftHead);
    return;
  }
  send({ refused: undefined } satisfies LiftHead);
  for (const piece of toFilePieces(planned)) send(piece);
};
