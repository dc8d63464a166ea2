// Brings a new revision to the workers in steps: each step's workers must accept it and do as well as the others before
// the next ones get it; otherwise it is taken back. A decision changes only the record; all control planes follow the
// record, including the leader (behaviour: record-before-workers). The record is also kept up to date without steps.
// fleet-state.ts has what is known, and fleet-step.ts decides what to do; this file performs it.
import { type Clock, repeatAfter } from '../../../shared/clock.ts';
import type { Log } from '../../../shared/log.ts';
import { toTime } from '../api-shape.ts';
import type { Counted } from '../fleet/tally.ts';
import type { PeerAnswer } from '../record/peers/peers.ts';
import { openRolloutOf } from '../record/record.ts';
import type { RecordKeeper } from '../record/record-keeper.ts';
import {
  leads,
  type MemoryState,
  type RecordState,
  stepsOf,
  toMemoryState,
  toRevisionMemory,
} from '../record/record-state.ts';
import type { SnapshotCache } from '../snapshot/cache.ts';
import type { ConfigStore } from '../store/store.ts';
import { EffectQueue } from '../turn.ts';
import type { ConnectedWorkers } from '../xds/workers.ts';
import type { RolloutAction } from './changes.ts';
import { type RolloutFacts, readOwnFacts } from './facts.ts';
import {
  type Facts,
  type FleetEffect,
  type FleetEvent,
  type FleetState,
  foresee,
  type Meant,
  startFleet,
  type Turn,
  toShownId,
  toTakenBack,
  whyOtherSteps,
} from './fleet-state.ts';
import { step } from './fleet-step.ts';
import { type FollowEffect, isPast } from './following.ts';
import { planOf, type RolloutPlan } from './plan.ts';
import { isGiven } from './pools.ts';
import { type RolloutState, toReachText } from './rollout-json.ts';

/** Never rejects. `contentId` identifies the record that this control plane knows; `undoes`: this control plane has
 * taken the rollout back, and its peers have to ask it why. */
export type AskPeers = (
  contentId: string,
  undoes: boolean,
) => Promise<readonly PeerAnswer<RolloutFacts>[]>;

export interface RolloutDeps {
  /** Whether notifications of outcomes are sent. */
  readonly reportsOutcomes: boolean;
  readonly snapshots: SnapshotCache;
  readonly workers: ConnectedWorkers;
  /** Counts by instance, for workers that report and whose reports can be trusted. */
  readonly readCounted: () => ReadonlyMap<string, Counted>;
  readonly keeper: RecordKeeper;
  /** Undefined without peers. */
  readonly askPeers: AskPeers | undefined;
  readonly store: Pick<ConfigStore, 'trigger' | 'readRevision' | 'locate'>;
  /** Draws the id of a rollout, which workers do not know and which never repeats. */
  readonly drawId: () => string;
  /** Receives each action that the control plane takes by itself, for the audit log. */
  readonly onEvent: (event: Extract<FleetEffect, { kind: 'audit' }>) => void;
  /** Receives each step, for a trace. */
  readonly onStep?: (before: FleetState, event: FleetEvent, facts: Facts, turn: Turn) => void;
  readonly log: Log;
  readonly clock: Clock;
}

const checkMs = 1_000;
/** The time limit for writing the last sign of life. */
export const handOverMs = 3_000;

export class Rollout {
  readonly #deps: RolloutDeps;
  #state: FleetState;
  readonly #effects = new EffectQueue<FleetEffect>();
  /** The callers that wait for an answer, by number. */
  readonly #asked = new Map<number, (problem: string | undefined) => void>();
  #lastAsked = 0;
  #freshId: string;
  #stops: readonly (() => void)[] = [];

  constructor(deps: RolloutDeps) {
    const { reportsOutcomes, askPeers, keeper, clock } = deps;
    this.#deps = deps;
    const options = { reportsOutcomes, hasPeers: askPeers !== undefined };
    const monotonicMs = clock.monotonicMs();
    this.#state = startFleet(options, { record: keeper.state, monotonicMs });
    this.#freshId = deps.drawId();
  }

