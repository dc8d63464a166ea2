// Answers for a failed store, in all modes but `error`: decides hits that the store did not count, and counts them in
// this process in the mode `local`. Stores decide how long to wait; worker/decision makes the answer.
import type { Clock } from '../../../shared/clock.ts';
import { formatDuration } from '../../../shared/duration.ts';
import type { AppError } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import { createRepeatedLog } from '../../../shared/repeated-log.ts';
import type { Metrics } from '../../metrics.ts';
import { MemoryStore } from '../memory-store.ts';
import type { CountMode, Hit } from '../store.ts';
import type { AnsweringMode } from './failure-mode.ts';

/** How often decisions without the store are logged. */
export const logIntervalMs = 5_000;
/**
 * A store that refuses hits or answers late without being unreachable counts as recovered when no decision has failed
 * for this long. Long enough that occasional failures do not reset the local counters.
 */
export const quietMs = 30_000;

export interface FailurePolicyDeps {
  readonly mode: AnsweringMode;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly log: Log;
  /** Whether no server of the store is known to be unreachable. When the last one recovers, `storeIsBack` is called. */
  readonly outagesAreOver: () => boolean;
}

export interface FailurePolicy {
  readonly mode: AnsweringMode;
  /**
   * `hits` are those of one decision that the store has not counted because of `failure`. Calls `done` once: in the
   * mode `local` with each hit's `after` set; with an error when this process cannot count them either.
   */
  answer(
    hits: readonly Hit[],
    mode: CountMode,
    failure: AppError,
    done: (error: AppError | undefined) => void,
  ): void;
  /** The store counts again: the local counters are dropped. */
  storeIsBack(): void;
  /** A line for the debug port. */
  describe(): string;
  /** Cancels all timers. */
  close(): void;
}

const whatHappened = {
  allow: 'a decision was allowed without the store',
  deny: 'a decision was denied without the store',
  local: 'a decision was counted in this process alone',
};

export function createFailurePolicy(deps: FailurePolicyDeps): FailurePolicy {
  const { mode, metrics, clock, log } = deps;
  const answered = metrics.counter(`ratelimit.failure_mode.${mode}`);
  const outages = createRepeatedLog({
    clock,
    intervalMs: logIntervalMs,
    write: (text) => log.error(`${whatHappened[mode]}: ${text}`),
  });
  let local: MemoryStore | undefined;
  let lastFailureMs = 0;
  let lastFailure: string | undefined;
  let cancelQuiet: (() => void) | undefined;
  return { mode, answer, storeIsBack, describe, close };

  function answer(
    hits: readonly Hit[],
    countMode: CountMode,
    failure: AppError,
    done: (error: AppError | undefined) => void,
  ): void {
    answered.add(1);
    outages.report(failure.message);
    lastFailureMs = clock.monotonicMs();
    lastFailure = failure.message;
    // One timer for all failures: while a store is unreachable each decision fails.
    cancelQuiet ??= clock.after(quietMs, endWhenQuiet);
    if (mode !== 'local' || hits.length === 0) {
      done(undefined);
      return;
    }
    // Counts as BACKEND_TYPE=memory does.
    local ??= new MemoryStore({ clock, log });
    local.count({
      hits,
      mode: countMode,
      // The decision's own deadline has often passed while waiting for the store; local counting never waits.
      deadlineMs: Number.POSITIVE_INFINITY,
      cancelled: false,
      settle: done,
    });
  }

  function endWhenQuiet(): void {
    const quietForMs = clock.monotonicMs() - lastFailureMs;
    if (quietForMs < quietMs) {
      cancelQuiet = clock.after(quietMs - quietForMs, endWhenQuiet);
      return;
    }
    cancelQuiet = undefined;
    if (deps.outagesAreOver()) end(`the store has not failed for ${quietMs / 1000} s`);
  }

  function storeIsBack(): void {
    end('the store counts again');
  }

  function end(why: string): void {
    close();
    local = undefined;
    const outage = outages.recover();
    if (outage !== undefined) {
      log.warning(
        `${why}; ${outage.times} decisions were answered without it (KVSTORE_FAILURE_MODE=${mode})`,
      );
    }
  }

  function close(): void {
    cancelQuiet?.();
    cancelQuiet = undefined;
  }

  function describe(): string {
    const counters = local === undefined ? '' : `, ${local.state().detail}`;
    const agoMs = Math.floor((clock.monotonicMs() - lastFailureMs) / 1000) * 1000;
    const last =
      lastFailure === undefined ? '' : `, the last ${formatDuration(agoMs)} ago: ${lastFailure}`;
    return `KVSTORE_FAILURE_MODE=${mode}: ${answered.value} decisions answered without the store${last}${counters}`;
  }
}
