// Notifies callers of `/events` when there is something new to read. Nothing runs without a listener.
import { type Clock, repeatAfter } from '../../../shared/clock.ts';
import { HttpError } from '../../../shared/router/index.ts';
import { countEnded } from '../../../shared/rules/rule-end.ts';
import type { Rollout } from '../rollout/rollout.ts';
import type { SnapshotCache } from '../snapshot/cache.ts';
import type { ConnectedWorkers } from '../xds/workers.ts';
import { toWorkerState } from '../xds/workers.ts';
import { countWorkers } from './status-report.ts';

/** `revisions`: the newest revision, the one in force or the one on trial has changed, one has a new outcome, or rules
 * have ended by themselves; `state`: any of these, or the rollout, the store or the workers' states have changed;
 * `figures`: workers have reported. */
export type AdminEvent = 'revisions' | 'state' | 'figures';

export interface Events {
  /** Sends each change once, however slowly it is read, and the first two events at once. Ends with the signal. Rejects
   * with an HttpError 429 if this caller already has its share of listeners; undefined: callers are not
   * distinguished. */
  follow(signal: AbortSignal, caller?: string): AsyncGenerator<AdminEvent, void>;
}

/** The most listeners of one token: it must leave room for other tokens. */
export const maxOfCaller = 16;
const pollMs = 500;
const figuresMs = 5_000;

export interface EventSources {
  readonly snapshots: SnapshotCache;
  readonly workers: Pick<ConnectedWorkers, 'list'>;
  readonly rollout: Pick<Rollout, 'state' | 'memory'>;
}

export function createEvents(sources: EventSources, clock: Clock): Events {
  const listeners = new Set<(event: AdminEvent) => void>();
  /** The number of listeners of each caller. */
  const callers = new Map<string, number>();
  let stopPolling: (() => void) | undefined;
  let known = { revisions: '', state: '' };
  let figuresSentMs = 0;

  function poll(): void {
    const nowMs = clock.monotonicMs();
    const now = toFingerprints(sources, clock);
    const before = known;
    known = now;
    if (now.revisions !== before.revisions) send('revisions');
    if (now.state !== before.state) send('state');
    if (nowMs - figuresSentMs >= figuresMs) {
      figuresSentMs = nowMs;
      send('figures');
    }
  }

  function send(event: AdminEvent): void {
    for (const listener of listeners) listener(event);
  }

  function join(listener: (event: AdminEvent) => void): void {
    listeners.add(listener);
    if (stopPolling !== undefined) return;
    known = toFingerprints(sources, clock);
    figuresSentMs = clock.monotonicMs();
    stopPolling = repeatAfter(clock, pollMs, poll);
  }

  function leave(listener: (event: AdminEvent) => void): void {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    stopPolling?.();
    stopPolling = undefined;
  }

  function goAway(caller: string): void {
    const left = (callers.get(caller) ?? 1) - 1;
    if (left > 0) callers.set(caller, left);
    else callers.delete(caller);
  }

  return {
    async *follow(signal, caller) {
      const others = caller === undefined ? 0 : (callers.get(caller) ?? 0);
      if (others >= maxOfCaller) {
        const detail = `${maxOfCaller} listeners of ${caller} are open; ask again from time to time`;
        throw new HttpError(429, { detail, headers: { 'retry-after': '10' } });
      }
      const waiting = new Set<AdminEvent>(['revisions', 'state']);
      let wake = () => {};
      const listener = (event: AdminEvent) => {
        waiting.add(event);
        wake();
      };
      const onAbort = () => wake();
      signal.addEventListener('abort', onAbort);
      join(listener);
      if (caller !== undefined) callers.set(caller, others + 1);
      try {
        while (!signal.aborted) {
          const [event] = waiting;
          if (event === undefined) {
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
            continue;
          }
          waiting.delete(event);
          yield event;
        }
      } finally {
        leave(listener);
        if (caller !== undefined) goAway(caller);
        signal.removeEventListener('abort', onAbort);
      }
    },
  };
}

/** A text for each event; the event is due when its text changes. */
function toFingerprints({ snapshots, workers, rollout }: EventSources, clock: Clock) {
  const { newest, inForce, trial, store } = snapshots.state();
  const states = workers
    .list()
    .map((worker) => toWorkerState(worker, snapshots.current(worker.node)));
  const revisions = JSON.stringify([
    newest && [newest.revision.id, newest.valid, newest.isHeldBack, newest.isWaiting],
    inForce?.revision.id,
    trial?.revision.id,
    // All outcomes: those of other control planes are inserted in chronological order.
    rollout.memory().outcomes,
    countEnded(snapshots.documents, clock.wallMs()),
  ]);
  const state = JSON.stringify([
    revisions,
    [store.reachable, store.lastError],
    rollout.state(),
    countWorkers(states),
  ]);
  return { revisions, state };
}
