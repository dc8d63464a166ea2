// Where configuration lives, whatever holds it: the interface, and what each implementation promises.
import type { Problem } from '../../shared/rules/problem.ts';
import type { Revision, RevisionInfo } from './revision.ts';

/**
 * A store holds a tree of text files that changes as a whole, from one revision to the next.
 *
 * Concurrency: everything may be called at any time, also at once. A store looks at what it stands
 * for once at a time; whoever asks during a look waits for the next one, so that an answer is never
 * older than its question. Writes are one at a time as well. Several processes may share one store,
 * and each learns of the others' writes as of any other change.
 *
 * Failure: a store that cannot be reached keeps the revision that it saw last, `status` says since
 * when, and the log says it once, and once more when it is over. It goes on trying until it is closed.
 * All waits end: with an AppError `store` when the other side is to blame, whose message names the
 * store and never a secret.
 */
export interface ConfigStore {
  /** For people, such as `/etc/ratelane/rules` or `https://git.example/limits (branch main)`;
   * without secrets. Two stores with equal descriptions hold the same. */
  readonly description: string;
  /** Looks now. When the store cannot be reached, the revision seen last, by an earlier process too if
   * the store keeps it. Rejects when there is none. */
  read(): Promise<Revision>;
  /** Newest first, at most `limit`; the first is the newest that has been seen. Does not look. */
  history(limit: number): Promise<readonly RevisionInfo[]>;
  /** Undefined when the store does not have it, or not any more. Does not look. */
  readRevision(id: string): Promise<Revision | undefined>;
  /** Where a revision stands to the one whose whole id is `newest`: `id` may be the beginning of one.
   * Undefined when the store has no such revision, or not any more, or several. Does not look. */
  locate(id: string, newest: string): Promise<RevisionPlace | undefined>;
  /** All of the change or nothing of it, as the store's kind allows (see there). A change that changes
   * nothing succeeds with the newest revision. */
  write(change: Change, options: WriteOptions): Promise<WriteResult>;
  /**
   * Follows the store: calls `onRevision` with the newest revision as soon as it is known, then with
   * each one that differs, in order, one at a time. Stops when the returned function is called;
   * calling it twice is fine. A store is looked at from time to time only as long as someone watches.
   */
  watch(onRevision: (revision: Revision) => void): () => void;
  /** Looks now, for a webhook: resolves when watchers have been told, and never rejects. */
  trigger(): Promise<void>;
  status(): StoreStatus;
  /** Ends what is under way, which then rejects, and all watching. Idempotent. */
  close(): Promise<void>;
}

/** Ids are long; people copy their beginnings. */
export const shortestRevisionPrefix = 6;

export interface RevisionPlace {
  /** The whole one. */
  readonly id: string;
  /** The newest revision is this one, or was made from it. */
  readonly isIncluded: boolean;
}

export interface Change {
  /** Files with their new texts; folders appear as needed. */
  readonly put: readonly { readonly path: string; readonly text: string }[];
  /** Paths of files that exist, whether or not they could be read. */
  readonly delete: readonly string[];
}

export interface WriteOptions {
  /** The revision that the author started from: nothing is written when the files have changed since.
   * Undefined: whatever the newest one is. */
  readonly expectedRevision: string | undefined;
  readonly author: Author;
  readonly message: string;
}

export interface Author {
  readonly name: string;
  /** '' when it is not known. */
  readonly email: string;
}

export type WriteResult =
  | { readonly ok: true; readonly revision: Revision }
  | {
      readonly ok: false;
      /** The files are not those of `expectedRevision` (HTTP 412). */
      readonly reason: 'changed_since';
      readonly current: RevisionInfo;
    }
  /** Others wrote at the same time, again and again (HTTP 409). */
  | { readonly ok: false; readonly reason: 'busy' }
  /** The change asks for what cannot be (HTTP 400): bad paths, files that are not there, sizes. */
  | { readonly ok: false; readonly reason: 'refused'; readonly problems: readonly Problem[] };

export interface StoreStatus {
  /** False after a look that failed; true before the first one. */
  readonly reachable: boolean;
  /** Wall time of the last look that succeeded, in this process. */
  readonly lastSuccessMs: number | undefined;
  /** Wall time of the first of the failures that go on; undefined when the last look succeeded. */
  readonly failingSinceMs: number | undefined;
  /** Why the last look failed; undefined when it succeeded. */
  readonly lastError: string | undefined;
  /** The newest that has been seen. */
  readonly revision: RevisionInfo | undefined;
}
