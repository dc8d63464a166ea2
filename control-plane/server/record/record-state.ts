// The record that control planes share, as one of them knows it: one immutable state, with its events and its effects;
// and what follows from it: who leads, which steps are taken, what is remembered of revisions. Pure.
import type { RevisionMemory } from '../snapshot/admission.ts';
import { toDigest } from '../snapshot/snapshot.ts';
import type { SwapResult, VersionedText } from '../store/shared-text.ts';
import type { Outcomes } from './outcomes.ts';
import type { OwnRecord } from './own-text.ts';
import {
  emptyRecord,
  hasSteps,
  type OtherVersion,
  openRolloutOf,
  type RolloutRecord,
  stepsBy,
  toRecordText,
  type VerdictOnRecord,
  verdictOf,
  wasServed,
  whyTakenBack,
} from './record.ts';

/** Makes the record to write from the current one; undefined if the change has become pointless. */
export type ChangeRecord = (record: RolloutRecord) => RolloutRecord | undefined;

/** Durations in milliseconds. */
export interface LeaderTiming {
  readonly poll: number;
  readonly renew: number;
  /** After this time without a sign of life, on its own clock, another control plane takes over. */
  readonly term: number;
  /** The least time between two reads that peers cause. */
  readonly readAgain: number;
}

export interface RecordOptions {
  /** The id of this process, never used before. */
  readonly id: string;
  /** The human-readable name of this control plane. */
  readonly name: string;
  /** Human-readable: beside the rules. */
  readonly location: string;
  /** Human-readable: in the state directory. */
  readonly ownLocation: string;
  /** The value of --rollout; '' without one. */
  readonly steps: string;
  readonly timing: LeaderTiming;
}

/** Times are of the monotonic clock unless stated otherwise. */
export interface RecordState {
  readonly options: RecordOptions;
  /** The id of this control plane, the same over restarts. */
  readonly plane: string;
  readonly known: Known;
  /** Whether anything has been read, from the state directory or from beside the rules. */
  readonly isKnown: boolean;
  /** Whether the state directory had no readable record at the start. */
  readonly hadNoCopy: boolean;
  readonly readAtMs: number;
  /** No attempt is made before this time. */
  readonly restUntilMs: number;
  /** The wall time since which, as it is known here, the deciding control plane has decided on the rollout on
   * record. */
  readonly ledSinceMs: number;
  /** Identifies the content of the record that a peer has. */
  readonly peerContentId: string | undefined;
  /** Why the record cannot be read or written at the moment, human-readable. */
  readonly error: string | undefined;
  /** Whether an error other than a rejection has been logged since the record could last be read or written. */
  readonly isErrorLogged: boolean;
  /** Why the place rejected a write of this control plane, human-readable, until it accepts one or another control
   * plane has written. */
  readonly denied: string | undefined;
  /** Whether a rejection has been logged since the place last accepted a write: a write of another control plane clears
   * `denied` alone. */
  readonly isDenialLogged: boolean;
  /** Which text beside the rules could not be read, and where it is now, human-readable. */
  readonly aside: string | undefined;
  /** The records that this program cannot read, which must not be overwritten. */
  readonly foreign: {
    readonly shared: ForeignRecord | undefined;
    readonly own: ForeignRecord | undefined;
  };
  /** The record as the previous process knew it, until what it could not write is written. */
  readonly before: RolloutRecord | undefined;
  /** The job that is under way; undefined while idle. */
  readonly job: Job | undefined;
  readonly stage: Stage | undefined;
  /** Jobs that are started one after the other. */
  readonly waiting: readonly Job[];
}

export interface Known {
  /** The version of the shared text; undefined if there is no text. */
  readonly version: string | undefined;
  readonly record: RolloutRecord;
  /** When this version was first seen. */
  readonly sinceMs: number;
  /** Identifies the content, which stays the same with each sign of life. */
  readonly contentId: string;
}

