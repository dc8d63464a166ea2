// What there is to say about the snapshots in force, for everybody who shows it.
import type { Problem } from '../../shared/rules/problem.ts';
import type { RevisionInfo } from '../store/revision.ts';
import type { StoreStatus } from '../store/store.ts';

/** Plain data, for the API, the status command and metrics. */
export interface SnapshotState {
  readonly store: StoreStatus;
  /** The newest revision that the store had, and what was wrong with it. */
  readonly newest:
    | {
        readonly revision: RevisionInfo;
        readonly valid: boolean;
        /** Good, but it would take away most limits, which nobody has approved. */
        readonly isHeldBack: boolean;
        /** Good, and next when the revision on trial is in force or taken back. */
        readonly isWaiting: boolean;
        readonly problems: readonly Problem[];
      }
    | undefined;
  readonly inForce: InForceState | undefined;
  /** A good revision that only some workers are given, until its rollout has come to an end. */
  readonly trial: { readonly revision: RevisionInfo; readonly sinceMs: number } | undefined;
  /** Why what is in force may not be what the author wants by now; undefined when it is. */
  readonly stale: Staleness | undefined;
  /** Since the start of the process. */
  readonly counts: {
    readonly accepted: number;
    readonly refused: number;
    readonly takenBack: number;
  };
}

export interface InForceState {
  readonly revision: RevisionInfo;
  /** Wall time since when this revision is served by this process. */
  readonly sinceMs: number;
  readonly domains: readonly string[];
  readonly limitCount: number;
  readonly groups: readonly GroupState[];
  /** Domains with fields that only Ratelane's workers can be told, and these fields. */
  readonly leftOut: readonly { readonly domain: string; readonly fields: readonly string[] }[];
}

export interface GroupState {
  readonly name: string;
  readonly domains: readonly string[];
  /** xDS versions, for nodes that announce themselves as ours and for all others. */
  readonly oursVersion: string;
  readonly othersVersion: string;
}

export interface Staleness {
  /** The newest revision has errors, or the store cannot be read. */
  readonly reason: 'newest_invalid' | 'store_unreachable';
  /** Wall time. */
  readonly sinceMs: number;
}