  /** The steps of a revision if no node group has its own; undefined if revisions reach all workers at once. */
  get plan(): RolloutPlan | undefined {
    return planOf(stepsOf(this.#deps.keeper.state));
  }

  /** Starts following the snapshots and the record, which must have been read. */
  start(): void {
    const { snapshots, keeper, clock } = this.#deps;
    const check = () => this.#happen({ kind: 'check', mayDiffer: true });
    const noteRevision = () => this.#happen({ kind: 'check', mayDiffer: false });
    keeper.onChange(check);
    this.#stops = [
      snapshots.onChange(noteRevision),
      // An operator may repair the record before the next scheduled check.
      snapshots.onNewest(noteRevision),
      repeatAfter(clock, checkMs, check),
    ];
    check();
  }

  /** Undefined without a rollout. */
  state(): RolloutState | undefined {
    return toRolloutState(this.#state, this.#deps.keeper.state);
  }

  /** Why the next revision could not reach the workers in steps, human-readable; undefined if it could. */
  warning(): string | undefined {
    const { keeper, workers } = this.#deps;
    const { plan } = this;
    const foreseen = plan && foresee(this.#state, workers.list(), plan);
    return whyOtherSteps(keeper.state) ?? foreseen;
  }

  /** Where the verdicts and outcomes are stored, and why they may get lost. */
  memory(): MemoryState {
    return toMemoryState(this.#deps.keeper.state);
  }

  /** Resolves with why the action was not performed, human-readable; undefined if it was. `by`: who requested it. */
  act(
    action: RolloutAction,
    reason: string,
    by: string,
    meant: Meant = {},
  ): Promise<string | undefined> {
    return this.#ask((asked) => ({ kind: 'act', action, reason, by, meant, asked }));
  }

  /** Approves a revision that waits for an approval; resolves with why it was not approved, or with undefined. */
  approve(revision: string, reason: string, by: string): Promise<string | undefined> {
    const contentOfStep = this.#deps.snapshots.contentOfStep(revision);
    return this.#ask((asked) => ({ kind: 'approve', revision, contentOfStep, reason, by, asked }));
  }

  /** Whether all workers had this content recently: returning to it is an undo. */
  wasInForce(content: string): boolean {
    return toRevisionMemory(this.#deps.keeper.state).wasInForce(content);
  }

  /** Called before a change that undoes the revision on trial is written to the store, which may take long: the
   * revision leaves the workers at once, and that is put on record as soon as possible. */
  undo(reason: string, by: string): void {
    this.#happen({ kind: 'undo', reason, by });
  }

  /** The facts for the control plane that leads, which knows the record with this content. */
  answerPeer(contentId: string | undefined, undoes = false): RolloutFacts {
    const { keeper, clock } = this.#deps;
    if (contentId !== undefined) {
      keeper.happen({ kind: 'noticed', contentId });
      this.#happen({ kind: 'asked', undoes });
    }
    const { running, serves = null, lacking } = this.#state.following;
    const lacks = lacking !== undefined && lacking === openRolloutOf(keeper.record)?.id;
    const facts = readOwnFacts(this.#deps, running, clock.monotonicMs());
    const takenBack = toTakenBack(this.#state, keeper.record);
    return { record: keeper.contentId, serves, lacks, takenBack, ...facts };
  }

  /** Stops deciding and lets another control plane lead. Bounded in time. */
  async stop(): Promise<void> {
    const { keeper, clock } = this.#deps;
    this.#happen({ kind: 'stop' });
    // The end of the rollout may be on its way to the record.
    const wasOpen = openRolloutOf(keeper.record) !== undefined;
    for (const end of this.#stops) end();
    const late = Promise.withResolvers<void>();
    const cancel = clock.after(handOverMs, late.resolve);
    await Promise.race([keeper.handOver(), late.promise]);
    cancel();
    if (wasOpen) this.#happen({ kind: 'handed_over' });
  }

  #ask(toEvent: (asked: number) => FleetEvent): Promise<string | undefined> {
    const asked = ++this.#lastAsked;
    const answer = Promise.withResolvers<string | undefined>();
    this.#asked.set(asked, answer.resolve);
    this.#happen(toEvent(asked));
    return answer.promise;
  }

  #happen(event: FleetEvent): void {
    const facts = this.#facts();
    const turn = step(this.#state, event, facts);
    this.#deps.onStep?.(this.#state, event, facts, turn);
    this.#state = turn.state;
    this.#effects.perform(turn.effects, (each) => this.#perform(each));
  }

  #facts(): Facts {
    const { keeper, snapshots, clock } = this.#deps;
    return {
      record: keeper.state,
      snapshots: snapshots.state(),
      monotonicMs: clock.monotonicMs(),
      wallMs: clock.wallMs(),
      freshId: this.#freshId,
    };
  }

  #perform(effect: FleetEffect): void {
    const { snapshots, keeper, store, log } = this.#deps;
    switch (effect.kind) {
      case 'find_trial':
        this.#await(unlessAway(this.#findTrial(effect)));
        break;
      case 'find_in_force':
        this.#await(unlessAway(this.#findInForce(effect)));
        break;
      case 'followed':
        this.#happen(this.#readWorkers());
        break;
      case 'locate':
        this.#await(unlessAway(this.#locate(effect)));
        break;
      case 'poll_store':
        void store.trigger();
        break;
      case 'tick':
      case 'noticed':
      case 'stored_locally':
        keeper.happen(effect);
        break;
      case 'ask_peers':
        this.#await(this.#askPeers(effect));
        break;
      case 'log':
        log[effect.level](effect.text);
        break;
      case 'audit':
        this.#deps.onEvent(effect);
        break;
      case 'answer':
        this.#asked.get(effect.asked)?.(effect.problem);
        this.#asked.delete(effect.asked);
        break;
      case 'write':
        this.#await(this.#write(effect));
        break;
      default:
        snapshots.happen(effect);
    }
  }

  /** A rejection is a defect and ends the process with its name: without the event, no further decision would be
   * made. */
  #await(event: Promise<FleetEvent | undefined>): void {
    void event.then((happened) => happened && this.#happen(happened));
  }

  #readWorkers(): FleetEvent {
    const { workers, snapshots, clock } = this.#deps;
    const { running } = this.#state.following;
    const own = running && readOwnFacts(this.#deps, running, clock.monotonicMs());
    const holdOther = workers.list().some(({ node }) => snapshots.holdsOther(node));
    return { kind: 'followed', workers: workers.list(), own, holdOther };
  }

  async #write({ write }: Extract<FleetEffect, { kind: 'write' }>): Promise<FleetEvent> {
    // The id may be on record even if the write fails.
    this.#freshId = this.#deps.drawId();
    const isWritten = await this.#deps.keeper.write(write.change);
    return { kind: 'written', write, isWritten };
  }

  async #askPeers({
    contentId,
    undoes,
  }: Extract<FleetEffect, { kind: 'ask_peers' }>): Promise<FleetEvent | undefined> {
    const { askPeers, clock } = this.#deps;
    const askedAtMs = clock.monotonicMs();
    const answers = await askPeers?.(contentId, undoes);
    return answers && { kind: 'answered', askedAtMs, contentId, answers };
  }

  async #locate({
    revision,
    newest,
  }: Extract<FleetEffect, { kind: 'locate' }>): Promise<FleetEvent> {
    const { store, snapshots } = this.#deps;
    // The newest revision known here may be older than the one on trial.
    await store.trigger();
    const { newest: now, store: status } = snapshots.state();
    const isNewest = now?.revision.id === newest && status.failingSinceMs === undefined;
    const positions = [await store.locate(revision, newest), await store.locate(newest, revision)];
    const isIncluded = positions.some((position) => position?.isIncluded !== false);
    return { kind: 'located', revision, newest, isIncluded: !isNewest || isIncluded };
  }

