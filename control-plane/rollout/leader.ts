// Which control plane decides on a rollout: the one that wrote its record last. Others follow the record, and
// may replace it once its leader has given no sign of life for the length of a lease
// (behaviour: one-leader).
import { createHash } from 'node:crypto';
import type { Clock } from '../../shared/clock.ts';
import { AppError, errorText } from '../../shared/errors.ts';
import type { Log } from '../../shared/log.ts';
import type { SharedText } from '../store/shared-text.ts';
import { isOpen, parseRecord, type RolloutRecord, toRecordText } from './record.ts';

export type Proposal = Omit<RolloutRecord, 'leader' | 'beat'>;

export interface Leadership {
  /** Whether other control planes have the same record. */
  readonly isShared: boolean;
  /** Of this control plane, for people. */
  readonly name: string;
  /** As last read or written; undefined when there is none. */
  readonly record: RolloutRecord | undefined;
  /** Identifies the record, the same with each sign of life; undefined without a record. */
  readonly contentId: string | undefined;
  /** Whether this control plane wrote the record. */
  readonly leads: boolean;
  /** Whether nobody decides on what is on record: it ended, or its leader has stopped. */
  readonly isVacant: boolean;
  /** Why the record cannot be read or written now, for people. */
  readonly trouble: string | undefined;
  /** Reads the record. Never rejects. */
  start(): Promise<void>;
  /** `listener` is called after each change of the record, by whomever. */
  onChange(listener: () => void): void;
  /** Replaces the record, as it is known at the call, and leads from then on. False when it was not written:
   * another control plane was faster, or `trouble` says why. */
  propose(proposal: Proposal): Promise<boolean>;
  /** To be called about once a second: reads and renews what is due while a rollout is under way. */
  tend(isUnderWay: boolean): void;
  /** Another control plane knows the record with this content: where that is another one, it is read soon. */
  hear(contentId: string): void;
  /** Resolves when nothing is being read or written. */
  settled(): Promise<void>;
  /** The same, without waiting for what takes long. */
  stop(): Promise<void>;
}

/** Milliseconds. */
export interface LeaseTiming {
  readonly poll: number;
  readonly renew: number;
  /** Without a sign of life for so long, on its own clock, another control plane takes over. */
  readonly lease: number;
}

export const directoryTiming: LeaseTiming = { poll: 1_000, renew: 2_000, lease: 8_000 };
/** Each look and each renewal is a call of the remote. */
export const gitTiming: LeaseTiming = { poll: 5_000, renew: 10_000, lease: 30_000 };

export interface LeadershipDeps {
  /** Where the record of all control planes is; undefined for a control plane without peers. */
  readonly shared: { readonly text: SharedText; readonly timing: LeaseTiming } | undefined;
  /** For a record of this control plane alone: without peers, and where the shared text takes no writes. */
  readonly ownText: SharedText;
  /** Of this process, never used before. */
  readonly id: string;
  readonly name: string;
  readonly log: Log;
  readonly clock: Clock;
}

interface Known {
  readonly version: string;
  readonly record: RolloutRecord;
  /** When this version was first seen, on the monotonic clock. */
  readonly sinceMs: number;
  readonly contentId: string;
}

/** So often in a row before this control plane goes on alone: a refusal may be a passing one. */
const maxDenials = 3;
const retryMs = 2_000;
const maxAttempts = 3;
const never = Number.POSITIVE_INFINITY;
const ownTiming: LeaseTiming = { poll: never, renew: never, lease: never };

