// Keeps the record that control planes share: reads and writes it beside the rules, and says which control plane
// decides, which is the one that wrote it last. Others follow the record, and may replace the leader once it has
// left, or has given no sign of life for the length of a term (behaviour: one-leader). Where the place takes no
// writes, the record is kept in the state directory alone until it does.
import type { Clock } from '../../shared/clock.ts';
import { AppError, errorText } from '../../shared/errors.ts';
import type { Log } from '../../shared/log.ts';
import type { RevisionMemory } from '../snapshot/admission.ts';
import { toDigest } from '../snapshot/snapshot.ts';
import type { SharedText, VersionedText } from '../store/shared-text.ts';
import type { Outcomes } from './outcomes.ts';
import type { OwnText } from './own-text.ts';
import {
  emptyRecord,
  fitRecord,
  mergeRecords,
  type OtherVersion,
  openRolloutOf,
  parseRecord,
  type RecordReading,
  type RolloutRecord,
  toRecordText,
  verdictOf,
  whyUnreadable,
} from './record.ts';

/** Makes the record to write from the one at that moment; undefined where it has become pointless. */
export type ChangeRecord = (record: RolloutRecord) => RolloutRecord | undefined;

export interface RecordKeeper extends RevisionMemory {
  /** The name of this control plane, for people. */
  readonly name: string;
  /** Beside the rules, for people. */
  readonly place: string;
  /** The record as it was last read or written. */
  readonly record: RolloutRecord;
  /** Identifies the record, the same with each sign of life. */
  readonly contentId: string;
  /** Whether this control plane wrote the record. */
  readonly leads: boolean;
  /** Since when, as it is known here, the control plane that decides has decided on the rollout on record: wall time. */
  readonly ledSinceMs: number;
  /** Whether nobody decides on what is on record: it ended, or its leader has stopped. */
  readonly isVacant: boolean;
  /** Why the record cannot be read or written now, for people. */
  readonly trouble: string | undefined;
  /** Why this control plane has the record for itself alone, for people; undefined where it is shared. */
  readonly alone: string | undefined;
  /** Which text beside the rules could not be read and where it is now, for people; undefined where all could. */
  readonly aside: string | undefined;
  /** Whether nothing could be read at the start, here or beside the rules. */
  readonly isForgetful: boolean;
  /** Reads the record. Never rejects. */
  start(): Promise<void>;
  /** `listener` is called after each change of the record, by whomever. */
  onChange(listener: () => void): void;
  /** Changes the record, and leads from then on. False when nothing was written: the change has become
   * pointless, another control plane was faster again and again, or `trouble` says why. */
  write(change: ChangeRecord): Promise<boolean>;
  /** Changes the record in the state directory alone, for the next start: no other control plane needs it. */
  keepHere(change: ChangeRecord): void;
  /** For the next start of this control plane: its workers have lost a revision, and that could not be written. */
  keepTakenBack(change: ChangeRecord): void;
  /** To be called about once a second: reads and renews what is due. `isWaiting`: others may change the record. */
  tick(isWaiting: boolean): void;
  /** A peer reports a record with this content; the record is read again if its content differs. */
  noteNews(contentId: string): void;
  /** Lets another control plane lead from now on. */
  handOver(): Promise<void>;
  /** Resolves when nothing is being read or written. */
  settled(): Promise<void>;
  /** Ends it, and resolves as `settled` does, without waiting for long operations. */
  stop(): Promise<void>;
}

/** Milliseconds. */
export interface LeaderTiming {
  readonly poll: number;
  readonly renew: number;
  /** Without a sign of life for so long, on its own clock, another control plane takes over. */
  readonly term: number;
  /** Least time between two reads that peers cause. */
  readonly readAgain: number;
  /** So many refusals of a write in a row, and this control plane goes on alone; Infinity: never. */
  readonly denials: number;
}