export interface ForeignRecord extends Pick<OtherVersion, 'inForce'> {
  /** Human-readable. */
  readonly problem: string;
}

/** `id`: identifies the job for the caller that waits for it. */
export type Job = { readonly id: number } & (
  | { readonly kind: 'start' }
  | { readonly kind: 'read' }
  /** A sign of life. */
  | { readonly kind: 'sign'; readonly hasLeft: boolean }
  | { readonly kind: 'write'; readonly change: ChangeRecord; readonly attempt: number }
);

/** The operation whose result the job waits for. */
type Stage =
  | { readonly kind: 'reading' }
  | { readonly kind: 'setting_aside'; readonly read: Read; readonly problem: string }
  | { readonly kind: 'setting_own_aside'; readonly read: Read; readonly theirs: RolloutRecord }
  | {
      readonly kind: 'swapping';
      readonly before: RolloutRecord;
      readonly record: RolloutRecord;
      /** Whether the write is for the job, or for what was read on the way. */
      readonly isForJob: boolean;
    };

/** One reading of the shared text. */
export interface Read {
  readonly version: string | undefined;
  readonly startedMs: number;
}

/** Events that follow from what is served and decided. */
export type DecisionEvent =
  /** Happens about once a second: reads and renews what is due. `isWaiting`: others may change the record. */
  | { readonly kind: 'tick'; readonly isWaiting: boolean }
  /** A peer has a record with this content, which is read again if its content differs. */
  | { readonly kind: 'noticed'; readonly contentId: string }
  /** Applies only to the next start: no other control plane needs the change, or it could not be written.
   * `isKnownHere`: whether this process knows it, too. */
  | {
      readonly kind: 'stored_locally';
      readonly change: ChangeRecord;
      readonly isKnownHere: boolean;
    };

export type RecordEvent =
  | DecisionEvent
  | { readonly kind: 'wanted'; readonly job: Job }
  /** The effects of the previous job are performed. */
  | { readonly kind: 'next' }
  | { readonly kind: 'own_read'; readonly stored: OwnRecord | undefined }
  | {
      readonly kind: 'read';
      readonly startedMs: number;
      readonly found: VersionedText | undefined;
    }
  /** The place cannot be reached; `reason` explains why. */
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'set_aside'; readonly where: string | undefined }
  | { readonly kind: 'own_set_aside'; readonly where: string }
  | { readonly kind: 'swapped'; readonly result: SwapResult };

/** Effects are performed in the order in which a step names them: the copy of what is known is stored before it is
 * acted upon. */
export type RecordEffect =
  | { readonly kind: 'log'; readonly level: 'notice' | 'warning' | 'error'; readonly text: string }
  | { readonly kind: 'store_own'; readonly stored: OwnRecord }
  /** Writes the copy again if it was removed. */
  | { readonly kind: 'restore_own' }
  /** The record has changed, whoever wrote it. */
  | { readonly kind: 'changed' }
  /** This control plane, and no other one, has put the outcome of a revision on record: the newest of these. */
  | { readonly kind: 'outcome'; readonly outcomes: Outcomes }
  | { readonly kind: 'done'; readonly job: number; readonly isWritten: boolean }
  | { readonly kind: 'next' }
  // The last effect of a step, whose result is an event: no other one of these starts before that.
  | { readonly kind: 'read_own' }
  | { readonly kind: 'read' }
  | { readonly kind: 'set_aside'; readonly version: string }
  | { readonly kind: 'set_own_aside' }
  | { readonly kind: 'swap'; readonly before: string | undefined; readonly text: string };

