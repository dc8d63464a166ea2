// Holds the record that control planes share: reads and writes it beside the rules, and determines which control plane
// decides, which is the one that wrote it last. The others follow the record, and can replace the leader once it has
// left or has shown no sign of life for the length of a term (behaviour: one-leader). A control plane that cannot write
// does not lead. record-state.ts has what is known, and record-step.ts decides what to do; this file performs it.
import type { Clock } from '../../../shared/clock.ts';
import { errorText } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import type { SharedText, SwapResult } from '../store/shared-text.ts';
import { EffectQueue } from '../turn.ts';
import type { Outcomes } from './outcomes.ts';
import type { OwnText } from './own-text.ts';
import type { RolloutRecord } from './record.ts';
import {
  type ChangeRecord,
  type Job,
  type LeaderTiming,
  type RecordEffect,
  type RecordEvent,
  type RecordOptions,
  type RecordState,
  startRecord,
} from './record-state.ts';
import { step } from './record-step.ts';

/** No control plane waits for a sign of life if the record is not shared. */
export const unsharedTiming: LeaderTiming = {
  poll: 1_000,
  renew: Number.POSITIVE_INFINITY,
  term: Number.POSITIVE_INFINITY,
  readAgain: 1_000,
};
/** Each poll and each renewal is a call of the remote. */
export const gitTiming: LeaderTiming = {
  poll: 5_000,
  renew: 10_000,
  term: 30_000,
  readAgain: 2_000,
};
export const engineTiming: LeaderTiming = {
  poll: 2_000,
  renew: 4_000,
  term: 15_000,
  readAgain: 1_000,
};

export interface RecordKeeperDeps extends Pick<RecordOptions, 'id' | 'name' | 'steps' | 'timing'> {
  /** The text in an engine or beside the rules; undefined if this is the only control plane. */
  readonly shared: SharedText | undefined;
  /** The text in the state directory: a copy, or the record itself. */
  readonly own: OwnText;
  /** Called when this control plane, and no other one, has put the outcome of a revision on record: the newest of
   * these. */
  readonly onOutcome?: (outcomes: Outcomes) => void;
  readonly log: Log;
  readonly clock: Clock;
}

type Distribute<Each> = Each extends Job ? Omit<Each, 'id'> : never;
/** A job that a caller waits for. */
type Wanted = Distribute<Job>;

const nothing = Promise.resolve(undefined);

export class RecordKeeper {
  readonly #deps: RecordKeeperDeps;
  #state: RecordState;
  #listener = () => {};
  /** The callers that wait, by job. */
  readonly #wanted = new Map<number, PromiseWithResolvers<boolean>>();
  #lastJob = 0;
  /** Undefined while nothing is being read or written. */
  #busy: PromiseWithResolvers<void> | undefined;
  readonly #effects = new EffectQueue<RecordEffect>();

  constructor(deps: RecordKeeperDeps) {
    const { shared, own, steps, id, name, timing, clock } = deps;
    this.#deps = deps;
    const options = {
      id,
      name,
      timing,
      location: shared?.description ?? own.path,
      ownLocation: own.path,
      steps,
    };
    this.#state = startRecord(options, toNow(clock));
  }

  /** Everything known about the record. */
  get state(): RecordState {
    return this.#state;
  }

  /** The record as it was last read or written. */
  get record(): RolloutRecord {
    return this.#state.known.record;
  }

  /** Identifies the content of the record, which stays the same with each sign of life. */
  get contentId(): string {
    return this.#state.known.contentId;
  }

  /** Reads the record. Never rejects. */
  async start(): Promise<void> {
    await this.#want({ kind: 'start' });
  }

  /** `listener` is called after each change of the record, whoever made it. */
  onChange(listener: () => void): void {
    this.#listener = listener;
  }

  /** Changes the record, and leads from then on. False if nothing was written: the change has become pointless, another
   * control plane was faster each time, or `error` gives the reason. */
  write(change: ChangeRecord): Promise<boolean> {
    return this.#want({ kind: 'write', change, attempt: 1 });
  }

  /** Lets another control plane lead from now on. */
  async handOver(): Promise<void> {
    await this.#want({ kind: 'sign', hasLeft: true });
  }

  /** Resolves when nothing is being read or written. */
  async settled(): Promise<void> {
    await this.#busy?.promise;
  }

  /** Stops the keeper, and resolves as `settled` does, without waiting for long operations. */
  stop(): Promise<void> {
    this.#deps.shared?.close();
    return this.settled();
  }

  happen(event: RecordEvent): void {
    const { state, effects } = step(this.#state, event, toNow(this.#deps.clock));
    this.#state = state;
    try {
      this.#effects.perform(effects, (each) => this.#perform(each));
    } finally {
      this.#noteBusy();
    }
  }

  #want(wanted: Wanted): Promise<boolean> {
    const id = ++this.#lastJob;
    const done = Promise.withResolvers<boolean>();
    this.#wanted.set(id, done);
    this.happen({ kind: 'wanted', job: { ...wanted, id } });
    return done.promise;
  }

  #noteBusy(): void {
    if (this.#state.job !== undefined) this.#busy ??= Promise.withResolvers();
    else {
      this.#busy?.resolve();
      this.#busy = undefined;
    }
  }

  #perform(effect: RecordEffect): void {
    const { shared, own, log, onOutcome } = this.#deps;
    switch (effect.kind) {
      case 'log':
        log[effect.level](effect.text);
        break;
      case 'store_own':
        own.save(effect.stored);
        break;
      case 'restore_own':
        own.restore();
        break;
      case 'changed':
        this.#listener();
        break;
      case 'outcome':
        onOutcome?.(effect.outcomes);
        break;
      case 'done':
        this.#wanted.get(effect.job)?.resolve(effect.isWritten);
        this.#wanted.delete(effect.job);
        break;
      case 'next':
        this.happen({ kind: 'next' });
        break;
      case 'read_own':
        this.#await(own.read(), (stored) => ({ kind: 'own_read', stored }));
        break;
      case 'read': {
        const startedMs = this.#deps.clock.monotonicMs();
        this.#await(shared?.read() ?? nothing, (found) => ({ kind: 'read', startedMs, found }));
        break;
      }
      case 'set_aside': {
        const moved = shared?.setAside(effect.version).catch(() => undefined) ?? nothing;
        this.#await(moved, (where) => ({ kind: 'set_aside', where }));
        break;
      }
      case 'set_own_aside':
        this.#await(own.setAside(), (where) => ({ kind: 'own_set_aside', where }));
        break;
      case 'swap': {
        const swapped = shared?.swap(effect.before, effect.text) ?? this.#store(effect.text);
        this.#await(swapped, (result) => ({ kind: 'swapped', result }));
        break;
      }
    }
  }

  async #store(text: string): Promise<SwapResult> {
    const reason = await this.#deps.own.write({ text, plane: this.#state.plane });
    // The own text is read only at the start.
    return reason === undefined ? { kind: 'written', version: 'own' } : { kind: 'denied', reason };
  }

  #await<Result>(result: Promise<Result>, toEvent: (result: Result) => RecordEvent): void {
    const fail = (error: unknown): RecordEvent => ({ kind: 'failed', reason: errorText(error) });
    void result.then(toEvent, fail).then((event) => this.happen(event));
  }
}

function toNow(clock: Clock) {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
}
