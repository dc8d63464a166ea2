// Keeps the record up to date, whether or not revisions reach the workers in steps: once a second and after each change
// it puts on record what has happened, renews what is due, and tells the peers. A rollout attaches itself to it.
import { type Clock, repeatAfter } from '../../shared/clock.ts';
import { isError } from '../../shared/rules/problem/problem.ts';
import type { SnapshotCache } from '../snapshot/cache.ts';
import { toShortId } from '../store/revision.ts';
import type { Outcomes } from './outcomes.ts';
import {
  openRolloutOf,
  type RolloutOnRecord,
  toReplaced,
  type Verdict,
  withEnd,
  withVerdict,
} from './record.ts';
import type { RecordKeeper } from './record-keeper.ts';
import type { ChangeRecord } from './record-state.ts';
import { noMemory, remember } from './remembering.ts';

/** Where what control planes have to remember is. Plain data. */
export interface MemoryState {
  /** For people: beside the rules. */
  readonly place: string;
  /** Why it is in the state directory alone; undefined where it is shared. */
  readonly alone: string | undefined;
  /** Why it cannot be read or written now. */
  readonly trouble: string | undefined;
  /** Which text beside the rules could not be read, and where it is now, for people. */
  readonly aside: string | undefined;
  /** It was in the state directory alone, and that was empty at the start. */
  readonly isForgetful: boolean;
  /** The verdicts on revisions that were not simply served, the newest first. */
  readonly words: readonly Verdict[];
  /** The outcomes of the last revisions, the newest first. */
  readonly outcomes: Outcomes;
}

/** What brings revisions to the workers in steps. */
export interface Steps {
  /** Serves what is on record. */
  follow(): void;
  /** Decides, when what has happened is on record. */
  decide(): void;
}

export interface BookkeepingDeps {
  /** Whether revisions reach the workers in steps. */
  readonly rollsOut: boolean;
  /** Whether people are told what becomes of revisions, each time by one of the control planes. */
  readonly isTold: boolean;
  readonly snapshots: SnapshotCache;
  readonly keeper: RecordKeeper;
  /** Asks the peers, which then know that there is a record with this content. Undefined without peers. */
  readonly askPeers: ((contentId: string) => void) | undefined;
  readonly clock: Clock;
}

const lookMs = 1_000;
/** How often peers are told of a record that this control plane wrote while no rollout is under way. */
const maxTold = 5;
/** How long the last sign of life may take to write. */
export const handOverMs = 3_000;

export class Bookkeeping {
  readonly #deps: BookkeepingDeps;
  #memory = noMemory;
  #steps: Steps | undefined;
  #told = { contentId: '', times: 0 };
  #stops: (() => void)[] = [];
  #isLooking = false;
  #isWriting = false;
  #isStopped = false;

  constructor(deps: BookkeepingDeps) {
    this.#deps = deps;
  }

  attach(steps: Steps): void {
    this.#steps = steps;
  }