export interface Now {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export function startRecord(options: RecordOptions, { monotonicMs }: Now): RecordState {
  return {
    options,
    plane: options.id,
    known: toKnown(undefined, emptyRecord, monotonicMs),
    isKnown: false,
    hadNoCopy: false,
    readAtMs: Number.NEGATIVE_INFINITY,
    restUntilMs: Number.NEGATIVE_INFINITY,
    ledSinceMs: 0,
    peerContentId: undefined,
    error: undefined,
    isErrorLogged: false,
    denied: undefined,
    isDenialLogged: false,
    aside: undefined,
    foreign: { shared: undefined, own: undefined },
    before: undefined,
    job: undefined,
    stage: undefined,
    waiting: [],
  };
}

/** Why no step is taken at the moment, human-readable: the record cannot be read or written. */
export function errorOf({ error, denied, options }: RecordState): string | undefined {
  return error ?? (denied && toDenied(options, denied));
}

/** The steps that this control plane takes, which are those of all that share the record. */
export function stepsOf({ known, options }: RecordState): string {
  return stepsBy(known.record, options.steps);
}

/** Whether other control planes may have this record. */
export function isShared({ options }: RecordState): boolean {
  return options.location !== options.ownLocation;
}

/** Whether the known record is a copy from before the start, so that others may have written since. */
export function isOld(state: RecordState): boolean {
  return isShared(state) && state.readAtMs === Number.NEGATIVE_INFINITY;
}

/** Whether this control plane wrote the record, and has not left. */
export function leads({ known, options }: RecordState): boolean {
  const { leader } = known.record;
  return leader.id === options.id && !leader.hasLeft;
}

/** Whether no control plane decides on the record: the rollout ended, or its leader has stopped. */
export function isVacant(state: RecordState): boolean {
  const { known, error, options } = state;
  if (error !== undefined) return false;
  const { leader } = known.record;
  if (openRolloutOf(known.record) === undefined || leader.hasLeft) return true;
  if (leader.id === options.id) return false;
  if (leader.plane === state.plane) return true;
  return state.readAtMs - known.sinceMs >= options.timing.term;
}

/** What is remembered of revisions in order to judge the next one. */
export function toRevisionMemory({
  known: { record },
  isKnown,
  foreign: { shared, own },
  options,
}: RecordState): RevisionMemory {
  const { problem } = shared ?? own ?? {};
  return {
    isKnown,
    rollsOut: hasSteps(record, options.steps),
    isRolling: openRolloutOf(record) !== undefined,
    otherVersion: problem && `What was taken back or held back is not known (${problem})`,
    inForce: shared?.inForce ?? own?.inForce ?? record.inForce[0],
    wasInForce: (content) => record.inForce.some((each) => each.content === content),
    wasServed: (content) => wasServed(record, content),
    wasTakenBack: (content) => whyTakenBack(record, content) !== undefined,
    verdictOf: (revision, content) => verdictOf(record, revision, content),
  };
}

/** Where control planes store what they have to remember. Plain data. */
export interface MemoryState extends Pick<RecordState, 'denied' | 'error' | 'aside'> {
  /** Human-readable: beside the rules. */
  readonly location: string;
  /** Whether the record was only in the state directory, which was empty at the start. */
  readonly isForgetful: boolean;
  /** The verdicts on revisions that did not simply reach all workers, the newest first. */
  readonly verdicts: readonly VerdictOnRecord[];
  /** The outcomes of the last revisions, the newest first. */
  readonly outcomes: Outcomes;
}

export function toMemoryState(state: RecordState): MemoryState {
  const { denied, error, aside, options, hadNoCopy, known } = state;
  const { verdicts, outcomes } = known.record;
  const isForgetful = hadNoCopy && (denied !== undefined || aside !== undefined);
  return { location: options.location, denied, error, aside, isForgetful, verdicts, outcomes };
}

export function toDenied({ location }: RecordOptions, reason: string): string {
  return `${location} rejects writes from this control plane (${reason})`;
}

export function toKnown(
  version: string | undefined,
  record: RolloutRecord,
  sinceMs: number,
): Known {
  return { version, record, sinceMs, contentId: toContentId(record) };
}

/** Ignores the signs of life. */
export function toContentId(record: RolloutRecord): string {
  return toDigest(toRecordText({ ...record, beat: 0 }));
}