export const directoryTiming: LeaderTiming = {
  poll: 1_000,
  renew: 2_000,
  term: 8_000,
  readAgain: 1_000,
  denials: 1,
};
/** Each look and each renewal is a call of the remote, whose refusal may be a passing one. */
export const gitTiming: LeaderTiming = {
  poll: 5_000,
  renew: 10_000,
  term: 30_000,
  readAgain: 2_000,
  denials: 3,
};
/** An engine is made for it: a control plane that it takes no writes from does not lead, and says so. */
export const engineTiming: LeaderTiming = {
  poll: 2_000,
  renew: 4_000,
  term: 15_000,
  readAgain: 1_000,
  denials: Number.POSITIVE_INFINITY,
};

export interface RecordKeeperDeps {
  /** Beside the rules. */
  readonly shared: SharedText;
  readonly timing: LeaderTiming;
  /** In the state directory: a copy, and where `shared` takes no writes the record itself. */
  readonly own: OwnText;
  /** The id of this process, never used before. */
  readonly id: string;
  readonly name: string;
  /** This control plane has put on record what became of a revision: the newest of these. So has no other one. */
  readonly onOutcome?: (outcomes: Outcomes) => void;
  readonly log: Log;
  readonly clock: Clock;
}

interface Known {
  /** The version of the shared text; undefined where that has none. */
  readonly version: string | undefined;
  readonly record: RolloutRecord;
  /** When this version was first seen, on the monotonic clock. */
  readonly sinceMs: number;
  readonly contentId: string;
}

interface FoundRecord {
  /** Of the text that is there. */
  readonly version: string | undefined;
  readonly record: RolloutRecord | undefined;
  readonly isDamaged: boolean;
}

interface ForeignRecord extends OtherVersion {
  /** For people. */
  readonly problem: string;
}

const retryMs = 2_000;
const maxAttempts = 3;

