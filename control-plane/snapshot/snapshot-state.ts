// The state of the snapshots in force, for API, commands and metrics.
import type { Problem } from '../../shared/rules/problem/problem.ts';
import type { RevisionInfo } from '../store/revision.ts';
import type { StoreStatus } from '../store/store.ts';
import type { NodeGroup } from './node-groups.ts';
import type { Said } from './revision-memory.ts';

/** Plain data. */
export interface SnapshotState {
  readonly store: StoreStatus;
  /** The newest revision of the store, and its problems. */
  readonly newest:
    | {
        readonly revision: RevisionInfo;
        /** Equal where every node gets the same; undefined when it is invalid. */
        readonly content: string | undefined;
        readonly valid: boolean;
        /** Valid, but it would remove most limits without an approval. */
        readonly isHeldBack: boolean;
        /** Good, and next when the revision on trial is in force or taken back. */
        readonly isWaiting: boolean;
        /** About an earlier try of it, or of its content. */
        readonly saidBefore: Said | undefined;
        readonly problems: readonly Problem[];
      }
    | undefined;
  readonly inForce: InForceState | undefined;
  /** A good revision that only some workers are given, until its rollout has come to an end. */
  readonly trial: TrialState | undefined;
  /** A revision whose trial was given up here, because this newer one wants something else. */
  readonly withdrawn: { readonly revision: string; readonly by: string } | undefined;
  /** Why the revision in force may be out of date; undefined when it is current. */
  readonly stale: Staleness | undefined;
  /** Since the start of the process. */
  readonly counts: {
    readonly accepted: number;
    readonly refused: number;
    readonly takenBack: number;
  };
}

export interface TrialState {
  readonly revision: RevisionInfo;
  readonly sinceMs: number;
  /** Equal where every node gets the same. */
  readonly content: string;
  /** Whether its author wants it in place of another one's rollout. */
  readonly supersedes: boolean;
  /** Whether it may remove most limits without an approval. */
  readonly mayRemove: boolean;
  /** About an earlier try of it, or of its content. */
  readonly saidBefore: Said | undefined;
  /** In the order in which nodes are matched. */
  readonly groups: readonly NodeGroup[];
}

export interface InForceState {
  readonly revision: RevisionInfo;
  /** Wall time since when this revision is served by this process. */
  readonly sinceMs: number;
  /** Equal where every node gets the same. */
  readonly content: string;
  /** Whether this control plane has given it to all without steps, as its author wants it. */
  readonly isAtOnce: boolean;
  /** Whether it may remove most limits without an approval. */
  readonly mayRemove: boolean;
  readonly domains: readonly string[];
  readonly limitCount: number;
  /** In the order in which nodes are matched. */
  readonly groups: readonly { readonly name: string; readonly domains: readonly string[] }[];
  /** Domains with fields that only Ratelane's workers get, and these fields. */
  readonly leftOut: readonly { readonly domain: string; readonly fields: readonly string[] }[];
}

export interface Staleness {
  /** The newest revision has errors, or the store cannot be read. */
  readonly reason: 'newest_invalid' | 'store_unreachable';
  /** Wall time. */
  readonly sinceMs: number;
}
