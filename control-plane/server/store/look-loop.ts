// The loop that all stores share: one poll at a time, watchers notified in order, failures logged once. Stores
// implement `look`.

import { type Clock, repeatAfter } from '../../../shared/clock.ts';
import { toCountText } from '../../../shared/count-text.ts';
import { formatDuration } from '../../../shared/duration.ts';
import { AppError, errorText } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import { createRepeatedLog } from '../../../shared/repeated-log.ts';
import { type Revision, toRevisionInfo } from './revision.ts';
import type { ConfigStore, StoreStatus } from './store.ts';

export interface LookLoop
  extends Pick<ConfigStore, 'read' | 'watch' | 'trigger' | 'status' | 'close'> {
  readonly isWatched: boolean;
  /** The newest known revision. */
  readonly seen: Revision | undefined;
  /** Runs `task` while no poll or other task runs; `publish` makes a revision the newest, `signal` aborts
   * when the store is closed. */
  exclusively<Result>(task: Task<Result>): Promise<Result>;
}

type Task<Result> = (
  publish: (revision: Revision) => Revision,
  signal: AbortSignal,
) => Promise<Result>;

export interface LookLoopDeps {
  readonly description: string;
  /** The newest revision. Rejects with an AppError `store` when the store cannot be reached; `signal`
   * aborts when it is closed. */
  look(signal: AbortSignal): Promise<Revision>;
  /** Reads the revision that an earlier process saw last; called once, when the first poll fails. */
  readLastKnown?(signal: AbortSignal): Promise<Revision | undefined>;
  /** Called when the last watcher is gone. */
  onIdle?(): void;
  /** How often to poll without a notification, while there are watchers. */
  readonly pollMs: number;
  /** Between the beginnings of two polls, whoever asks for them; 0 for a store that costs nothing to read. */
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

export function createLookLoop(deps: LookLoopDeps): LookLoop {
  const { description, pollMs, leastMs, log, clock } = deps;
  const watchers = new Set<Watcher>();
  const closing = new AbortController();
  let queue: Promise<unknown> = Promise.resolve();
  let waitingLook: Promise<Revision> | undefined;
  /** When the last poll began. */
  let lookAtMs = Number.NEGATIVE_INFINITY;
  let seen: Revision | undefined;
  let hasReadLastKnown = deps.readLastKnown === undefined;
  let lastSuccessMs: number | undefined;
  let failure: { readonly sinceMs: number; readonly text: string } | undefined;
  let kept: Revision | undefined;
  let stopPolling = () => {};
  const failures = createRepeatedLog({
    clock,
    intervalMs: failureIntervalMs,
    again: 'when-changed',
    write(text) {
      const consequence =
        kept === undefined
          ? 'no revision of it is known'
          : `revision ${kept.id} is kept${ageOf(kept)}`;
      log.warning(
        `The store ${description} cannot be read: ${text}; ${consequence}; next attempt in ${formatDuration(pollMs)}`,
      );
    },
  });

  function exclusively<Result>(task: Task<Result>): Promise<Result> {
    const result = queue.then(() => {
      if (closing.signal.aborted) throw new AppError('store', `${description} was closed`);
      return task(publish, closing.signal);
    });
    queue = result.catch(() => {});
    return result;
  }

  /** A poll that has not started yet serves all callers. Nothing else waits for its turn. */
  function look(): Promise<Revision> {
    const waitMs = lookAtMs + leastMs - clock.monotonicMs();
    waitingLook ??= waitMs <= 0 ? lookNow() : pass(waitMs).then(lookNow);
    return waitingLook;
  }

  /** Until then, or the store is closed. */
  function pass(ms: number): Promise<void> {
    const turn = Promise.withResolvers<void>();
    const cancel = clock.after(ms, turn.resolve);
    const end = () => turn.resolve();
    closing.signal.addEventListener('abort', end, { once: true });
    return turn.promise.finally(() => {
      cancel();
      closing.signal.removeEventListener('abort', end);
    });
  }

  function lookNow(): Promise<Revision> {
    return exclusively(async (_publish, signal) => {
      waitingLook = undefined;
      lookAtMs = clock.monotonicMs();
      let newest: Revision | undefined;
      try {
        newest = await deps.look(signal);
        noteSuccess();
      } catch (error) {
        if (signal.aborted) throw error;
        newest = seen ?? (await readLastKnown());
        noteFailure(error, newest);
        if (newest === undefined) throw error;
      }
      return publish(newest);
    });
  }

  /** A failure has been recorded, and the next poll follows. */
  function trigger(): Promise<void> {
    return look().then(
      () => {},
      () => {},
    );
  }

  async function readLastKnown(): Promise<Revision | undefined> {
    if (hasReadLastKnown) return undefined;
    hasReadLastKnown = true;
    return deps.readLastKnown?.(closing.signal);
  }

  /** Returns the newest revision: the same object while nothing is new. That its author has become known
   * is kept, but no news for watchers. */
  function publish(revision: Revision): Revision {
    const newest = seen !== undefined && isSame(seen, revision) ? seen : revision;
    seen = newest;
    for (const watcher of [...watchers]) {
      if (watcher.notifiedId === newest.id) continue;
      watcher.notifiedId = newest.id;
      watcher.onRevision(newest);
    }
    return newest;
  }

  function noteSuccess(): void {
    lastSuccessMs = clock.wallMs();
    failure = undefined;
    const outage = failures.recover();
    if (outage === undefined) return;
    const time = formatDuration(Math.round(outage.seconds) * 1000);
    const attempts = toCountText(outage.times, 'attempt');
    log.notice(`The store ${description} can be read again, after ${time} and ${attempts}`);
  }

  function noteFailure(error: unknown, known: Revision | undefined): void {
    const text = errorText(error);
    failure = { sinceMs: failure?.sinceMs ?? clock.wallMs(), text };
    // Callers that do not watch get the rejection, or read the status.
    if (watchers.size === 0) return;
    kept = known;
    failures.report(text);
  }

  function ageOf(revision: Revision): string {
    const seconds = Math.max(0, Math.round((clock.wallMs() - revision.atMs) / 1000));
    return ` (it is ${formatDuration(seconds * 1000)} old)`;
  }

  return {
    get isWatched() {
      return watchers.size > 0;
    },
    get seen() {
      return seen;
    },
    read: look,
    exclusively,
    watch(onRevision) {
      if (closing.signal.aborted) return () => {};
      const watcher: Watcher = { onRevision, notifiedId: undefined };
      watchers.add(watcher);
      if (watchers.size === 1) stopPolling = repeatAfter(clock, pollMs, trigger);
      void trigger();
      return () => {
        if (!watchers.delete(watcher) || watchers.size > 0) return;
        stopPolling();
        deps.onIdle?.();
      };
    },
    trigger,
    status(): StoreStatus {
      return {
        reachable: failure === undefined,
        lastSuccessMs,
        failingSinceMs: failure?.sinceMs,
        lastError: failure?.text,
        revision: seen && toRevisionInfo(seen),
      };
    },
    async close() {
      closing.abort(new AppError('store', `${description} was closed`));
      stopPolling();
      watchers.clear();
      deps.onIdle?.();
      await queue;
    },
  };
}

function isSame(one: Revision, other: Revision): boolean {
  return one.id === other.id && one.author === other.author && one.message === other.message;
}
