// Files on their way into a thread: in pieces that each take a millisecond or two to copy.
import { runAtOnce } from '../../../shared/in-slices.ts';
import type { Next, Steps } from '../../../shared/thread/job-thread.ts';
import type { Revision, StoredFile } from '../store/revision.ts';
import type { WorkHead } from '../work-thread.ts';
import type { BuildOptions } from './build.ts';

export interface BuildJob {
  readonly revision: Pick<Revision, 'files' | 'problems'>;
  readonly options: BuildOptions;
  readonly nowMs: number;
  readonly needs: Needs;
}

/** What the thread returns beside the problems: nothing; the document of the only file, which is then not built, with the
 * rules of a name; or everything except the documents of these files. */
export type Needs =
  | 'problems'
  | { readonly rulesOf: string }
  | { readonly known: ReadonlySet<string> };

export type FilePiece =
  | { readonly files: readonly (readonly [path: string, text: string])[] }
  /** Of the file that was sent last. */
  | { readonly more: string };
type Piece =
  | WorkHead
  | Omit<BuildJob, 'revision'>
  | { readonly problems: Revision['problems'] }
  | FilePiece;

const charactersAtOnce = 64 * 1024;
const filesAtOnce = 200;

export function* toJobPieces({ revision, ...job }: BuildJob): Generator<Piece, void> {
  yield { work: 'build' };
  yield job;
  yield { problems: revision.problems };
  yield* toFilePieces(revision.files);
}

export function* toFilePieces(all: readonly StoredFile[]): Generator<FilePiece, void> {
  let files: (readonly [string, string])[] = [];
  let characters = 0;
  for (const { path, text } of all) {
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
  const { problems } = next() as Pick<Revision, 'problems'>;
  return { ...job, revision: { files: runAtOnce(receiveFiles(next)), problems } };
}

/** To the end of what there is. */
export function* receiveFiles(next: Next): Steps<StoredFile[]> {
  const files: { readonly path: string; readonly parts: string[] }[] = [];
  for (
    let piece = next() as FilePiece | undefined;
    piece !== undefined;
    piece = next() as FilePiece | undefined
  ) {
    if ('more' in piece) files.at(-1)?.parts.push(piece.more);
    else for (const [path, text] of piece.files) files.push({ path, parts: [text] });
    yield;
  }
  const joined: StoredFile[] = [];
  for (const { path, parts } of files) {
    joined.push({ path, text: parts.join('') });
    yield;
  }
  return joined;
}
