// The interface of sources of rules.
import type { Problem } from '../../shared/rules/problem/problem.ts';
import type { RuleSet } from '../../shared/rules/rule.ts';
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import type { ManagementServer } from '../management-stream.ts';

export interface GoodLoad {
  readonly ok: true;
  readonly ruleSet: RuleSet;
  /** The documents that it was built from. */
  readonly documents: readonly RuleDocument[];
  /** Wall time in milliseconds for which it was built: without rules that had ended then. */
  readonly atMs: number;
  readonly warnings: readonly Problem[];
  /** Human-readable, such as `3 files from /srv/runtime_data/current/config`. */
  readonly origin: string;
}

/** One attempt to load the rules: either a complete new RuleSet, or every reason for the failure. */
export type LoadResult =
  | GoodLoad
  | {
      readonly ok: false;
      readonly problems: readonly Problem[];
      readonly origin: string;
      /** Whether all rules were removed. */
      readonly isEmptied?: boolean;
    };

/** Delivers rules and their changes until it is closed. */
export interface RulesSource {
  /**
   * Starts delivering: `onLoad` is called for the first load, good or bad, and then for each change, one at a time in
   * order. Rejects (AppError cannot_start) if it can never deliver, for example because the directory to watch does not
   * exist.
   */
  start(onLoad: (result: LoadResult) => void): Promise<void>;
  /** Rules awaited or in force, for the debug port. */
  describe(): string;
  /** The last accepted version, for a source that has versions; '' before the first. */
  version?(): string;
  /** For a source with servers: calls the listener with the server of each stream that opens. */
  onServer?(listener: (server: ManagementServer) => void): void;
  /** For a source with servers: drops the connection to this one, which was found to be lost. */
  lose?(server: ManagementServer, reason: string): void;
  close(): Promise<void>;
}