export function createRecordKeeper(deps: RecordKeeperDeps): RecordKeeper {
  const { shared, timing, own, id, name, log, clock } = deps;
  /** The id of this control plane, the same over restarts. */
  let plane = id;
  let listener = () => {};
  let known = toKnown(undefined, emptyRecord);
  let readAtMs = Number.NEGATIVE_INFINITY;
  /** Nothing is tried before. */
  let restUntilMs = Number.NEGATIVE_INFINITY;
  let heard: string | undefined;
  let trouble: string | undefined;
  let isTroubleSaid = false;
  let alone: string | undefined;
  let aside: string | undefined;
  let isForgetful = false;
  let ledSinceMs = 0;
  let isKnown = false;
  /** The records that this program does not read, which must not be written over. */
  const foreign: { shared: ForeignRecord | undefined; own: ForeignRecord | undefined } = {
    shared: undefined,
    own: undefined,
  };
  /** The record as the process before knew it. */
  let before: RolloutRecord | undefined;
  /** That process had the record for itself alone, and this one must not, as the place is another one. */
  let wasAlone = false;
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

  function toKnown(version: string | undefined, record: RolloutRecord): Known {
    return { version, record, sinceMs: clock.monotonicMs(), contentId: toContentId(record) };
  }

  function setKnown(version: string | undefined, record: RolloutRecord): void {
    const { leader, rollout } = known.record;
    const isSame = leader.id === record.leader.id && rollout?.id === record.rollout?.id;
    if (!isSame) ledSinceMs = clock.wallMs();
    known = toKnown(version, record);
    keepOwn(record);
    listener();
  }

  function keepOwn(record: RolloutRecord): void {
    if (foreign.own !== undefined) return;
    own.keep({ text: toRecordText(record), plane, isAlone: alone !== undefined });
  }

  /** The process before may have been alone with its record, or have taken a revision back when that could not be
   * written. */
  function addUnwritten(theirs: RolloutRecord): RolloutRecord {
    if (before && wasAlone) return addOwn(theirs, before);
    const open = openRolloutOf(theirs);
    const isTakenBack = before?.verdicts.some(({ rollout }) => rollout && rollout === open?.id);
    return before && isTakenBack ? toOwn(mergeRecords(theirs, before)) : theirs;
  }

  async function read(attempt = 1): Promise<void> {
    const startedMs = clock.monotonicMs();
    try {
      const found = await readShared();
      const theirs = found.record;
      readAtMs = startedMs;
      isKnown = true;
      if (alone !== undefined) {
        const isLate = !(await rejoin(found.version, theirs));
        if (isLate && attempt < maxAttempts) await read(attempt + 1);
        return;
      }
      noteReachable();
      if (theirs === undefined) {
        // One that somebody has removed is written again with the next change.
        known = { ...known, version: found.version };
        // The others get what is known here in place of the damaged one, whoever leads.
        if (found.isDamaged && known.record !== emptyRecord) await swap(known.record);
        return;
      }
      const record = addUnwritten(theirs);
      before = undefined;
      setKnown(found.version, record);
      if (record !== theirs) await swap(record);
    } catch (error) {
      const isForeign = foreign.shared !== undefined;
      if (alone === undefined || isForeign)
        fail(`${shared.description} cannot be read (${errorText(error)})`);
    }
  }

  /** Without a record where the version is known already, there is none, or it is damaged. */
  async function readShared(): Promise<FoundRecord> {
    const found = await shared.read();
    const version = found?.version;
    if (found !== undefined && version !== known.version) {
      const parsed = parseRecord(found.text);
      foreign.shared = toForeign(parsed, 'remove it');
      if (foreign.shared !== undefined) throw new AppError('store', foreign.shared.problem);
      if (!parsed.ok) return readDamaged(found, parsed.problem);
      await forgetForeignOwn();
      return { version, record: parsed.record, isDamaged: false };
    }
    // One of another version has been removed, and what was there before it is there again, or nothing is.
    foreign.shared = undefined;
    if (foreign.own !== undefined) throw new AppError('store', foreign.own.problem);
    return { version, record: undefined, isDamaged: false };
  }

  /** What is beside the rules counts. */
  async function forgetForeignOwn(): Promise<void> {
    if (foreign.own === undefined) return;
    const where = await own.setAside();
    log.warning(`Rollout: ${own.path} is not read (${foreign.own.problem}); ${where}`);
    foreign.own = undefined;
  }

  async function readDamaged(found: VersionedText, problem: string): Promise<FoundRecord> {
    const place = await shared.setAside(found.version).catch(() => undefined);
    const where = place === undefined ? 'cannot be moved away' : `is kept as ${place}`;
    aside = `${shared.description} could not be read (${problem}) and ${where}`;
    log.error(
      `Rollout: ${aside}: what was taken back, held back or approved is known from the state directory alone`,
    );
    return {
      version: place === undefined ? found.version : undefined,
      record: undefined,
      isDamaged: true,
    };
  }

  function noteReachable(): void {
    // One that can be read and refused the last write is as it was.
    if (isTroubleSaid && denials === 0) {
      log.notice(`Rollout: ${shared.description} is there again`);
      isTroubleSaid = false;
    }
    trouble = undefined;
  }

  function fail(reason: string): void {
    if (!isTroubleSaid) log.warning(`Rollout: ${reason}; no step is taken until it can`);
    isTroubleSaid = true;
    trouble = reason;
    restUntilMs = clock.monotonicMs() + retryMs;
  }

  /**
   * The record that others wrote meanwhile counts, but for revisions that were taken back here. False when
   * another one has written since.
   */
  async function rejoin(
    version: string | undefined,
    theirs: RolloutRecord | undefined,
  ): Promise<boolean> {
    const isNews = theirs !== undefined && version !== known.version;
    const record = fitRecord(isNews ? addOwn(theirs, known.record) : toOwn(known.record));
    const result = await shared.swap(version, toRecordText(record));
    if (result.kind === 'denied') alone = result.reason;
    if (result.kind !== 'written') return result.kind !== 'stale';
    alone = undefined;
    denials = 0;
    log.notice(`Rollout: ${shared.description} takes writes again, and is shared`);
    setKnown(result.version, record);
    return true;
  }

  /** What others wrote counts, with what was known here alone; a rollout that they began has its leader. */
  function addOwn(theirs: RolloutRecord, mine: RolloutRecord): RolloutRecord {
    const merged = mergeRecords(theirs, mine);
    return openRolloutOf(theirs) === undefined ? toOwn(merged) : merged;
  }

  function toOwn(record: RolloutRecord): RolloutRecord {
    return { ...record, leader: { id, plane, name, hasLeft: false }, beat: 0 };
  }

  async function swap(given: RolloutRecord): Promise<boolean> {
    const before = known.record;
    const record = fitRecord(given);
    const problem = whyUnreadable(record);
    if (problem !== undefined) {
      fail(`${shared.description} cannot be written (${problem})`);
      return false;
    }
    if (alone !== undefined) {
      setKnown(known.version, record);
      tellOutcome(before, record);
      return true;
    }
    try {
      const result = await shared.swap(known.version, toRecordText(record));
      if (result.kind === 'written') {
        denials = 0;
        readAtMs = clock.monotonicMs();
        noteReachable();
        setKnown(result.version, record);
        tellOutcome(before, record);
        return true;
      }
      if (result.kind === 'stale') {
        await read();
        return false;
      }
      denials++;
      if (denials >= timing.denials) goAlone(result.reason);
      else fail(`${shared.description} cannot be written (${result.reason})`);
    } catch (error) {
      fail(`${shared.description} cannot be written (${errorText(error)})`);
    }
    return false;
  }

  function tellOutcome(before: RolloutRecord, { outcomes }: RolloutRecord): void {
    const [was, is] = [before.outcomes, outcomes].map(
      ([last]) => last && `${last.revisions[0]} ${last.kind} ${last.atMs}`,
    );
    if (is !== undefined && is !== was) deps.onOutcome?.(outcomes);
  }

  function goAlone(reason: string): void {
    log.warning(
      `Rollout: ${shared.description} takes no writes from this control plane (${reason}): it rolls out to its own workers by itself, and remembers in its state directory alone what was taken back, held back or approved, until it does`,
    );
    alone = reason;
    trouble = undefined;
    isTroubleSaid = false;
  }

  function leads(): boolean {
    const { leader } = known.record;
    return leader.id === id && !leader.hasLeft;
  }

  /** The other control planes wait for signs of life. */
  function leadsOpen(): boolean {
    return leads() && openRolloutOf(known.record) !== undefined;
  }

  async function giveSign(hasLeft: boolean): Promise<void> {
    const { record } = known;
    await swap({ ...record, leader: { ...record.leader, hasLeft }, beat: record.beat + 1 });
  }

  /** Of an earlier process; what only this control plane knows is written when there is something to write. */
  async function readOwn(): Promise<void> {
    const kept = await own.read();
    const parsed = kept && parseRecord(kept.text);
    plane = kept?.plane ?? plane;
    isForgetful = !parsed?.ok;
    foreign.own = parsed && toForeign(parsed, `remove ${own.path} and restart`);
    if (!parsed?.ok) return;
    const { leader } = parsed.record;
    // One of the version before was alone with it: this control plane led.
    const isOwn = kept?.plane === undefined;
    before = isOwn ? { ...parsed.record, leader: { ...leader, plane } } : parsed.record;
    known = toKnown(undefined, before);
    ledSinceMs = clock.wallMs();
    isKnown = true;
    wasAlone = kept?.isAlone === true && timing.denials === Number.POSITIVE_INFINITY;
    if (kept?.isAlone && !wasAlone) alone = 'when it was written last';
  }

  async function settled(): Promise<void> {
    await queue;
  }

  return {
    name,
    place: shared.description,
    get record() {
      return known.record;
    },
    get contentId() {
      return known.contentId;
    },
    get isKnown() {
      return isKnown;
    },
    get otherVersion() {
      const [problem] = [foreign.shared, foreign.own].flatMap((each) => each?.problem ?? []);
      return problem && `What was taken back or held back is not known (${problem})`;
    },
    get inForce() {
      return foreign.shared?.inForce ?? foreign.own?.inForce ?? known.record.inForce[0];
    },
    wasInForce: (content) => known.record.inForce.some((each) => each.content === content),
    verdictOf: (revision, content) => verdictOf(known.record, revision, content),
    get leads() {
      return leads();
    },
    get ledSinceMs() {
      return ledSinceMs;
    },
    get isVacant() {
      if (trouble !== undefined) return false;
      const { leader } = known.record;
      if (openRolloutOf(known.record) === undefined || leader.hasLeft) return true;
      if (leader.id === id) return false;
      if (alone !== undefined || leader.plane === plane) return true;
      return readAtMs - known.sinceMs >= timing.term;
    },
    get trouble() {
      return trouble;
    },
    get alone() {
      return alone;
    },
    get aside() {
      return aside;
    },
    get isForgetful() {
      return isForgetful && (alone !== undefined || aside !== undefined);
    },
    start: () =>
      enqueue(async () => {
        await readOwn();
        await read();
      }),
    onChange(given) {
      listener = given;
    },
    write(change) {
      const isForeign = foreign.shared !== undefined || foreign.own !== undefined;
      if (isForeign || clock.monotonicMs() < restUntilMs) return Promise.resolve(false);
      return enqueue(async () => {
        // Other control planes may write at the same time: a sign of life is in the way, but changes nothing.
        for (let again = 0; again < maxAttempts; again++) {
          const changed = change(known.record);
          if (changed === undefined) return false;
          if (await swap(toOwn(changed))) return true;
          if (trouble !== undefined) return false;
        }
        return false;
      });
    },
    keepHere(change) {
      const wanted = change(known.record);
      if (wanted === undefined) return;
      const before = known.record;
      const changed = fitRecord(wanted);
      known = { ...known, record: changed, contentId: toContentId(changed) };
      keepOwn(changed);
      tellOutcome(before, changed);
    },
    keepTakenBack(change) {
      const changed = change(known.record);
      if (changed !== undefined) keepOwn(fitRecord(changed));
    },
    tick(isWaiting) {
      const nowMs = clock.monotonicMs();
      if (waiting > 0 || nowMs < restUntilMs) return;
      const sinceReadMs = nowMs - readAtMs;
      const isNews =
        heard !== undefined && heard !== known.contentId && sinceReadMs >= timing.readAgain;
      if (isNews) heard = undefined;
      const isTimely = (isWaiting || alone !== undefined) && sinceReadMs >= timing.poll;
      const isDue = leadsOpen() && nowMs - known.sinceMs >= timing.renew;
      if (isDue && alone === undefined) void enqueue(() => giveSign(false));
      else if (isNews || isTimely || trouble !== undefined) void enqueue(() => read());
    },
    noteNews(contentId) {
      heard = contentId;
    },
    handOver: () =>
      enqueue(async () => {
        if (leadsOpen()) await giveSign(true);
      }),
    settled,
    stop() {
      shared.close();
      return settled();
    },
  };
}

/** `or` says what makes the program go on without it. */
function toForeign(reading: RecordReading, or: string): ForeignRecord | undefined {
  if (reading.ok || reading.ofOtherVersion === undefined) return undefined;
  const problem = `${reading.problem}: run the version that wrote it, or ${or}`;
  return { ...reading.ofOtherVersion, problem };
}

/** Without the signs of life. */
function toContentId(record: RolloutRecord): string {
  return toDigest(toRecordText({ ...record, beat: 0 }));
}
