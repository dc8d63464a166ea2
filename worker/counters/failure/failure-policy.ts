// Answers for the store when it fails, in the modes other than `error`: says how the hits that it did
// not count are to be judged, counting them here first in the mode `local`. How long a failing store is
// waited for is left to the stores, what the caller is told to the decision.
import type { Clock } from '../../../shared/clock.ts';
import type { AppError } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import { createRepeatedLog } from '../../../shared/repeated-log.ts';
import type { Metrics } from '../../metrics.ts';
import { createMemoryStore, type MemoryStore } from '../memory-store.ts';
import type { CountMode, Hit } from '../store.ts';
import type { AnsweringMode } from './failure-mode.ts';

/** Decisions that are answered without the store are said again this often. */
const sayIntervalMs = 5_000;
/** What refuses hits or answers late without ever being away is taken to count again when no decision
 * has failed for so long. Long enough for hits that come now and then to be counted on. */
const quietMs = 30_000;

export interface FailurePolicyDeps {
  readonly mode: AnsweringMode;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly log: Log;
  /** No server of the store is known to be away. When the last one is back, `storeIsBack` is called. */
  readonly outagesAreOver: () => boolean;
}

export interface FailurePolicy {
  readonly mode: AnsweringMode;
  /**
   * `hits` are those of one decision that the store has not counted, for the reason `failure`. Calls
   * `done` once, in the mode `local` with each hit's `after` set; with an error when this process cannot
   * count them either.
   */
  answer(
    hits: readonly Hit[],
    mode: CountMode,
    failure: AppError,
    done: (error: AppError | undefined) => void,
  ): void;
  /** The store counts again: what was counted here is thrown away. */
  storeIsBack(): void;
  /** For the debug port. */
  describe(): string;
  /** Leaves no timer behind. */
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
  const said = createRepeatedLog({
    clock,
    intervalMs: sayIntervalMs,
    write: (text) => log.error(`${whatHappened[mode]}: ${text}`),
  });
  let local: MemoryStore | undefined;
  let lastFailureMs = 0;
  let cancelQuiet: (() => void) | undefined;
  return { mode, answer, storeIsBack, describe, close };

  function answer(
    hits: readonly Hit[],
    countMode: CountMode,
    failure: AppError,
    done: (error: AppError | undefined) => void,
  ): void {
    answered.add(1);
    said.report(failure.message);
    lastFailureMs = clock.monotonicMs();
    // One timer for all failures: while a store is away each decision is one.
    cancelQuiet ??= clock.after(quietMs, endWhenQuiet);
    if (mode !== 'local' || hits.length === 0) {
      done(undefined);
      return;
    }
    local ??= createMemoryStore({ clock, log });
    local.count({
      hits,
      mode: countMode,
      // The decision's own has often passed while the store was waited for; here nobody waits.
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
    const outage = said.recover();
    if (outage !== undefined) {
      log.warning(
        `${why}; without it ${outage.times} decisions were answered (KVSTORE_FAILURE_MODE=${mode})`,
      );
    }
  }

  function close(): void {
    cancelQuiet?.();
    cancelQuiet = undefined;
  }

  function describe(): string {
    const counters = local === undefined ? '' : `, ${local.state().detail}`;
    return `KVSTORE_FAILURE_MODE=${mode}: ${answered.value} decisions answered without the store${counters}`;
  }
}
