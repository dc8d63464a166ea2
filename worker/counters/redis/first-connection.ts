// Waits at the start for a store's first answer, with growing pauses (behaviour: first-connection).

import type { Clock } from '../../../shared/clock.ts';
import { AppError, errorText } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import { createRepeatedLog } from '../../../shared/repeated-log.ts';
import { unlessAborted } from '../../../shared/unless-aborted.ts';
import { backoffDelayMs } from '../../backoff.ts';
import type { DescribeRemedy } from './remedies.ts';

/** The least time between log lines when the configured waits are very short. */
const failureIntervalMs = 900;

export interface StartupOptions {
  readonly initialIntervalMs: number;
  readonly maxIntervalMs: number;
  /** 0: no limit. */
  readonly maxElapsedMs: number;
}

export interface FirstConnectionDeps {
  /** The name in texts, such as `key-value store 127.0.0.1:6379`. */
  readonly name: string;
  /** The name of the address's setting, for messages. */
  readonly addressSetting: string;
  readonly describeRemedy: DescribeRemedy;
  readonly startup: StartupOptions;
  readonly tryToConnect: (signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  /** Jitter: returns a number from 0 to below 1, for each wait except the first. */
  readonly random: () => number;
  readonly log: Log;
}

/** Rejects when `signal` aborts or the time limit of the start has passed. */
export async function awaitFirstConnection(
  deps: FirstConnectionDeps,
  signal: AbortSignal,
): Promise<void> {
  const { name, addressSetting, describeRemedy, startup, clock, random, log } = deps;
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
  // One step behind, because backoff has no jitter there: the first wait is exactly the configured one.
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
    const hint = describeRemedy(failure) ?? `check ${addressSetting}`;
    failures.report(`${name}: ${failure}; next attempt in ${delayMs / 1000} s (${hint})`);
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