  async #findTrial({
    open,
  }: Extract<FollowEffect, { kind: 'find_trial' }>): Promise<FleetEvent | undefined> {
    const { store, snapshots } = this.#deps;
    await store.trigger();
    const state = snapshots.state();
    const newest = state.newest?.revision.id;
    if (newest === undefined) return undefined;
    const position = await store.locate(open.revision, newest);
    const past = isPast(open, state, position?.isIncluded === true);
    const revision = past ? undefined : await store.readRevision(open.revision);
    return { kind: 'found_trial', found: { open, newest, isPast: past, revision } };
  }

  async #findInForce({
    wanted,
    before,
  }: Extract<FollowEffect, { kind: 'find_in_force' }>): Promise<FleetEvent> {
    const revision = await this.#deps.store.readRevision(wanted.revision);
    return { kind: 'found_in_force', found: { wanted, before, revision } };
  }
}

/** An unreachable store reports its own state, and the search is repeated. */
function unlessAway<Event>(event: Promise<Event>): Promise<Event | undefined> {
  return event.catch(() => undefined);
}

/** Undefined without a rollout. */
export function toRolloutState(
  { following, view, decision, options }: FleetState,
  record: RecordState,
): RolloutState | undefined {
  const { running } = following;
  if (running === undefined || view === undefined) return undefined;
  const { leader, after } = record.known.record;
  const open = openRolloutOf(record.known.record);
  const isThis = leads(record);
  const { ledSinceMs } = record;
  const members = running.takenBack === undefined ? view.members : [];
  const chosen = members.filter(({ isChosen }) => isChosen);
  const isAlone = !options.hasPeers && isThis;
  const workers = {
    having: chosen.filter(({ state }) => state === 'in_force').length,
    chosen: chosen.length,
    others: view.connected - chosen.length,
  };
  const shownLeader =
    open === undefined || isAlone
      ? null
      : { name: leader.name, isThis, since: toTime(ledSinceMs), after: after || null };
  return {
    id: open ? toShownId(open) : null,
    revision: running.trial.revision.id,
    step: open && isGiven(open) ? open.step + 1 : 0,
    steps: running.pools.steps.length + 1,
    ...decision,
    workers,
    since: toTime(running.trial.sinceMs),
    reach: toReachText(workers, shownLeader),
    leader: shownLeader,
    ledHereSinceMs: open !== undefined && isThis ? ledSinceMs : undefined,
  };
}
