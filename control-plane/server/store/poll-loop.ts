// The loop shared by all stores: one poll at a time, watchers notified in order, failures logged once. Stores implement
// `poll`.

import { type Clock, repeatAfter } from '../../../shared/clock.ts';
import { toCountText } from '../../../shared/count-text.ts';
import { formatDuration } from '../../../shared/duration.ts';
import { AppError, errorText } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import { createRepeatedLog } from '../../../shared/repeated-log.ts';
import { type Revision, toRevisionInfo } from './revision.ts';
import type { ConfigStore, StoreStatus } from './store.ts';

type Task<Result> = (
  publish: (revision: Revision) => Revision,
  signal: AbortSignal,
) => Promise<Result>;

export interface PollLoopDeps {
  readonly description: string;
  /** Returns the newest revision. Rejects with an AppError `store` when the store cannot be reached; `signal` aborts
   * when the store is closed. */
  poll(signal: AbortSignal): Promise<Revision>;
  /** Reads the newest revision that an earlier process saw; called once, when the first poll fails. */
  readLastKnown?(signal: AbortSignal): Promise<Revision | undefined>;
  /** Called when the last watcher is gone. */
  onIdle?(): void;
  /** How often to poll without a notification, while there are watchers. */
  readonly pollMs: number;
  /** The least time between the beginnings of two polls, whoever requests them; 0 for a store that is cheap to read. */
  readonly leastMs: number;
  readonly log: Log;
  readonly clock: Clock;
}

/** The least time between log lines about failures. */
const failureIntervalMs = 60_000;

interface Watcher {
  readonly onRevision: (revision: Revision) => void;
  notifiedId: string | undefined;
}