  /** Starts following the snapshots and the record, which have been read. */
  start(): void {
    const { snapshots, keeper, clock } = this.#deps;
    const look = () => this.#look(true);
    const noteRevision = () => this.#look(false);
    keeper.onChange(look);
    this.#stops = [
      snapshots.onChange(noteRevision),
      // Somebody may mend it before the next look that is due.
      snapshots.onNewest(noteRevision),
      repeatAfter(clock, lookMs, look),
    ];
    look();
  }

  get isWriting(): boolean {
    return this.#isWriting;
  }

  /** Whether this content in force is not on record yet, and will be. */
  isUnwritten(content: string): boolean {
    return content !== this.#memory.noted;
  }

  async write(change: ChangeRecord): Promise<boolean> {
    if (this.#isStopped) return false;
    this.#isWriting = true;
    const isWritten = await this.#deps.keeper.write(change);
    this.#isWriting = false;
    if (isWritten) this.#look(true);
    return isWritten;
  }

  /** Nobody wants the revision of this rollout any more. */
  giveWay(open: RolloutOnRecord, newest: string): Promise<boolean> {
    return this.abort(open, toReplaced(newest), '');
  }

  abort({ id }: RolloutOnRecord, reason: string, by: string): Promise<boolean> {
    return this.write((record) =>
      openRolloutOf(record)?.id === id
        ? withEnd(record, 'taken_back', { reason, by, atMs: this.#deps.clock.wallMs() })
        : undefined,
    );
  }

  /** Lets the newest revision through, which is held back: why it was not done, for people, or undefined. */
  async approveNewest(revision: string, reason: string, by: string): Promise<string | undefined> {
    const { newest } = this.#deps.snapshots.state();
    const id = toShortId(revision);
    // The policy refuses what it has made, with all that came after it.
    const isRefused = newest?.problems.some((each) => isError(each) && each.rule === 'policy');
    const isOver = newest?.problems.some(({ rule }) => rule === 'taken-back');
    const content = isRefused && !isOver ? this.#deps.snapshots.contentOfStep(revision) : undefined;
    if (content !== undefined) return this.approve({ revision, content, reason, by });
    if (newest?.revision.id !== revision) {
      return `revision ${id} is not the newest one, which is ${toShortId(newest?.revision.id ?? 'not known')}`;
    }
    if (!newest.isHeldBack || newest.content === undefined)
      return `revision ${id} is not held back`;
    return this.approve({ revision, content: newest.content, reason, by });
  }

  async approve(
    approval: Pick<Verdict, 'revision' | 'content' | 'reason' | 'by'>,
  ): Promise<string | undefined> {
    const { keeper, clock } = this.#deps;
    const verdict = { ...approval, outcome: 'approved' } as const;
    const isWritten = await this.write((record) =>
      withVerdict(record, { ...verdict, atMs: clock.wallMs() }),
    );
    return isWritten ? undefined : (keeper.trouble ?? 'it could not be put on record: try again');
  }

  memory(): MemoryState {
    const { record, state, isForgetful } = this.#deps.keeper;
    const { alone, trouble, aside, options } = state;
    const { verdicts: words, outcomes } = record;
    return { place: options.place, alone, trouble, aside, isForgetful, words, outcomes };
  }

  /** Decides nothing any more, and lets another control plane lead. Bounded in time. */
  async stop(): Promise<void> {
    const { keeper, askPeers, clock } = this.#deps;
    this.#isStopped = true;
    // An end may be on its way to the record.
    const wasOpen = this.#isOpen();
    for (const end of this.#stops) end();
    const late = Promise.withResolvers<void>();
    const cancel = clock.after(handOverMs, late.resolve);
    await Promise.race([keeper.handOver(), late.promise]);
    cancel();
    if (keeper.alone === undefined && wasOpen) askPeers?.(keeper.contentId);
  }

  /** `mayBeElse`: the record may say something else of the newest revision than when that was judged. */
  #look(mayBeElse: boolean): void {
    // A look changes the snapshots, which triggers another one.
    if (this.#isLooking || this.#isStopped) return;
    this.#isLooking = true;
    const { snapshots, keeper } = this.#deps;
    this.#steps?.follow();
    if (mayBeElse) snapshots.reconsider();
    this.#remember();
    const { trial, newest } = snapshots.state();
    keeper.tick(trial !== undefined || newest?.isHeldBack === true || this.#isOpen());
    this.#tellPeers();
    this.#steps?.decide();
    this.#isLooking = false;
  }

  #remember(): void {
    const { rollsOut, isTold, snapshots, keeper, clock } = this.#deps;
    const { memory, effects } = remember(this.#memory, {
      ...{ rollsOut, isTold, snapshots: snapshots.state(), record: keeper.record },
      ...{ leads: keeper.leads, wallMs: clock.wallMs() },
      mayWrite: !this.#isWriting && keeper.trouble === undefined,
    });
    this.#memory = memory;
    for (const each of effects) {
      if (each.kind === 'keep_here') keeper.keepHere(each.change);
      else if (each.kind === 'give_way') void this.giveWay(each.open, each.newest);
      else {
        void this.write(each.change).then((isWritten) => {
          if (each.isInForce && !isWritten) this.#memory = { ...this.#memory, noted: undefined };
        });
      }
    }
  }

  #isOpen(): boolean {
    return openRolloutOf(this.#deps.keeper.record) !== undefined;
  }

  /** The leader asks all the time; others hear of what is new when they are asked. */
  #tellPeers(): void {
    const { keeper, askPeers } = this.#deps;
    if (askPeers === undefined || keeper.alone !== undefined || !keeper.leads) return;
    const { contentId } = keeper;
    if (this.#told.contentId !== contentId) this.#told = { contentId, times: 0 };
    if (this.#isOpen() || this.#told.times < maxTold) askPeers(contentId);
    this.#told.times++;
  }
}
