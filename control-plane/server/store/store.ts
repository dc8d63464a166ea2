// The interface of configuration stores, and what each implementation guarantees.
import type { Problem } from '../../../shared/rules/problem/problem.ts';
import type { Revision, RevisionInfo } from './revision.ts';

/** A store holds a tree of text files that changes as a whole, from one revision to the next.
 *
 * Concurrency: all methods may be called at any time, also concurrently. A store runs one poll at a time; a call during
 * a poll waits for the next one, so that an answer is never older than its question. Writes run one at a time as well.
 * Several processes may share one store, and each sees the others' writes like any other change.
 *
 * Failure: an unreachable store keeps the last revision it saw, `status` has the time of the first failure, and the log
 * has the beginning and the end of the failure once each. It retries until closed. All waits end: with an AppError
 * `store` when the other side is at fault, whose message names the store and never a secret. */
export interface ConfigStore {
  /** Human-readable, such as `/etc/ratelane/rules` or `https://git.example/limits (branch main)`; without
   * secrets. Two stores with equal descriptions have the same content. */
  readonly description: string;
  /** Polls now. When the store cannot be reached, returns the last revision seen, possibly by an earlier process if the
   * store keeps it. Rejects when there is none. */
  read(): Promise<Revision>;
  /** Newest first, at most `limit`; the first is the newest known. Does not poll. */
  history(limit: number): Promise<readonly RevisionInfo[]>;
  /** Undefined when the store does not have the revision, or no longer has it. Does not poll. */
  readRevision(id: string): Promise<Revision | undefined>;
  /** How a revision relates to the one whose full id is `newest`; `id` may be a prefix. Undefined when the store has no
   * such revision, or several. Does not poll. */
  locate(id: string, newest: string): Promise<RevisionPosition | undefined>;
  /** Why `write` would refuse this change of `before`, as far as that is known without writing and without contacting
   * another machine. Rejects with an AppError where nothing can be written at all. */
  findObstacles(change: Change, before: Revision): Promise<readonly Problem[]>;
  /** The revisions after `older`, up to `newer`, in the order in which the followed branch had them. Does not poll. */
  between?(older: string, newer: string): Promise<Lineage>;
  /** Makes all of the change or nothing, as far as the kind of store allows (see its documentation). A change without
   * effect succeeds with the newest revision. */
  write(change: Change, options: WriteOptions): Promise<WriteResult>;
  /**
   * Follows the store: calls `onRevision` with the newest revision as soon as it is known, then with each
   * one that differs, in order, one at a time. Stops when the returned function is called; calling it
   * twice is fine. Stores poll regularly only while there are watchers.
   */
  watch(onRevision: (revision: Revision) => void): () => void;
  /** Polls now, for a webhook: resolves when watchers have been notified, and never rejects. */
  trigger(): Promise<void>;
  status(): StoreStatus;
  /** Aborts running operations, which then reject, and all watching. Idempotent. */
  close(): Promise<void>;
}

/** Shortest accepted prefix of an id. */
export const shortestRevisionPrefix = 6;

/** The most revisions of a lineage. */
export const maxLineage = 100;

export interface Lineage {
  /** The oldest revision first. */
  readonly revisions: readonly RevisionInfo[];
  /** Whether older revisions are omitted. */
  readonly isCut: boolean;
}

export interface RevisionPosition {
  /** The full id. */
  readonly id: string;
  /** Whether the newest revision is this one or descends from it. */
  readonly isIncluded: boolean;
}

export interface Change {
  /** Files with their new texts; folders are created as needed. */
  readonly put: readonly { readonly path: string; readonly text: string }[];
  /** Paths of existing files, whether or not they could be read. */
  readonly delete: readonly string[];
}

export interface WriteOptions {
  /** The revision that the author started from: nothing is written if the files have changed since. Undefined: any. */
  readonly expectedRevision: string | undefined;
  readonly author: Author;
  readonly message: string;
}

export interface Author {
  readonly name: string;
  /** '' when unknown. */
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
  /** Other writers kept interfering (HTTP 409). */
  | { readonly ok: false; readonly reason: 'busy' }
  /** The change is impossible (HTTP 400): bad paths, missing files, sizes. */
  | { readonly ok: false; readonly reason: 'refused'; readonly problems: readonly Problem[] };

export interface StoreStatus {
  /** False after a failed poll; true before the first one. */
  readonly reachable: boolean;
  /** Wall time of the last successful poll of this process. */
  readonly lastSuccessMs: number | undefined;
  /** Wall time of the first failure since the last success; undefined when the last poll succeeded. */
  readonly failingSinceMs: number | undefined;
  /** Why the last poll failed; undefined when it succeeded. */
  readonly lastError: string | undefined;
  /** The newest known revision. */
  readonly revision: RevisionInfo | undefined;
}
