// Waits at start for a store's first answer, with growing pauses (behaviour: first-connection).
import { backoffDelayMs } from '../../../shared/backoff.ts';
import type { Clock } from '../../../shared/clock.ts';
import { AppError, errorText } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import { createRepeatedLog } from '../../../shared/repeated-log.ts';
import { unlessAborted } from '../../../shared/unless-aborted.ts';

/** The attempts themselves are spaced; this bounds the lines when they are set close. */
const failureIntervalMs = 900;

export interface StartupOptions {
  readonly initialIntervalMs: number;
  readonly maxIntervalMs: number;
  /** 0: for ever. */
  readonly maxElapsedMs: number;
}

export interface FirstConnectionDeps {
  /** For texts, such as `key-value store 127.0.0.1:6379`. */
  readonly name: string;
  /** The name of the setting that the address comes from, for texts. */
  readonly addressSetting: string;
  readonly startup: StartupOptions;
  readonly tryToConnect: (signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  /** A number from 0 to below 1, for each wait but the first. */
  readonly random: () => number;
  readonly log: Log;
}

/** Rejects when `signal` aborts or the time for the start is over. */
export async function awaitFirstConnection(
  deps: FirstConnectionDeps,
  signal: AbortSignal,
): Promise<void> {
  const { name, addressSetting, startup, clock, random, log } = deps;
  const failures = createRepeatedLog({
    clock,
    intervalMs: failureIntervalMs,
    write: (text) => log.warning(text),
  });
  const stopped = () => new AppError('cannot_start', `stopped while waiting for ${name}`);
  const startMs = clock.monotonicMs();
  const backoff = {
    initialMs: startup.initialIntervalMs,
    maxMs: startup.maxIntervalMs,
    multiplier: 2,
    random,
  };
  // One step behind, where there is nothing to vary: the first wait is just the one that was set.
  let step = -1;
  for (;;) {
    const failure = await deps.tryToConnect(signal).then(() => undefined, errorText);
    if (failure === undefined) break;
    if (signal.aborted) throw stopped();
    if (startup.maxElapsedMs > 0 && clock.monotonicMs() - startMs >= startup.maxElapsedMs) {
      const seconds = startup.maxElapsedMs / 1000;
      throw new AppError('cannot_start', `${name} did not answer within ${seconds} s: ${failure}`);
    }
    const delayMs = Math.round(backoffDelayMs(backoff, step++));
    failures.report(
      `${name}: ${failure}; next attempt in ${delayMs / 1000} s (${addressSetting} says where it is)`,
    );
    const due = Promise.withResolvers<void>();
    const cancel = clock.after(delayMs, due.resolve);
    await unlessAborted(due.promise, signal).catch(() => {
      cancel();
      throw stopped();
    });
  }
  const waited = failures.recover();
  if (waited !== undefined) log.notice(`${name}: answers, after ${waited.seconds.toFixed(1)} s`);
}