export function createLeadership(deps: LeadershipDeps): Leadership {
  const { ownText, id, name, log, clock } = deps;
  let { shared } = deps;
  let { text, timing } = shared ?? { text: ownText, timing: ownTiming };
  let listener = () => {};
  let known: Known | undefined;
  let readAtMs = Number.NEGATIVE_INFINITY;
  /** Nothing is tried before. */
  let restUntilMs = Number.NEGATIVE_INFINITY;
  let heard: string | undefined;
  let trouble: string | undefined;
  let denials = 0;
  let queue: Promise<unknown> = Promise.resolve();
  let waiting = 0;

  /** One after the other. */
  function enqueue<Result>(task: () => Promise<Result>): Promise<Result> {
    waiting++;
    const result = queue.then(task).finally(() => waiting--);
    queue = result.catch(() => {});
    return result;
  }

  function learn(version: string, record: RolloutRecord): void {
    known = { version, record, sinceMs: clock.monotonicMs(), contentId: toContentId(record) };
  }

  function isOwn(each: Known | undefined): boolean {
    return each?.record.leader.id === id;
  }

  async function read(): Promise<void> {
    const startedMs = clock.monotonicMs();
    try {
      const found = await text.read();
      readAtMs = startedMs;
      trouble = undefined;
      if (found?.version === known?.version) return;
      const record = found && parseRecord(found.text);
      if (found !== undefined && record === undefined) {
        throw new AppError('store', 'it is not the record of a rollout of this version: remove it');
      }
      if (found && record) learn(found.version, record);
      else known = undefined;
      listener();
    } catch (error) {
      fail(`${text.description} cannot be read (${errorText(error)})`);
    }
  }

  function fail(reason: string): void {
    if (trouble === undefined) log.warning(`Rollout: ${reason}; no step is taken until it can`);
    trouble = reason;
    restUntilMs = clock.monotonicMs() + retryMs;
  }

  async function swap(record: RolloutRecord): Promise<boolean> {
    try {
      const result = await text.swap(known?.version, toRecordText(record));
      if (result.kind === 'written') {
        denials = 0;
        trouble = undefined;
        readAtMs = clock.monotonicMs();
        learn(result.version, record);
        return true;
      }
      if (result.kind === 'stale') {
        await read();
        return false;
      }
      denials++;
      fail(`${text.description} cannot be written (${result.reason})`);
      if (denials >= maxDenials) goAlone(result.reason);
    } catch (error) {
      fail(`${text.description} cannot be written (${errorText(error)})`);
    }
    return false;
  }

  function isDue(nowMs: number): boolean {
    return known !== undefined && isOpen(known.record) && nowMs - known.sinceMs >= timing.renew;
  }

  async function renew(): Promise<void> {
    if (known === undefined || !isOwn(known) || !isOpen(known.record)) return;
    await swap({ ...known.record, beat: known.record.beat + 1 });
  }

  function goAlone(reason: string): void {
    log.warning(
      `Rollout: ${text.description} takes no writes from this control plane (${reason}): it rolls out to its own workers by itself, and other control planes to theirs`,
    );
    shared = undefined;
    text = ownText;
    timing = ownTiming;
    trouble = undefined;
    restUntilMs = clock.monotonicMs();
    listener();
  }

  async function settled(): Promise<void> {
    await queue;
  }

  return {
    name,
    get isShared() {
      return shared !== undefined;
    },
    get record() {
      return known?.record;
    },
    get contentId() {
      return known?.contentId;
    },
    get leads() {
      return isOwn(known);
    },
    get isVacant() {
      if (trouble !== undefined || readAtMs === Number.NEGATIVE_INFINITY) return false;
      if (known === undefined || !isOpen(known.record)) return true;
      if (isOwn(known)) return false;
      return shared === undefined || readAtMs - known.sinceMs >= timing.lease;
    },
    get trouble() {
      return trouble;
    },
    start: () => enqueue(read),
    onChange(given) {
      listener = given;
    },
    propose(proposal) {
      const { contentId } = known ?? {};
      if (clock.monotonicMs() < restUntilMs) return Promise.resolve(false);
      return enqueue(async () => {
        const record = { ...proposal, leader: { id, name }, beat: 0 };
        // A sign of life of another leader is in the way, but changes nothing.
        for (let again = 0; again < maxAttempts; again++) {
          if (known?.contentId !== contentId) return false;
          if (await swap(record)) {
            listener();
            return true;
          }
          if (trouble !== undefined) return false;
        }
        return false;
      });
    },
    tend(isUnderWay) {
      const nowMs = clock.monotonicMs();
      if (waiting > 0 || nowMs < restUntilMs) return;
      const isNews = heard !== undefined && heard !== known?.contentId;
      heard = undefined;
      if (isUnderWay && isOwn(known) && isDue(nowMs)) void enqueue(renew);
      else if (isNews || (isUnderWay && nowMs - readAtMs >= timing.poll)) void enqueue(read);
    },
    hear(contentId) {
      heard = contentId;
    },
    settled,
    stop() {
      deps.shared?.text.close();
      return settled();
    },
  };
}

/** Without the signs of life. */
function toContentId(record: RolloutRecord): string {
  const text = toRecordText({ ...record, beat: 0 });
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