export class PollLoop
  implements Pick<ConfigStore, 'read' | 'watch' | 'trigger' | 'status' | 'close'>
{
  readonly #deps: PollLoopDeps;
  readonly #description;
  readonly #pollMs;
  readonly #leastMs;
  readonly #log;
  readonly #clock;
  readonly #watchers = new Set<Watcher>();
  readonly #closing = new AbortController();
  #queue: Promise<unknown> = Promise.resolve();
  #waitingPoll: Promise<Revision> | undefined;
  /** When the last poll began. */
  #pollAtMs = Number.NEGATIVE_INFINITY;
  #seen: Revision | undefined;
  #hasReadLastKnown;
  #lastSuccessMs: number | undefined;
  #failure: { readonly sinceMs: number; readonly text: string } | undefined;
  #copy: Revision | undefined;
  #stopPolling = () => {};
  readonly #failures;

  constructor(deps: PollLoopDeps) {
    this.#deps = deps;
    this.#description = deps.description;
    this.#pollMs = deps.pollMs;
    this.#leastMs = deps.leastMs;
    this.#log = deps.log;
    this.#clock = deps.clock;
    this.#hasReadLastKnown = deps.readLastKnown === undefined;
    this.#failures = createRepeatedLog({
      clock: deps.clock,
      intervalMs: failureIntervalMs,
      again: 'when-changed',
      write: (text) => {
        const consequence =
          this.#copy === undefined
            ? 'no revision of it is known'
            : `revision ${this.#copy.id} is kept${this.#ageOf(this.#copy)}`;
        deps.log.warning(
          `The store ${deps.description} cannot be read: ${text}; ${consequence}; next attempt in ${formatDuration(deps.pollMs)}`,
        );
      },
    });
  }

  /** Runs `task` while no poll or other task runs. `publish` makes a revision the newest; `signal` aborts when the
   * store is closed. */
  exclusively<Result>(task: Task<Result>): Promise<Result> {
    const result = this.#queue.then(() => {
      if (this.#closing.signal.aborted)
        throw new AppError('store', `${this.#description} was closed`);
      return task((revision) => this.#publish(revision), this.#closing.signal);
    });
    this.#queue = result.catch(() => {});
    return result;
  }

  /** A poll that has not started yet serves all callers. Nothing else waits for its turn. */
  read(): Promise<Revision> {
    const waitMs = this.#pollAtMs + this.#leastMs - this.#clock.monotonicMs();
    this.#waitingPoll ??=
      waitMs <= 0 ? this.#pollNow() : this.#pass(waitMs).then(() => this.#pollNow());
    return this.#waitingPoll;
  }

  /** Resolves after this time, or when the store is closed. */
  #pass(ms: number): Promise<void> {
    const turn = Promise.withResolvers<void>();
    const cancel = this.#clock.after(ms, turn.resolve);
    const end = () => turn.resolve();
    this.#closing.signal.addEventListener('abort', end, { once: true });
    return turn.promise.finally(() => {
      cancel();
      this.#closing.signal.removeEventListener('abort', end);
    });
  }

  #pollNow(): Promise<Revision> {
    return this.exclusively(async (_publish, signal) => {
      this.#waitingPoll = undefined;
      this.#pollAtMs = this.#clock.monotonicMs();
      let newest: Revision | undefined;
      try {
        newest = await this.#deps.poll(signal);
        this.#noteSuccess();
      } catch (error) {
        if (signal.aborted) throw error;
        newest = this.#seen ?? (await this.#readLastKnown());
        this.#noteFailure(error, newest);
        if (newest === undefined) throw error;
      }
      return this.#publish(newest);
    });
  }

  /** A failure has been recorded, and the next poll follows. */
  trigger(): Promise<void> {
    return this.read().then(
      () => {},
      () => {},
    );
  }

  async #readLastKnown(): Promise<Revision | undefined> {
    if (this.#hasReadLastKnown) return undefined;
    this.#hasReadLastKnown = true;
    return this.#deps.readLastKnown?.(this.#closing.signal);
  }

  /** Returns the newest revision: the same object while nothing changes. A newly known author is stored, but watchers
   * are not notified of it. */
  #publish(revision: Revision): Revision {
    const newest = this.#seen !== undefined && isSame(this.#seen, revision) ? this.#seen : revision;
    this.#seen = newest;
    for (const watcher of [...this.#watchers]) {
      if (watcher.notifiedId === newest.id) continue;
      watcher.notifiedId = newest.id;
      watcher.onRevision(newest);
    }
    return newest;
  }

  #noteSuccess(): void {
    this.#lastSuccessMs = this.#clock.wallMs();
    this.#failure = undefined;
    const outage = this.#failures.recover();
    if (outage === undefined) return;
    const time = formatDuration(Math.round(outage.seconds) * 1000);
    const attempts = toCountText(outage.times, 'attempt');
    this.#log.notice(
      `The store ${this.#description} can be read again, after ${time} and ${attempts}`,
    );
  }

  #noteFailure(error: unknown, known: Revision | undefined): void {
    const text = errorText(error);
    this.#failure = { sinceMs: this.#failure?.sinceMs ?? this.#clock.wallMs(), text };
    // Callers that do not watch receive the rejection, or read the status.
    if (this.#watchers.size === 0) return;
    this.#copy = known;
    this.#failures.report(text);
  }

  #ageOf(revision: Revision): string {
    const seconds = Math.max(0, Math.round((this.#clock.wallMs() - revision.atMs) / 1000));
    return ` (it is ${formatDuration(seconds * 1000)} old)`;
  }

  get isWatched(): boolean {
    return this.#watchers.size > 0;
  }

  /** The newest known revision. */
  get seen(): Revision | undefined {
    return this.#seen;
  }

  watch(onRevision: Watcher['onRevision']): () => void {
    if (this.#closing.signal.aborted) return () => {};
    const watcher: Watcher = { onRevision, notifiedId: undefined };
    this.#watchers.add(watcher);
    if (this.#watchers.size === 1)
      this.#stopPolling = repeatAfter(this.#clock, this.#pollMs, () => this.trigger());
    void this.trigger();
    return () => {
      if (!this.#watchers.delete(watcher) || this.#watchers.size > 0) return;
      this.#stopPolling();
      this.#deps.onIdle?.();
    };
  }

  status(): StoreStatus {
    return {
      reachable: this.#failure === undefined,
      lastSuccessMs: this.#lastSuccessMs,
      failingSinceMs: this.#failure?.sinceMs,
      lastError: this.#failure?.text,
      revision: this.#seen && toRevisionInfo(this.#seen),
    };
  }

  async close() {
    this.#closing.abort(new AppError('store', `${this.#description} was closed`));
    this.#stopPolling();
    this.#watchers.clear();
    this.#deps.onIdle?.();
    await this.#queue;
  }
}

function isSame(one: Revision, other: Revision): boolean {
  return one.id === other.id && one.author === other.author && one.message === other.message;
}
