// The lines of a file of recorded decisions: JSON, one object on each line. The worker writes them
// (worker/recording), the control plane replays them. control-plane/docs/commands.md describes them.
import type { Unit } from './rules/unit.ts';

export const decisionRecordVersion = 1;

/**
 * The first line of a file, and the first after each start of a worker that appends to it: applies to the lines after
 * it.
 */
export interface RecordHeader {
  readonly decisions: typeof decisionRecordVersion;
  /** Wall time in milliseconds, as all times of these lines. */
  readonly time: number;
  /** Identifies one start of the worker. */
  readonly instance: string;
  /** The share of all descriptors that is recorded: above 0, at most 1. */
  readonly rate: number;
  /** Keys of entries whose values are hashed; `*` stands for all keys. */
  readonly hashed_keys: readonly string[];
  /** The settings of the worker that affect decisions. */
  readonly settings: {
    /** 0 is Sunday. */
    readonly week_reset_day: number;
    readonly calendar_months: boolean;
    readonly shadow_mode: boolean;
    readonly quota_mode: boolean;
    readonly stop_increment_when_over_limit: boolean | 'enforced';
  };
}

type RecordedCode = 'OK' | 'OVER_LIMIT';

/** A decision. Members that the request did not have are left out. */
export interface RecordedDecision {
  /** The moment by which its windows were chosen. */
  readonly time: number;
  readonly domain: string;
  readonly descriptors: readonly RecordedDescriptor[];
  readonly hits_addend?: number;
  /** `ERROR`: it was answered with an error, has no statuses, and may or may not have counted. */
  readonly code: RecordedCode | 'ERROR';
  /** The status of each descriptor. */
  readonly statuses?: readonly RecordedStatus[];
}

export interface RecordedDescriptor {
  readonly entries: readonly { readonly key: string; readonly value: string }[];
  /** `unit` is the number on the wire, 1 for a second to 7 for a week. */
  readonly limit?: { readonly requests_per_unit: number; readonly unit: number };
  /** A text above 2^53. */
  readonly hits_addend?: number | string;
  readonly is_negative_hits?: true;
}

export interface RecordedStatus {
  readonly code: RecordedCode;
  /** The metric key of the rule; absent without a limit, and where it could have a value that is hashed. */
  readonly rule?: string;
  readonly unlimited?: true;
  /** Requests per unit. */
  readonly limit?: number;
  readonly unit?: Unit;
  readonly remaining?: number;
  /** Whole seconds. */
  readonly reset?: number;
  /** What replaced the store's answer: the local cache of keys over their limit, or a failure mode. */
  readonly fallback?: 'cache' | 'local' | 'allow' | 'deny';
  /** Other requests with the same counter may be missing in the file. */
  readonly sampled?: false;
}

/** Decisions that are missing in the file: they exceeded the bound, or could not be written. */
export interface RecordGap {
  readonly dropped: number;
  /** The times of the first and the last of them. */
  readonly from: number;
  readonly time: number;
}
