// A revision on its way into the thread that builds it: in pieces that each take a millisecond or two to copy.
import type { Next } from '../../shared/thread/job-thread.ts';
import type { Revision } from '../store/revision.ts';
import type { BuildOptions } from './build.ts';

export interface BuildJob {
  readonly revision: Pick<Revision, 'files' | 'problems'>;
  readonly options: BuildOptions;
  readonly nowMs: number;
  readonly needs: Needs;
}

/** What is to come back beside the problems: nothing; the document of the only file, which is then not built; or all but the
 * documents of these files. */
export type Needs = 'problems' | 'document' | { readonly known: ReadonlySet<string> };

type Piece =
  | Omit<BuildJob, 'revision'>
  | { readonly problems: Revision['problems'] }
  | { readonly files: readonly (readonly [path: string, text: string])[] }
  /** Of the file that was sent last. */
  | { readonly more: string };

const charactersAtOnce = 512 * 1024;
const filesAtOnce = 200;

export function* toJobPieces({ revision, ...job }: BuildJob): Generator<Piece, void> {
  yield job;
  yield { problems: revision.problems };
  let files: (readonly [string, string])[] = [];
  let characters = 0;
  for (const { path, text } of revision.files) {
    files.push([path, text.slice(0, charactersAtOnce)]);
    characters += Math.min(text.length, charactersAtOnce);
    if (characters < charactersAtOnce && files.length < filesAtOnce) continue;
    yield { files };
    files = [];
    characters = 0;
    for (let at = charactersAtOnce; at < text.length; at += charactersAtOnce) {
      yield { more: text.slice(at, at + charactersAtOnce) };
    }
  }
  yield { files };
}

export function receiveJob(next: Next): BuildJob {
  const job = next() as Omit<BuildJob, 'revision'>;
  const files: { path: string; text: string }[] = [];
  let problems: Revision['problems'] = [];
  for (let piece = next() as Piece; piece !== undefined; piece = next() as Piece) {
    if ('problems' in piece) problems = piece.problems;
    else if ('files' in piece) {
      for (const [path, text] of piece.files) files.push({ path, text });
    } else if ('more' in piece) {
      const last = files.at(-1);
      if (last !== undefined) last.text += piece.more;
    }
  }
  return { ...job, revision: { files, problems } };
}
