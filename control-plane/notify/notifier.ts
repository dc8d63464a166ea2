// Delivers notifications: one after the other to each target, with bounded tries and a bounded line. Nobody waits for it.
import { setMaxListeners } from 'node:events';
import { backoffDelayMs } from '../../shared/backoff.ts';
import type { Clock } from '../../shared/clock.ts';
import { errorText } from '../../shared/errors.ts';
import type { Log } from '../../shared/log.ts';
import type { Notification } from './notification.ts';
import type { NotifyTarget } from './targets.ts';

/** How a notification ended at a target: `dropped` had no place in the line. */
export type Delivery = 'delivered' | 'failed' | 'dropped';

export interface Notifier {
  /** Returns at once. */
  tell(notification: Notification): void;
  /** What has not been delivered is not. Idempotent. */
  stop(): void;
}

export interface NotifierDeps {
  readonly targets: readonly NotifyTarget[];
  readonly onEnd: (target: NotifyTarget['name'], delivery: Delivery) => void;
  readonly log: Log;
  readonly clock: Clock;
}

/** Of each target. */
export const maxWaiting = 100;
export const tries = 6;
const answerMs = 10_000;
/** 1, 4, 16, 60 and 60 seconds. */
const backoff = { initialMs: 1_000, maxMs: 60_000, multiplier: 4, random: undefined };
/** Statuses of a target that may take it later; with others it never will. */
const passing = (status: number) => status >= 500 || status === 408 || status === 429;

type Attempt =
  | { readonly ok: true }
  /** `isFinal`: another try is of no use. */
  | { readonly ok: false; readonly reason: string; readonly isFinal: boolean };

export function createNotifier({ targets, onEnd, log, clock }: NotifierDeps): Notifier {
  const stopped = new AbortController();
  setMaxListeners(0, stopped.signal);
  const lines = targets.map(createLine);

  function createLine(target: NotifyTarget): (notification: Notification) => void {
    const waiting: Notification[] = [];
    let isBusy = false;
    let isAway = false;

    async function work(): Promise<void> {
      for (;;) {
        const notification = waiting.shift();
        if (notification === undefined || stopped.signal.aborted) return;
        const isDelivered = await deliver(notification);
        if (!stopped.signal.aborted) onEnd(target.name, isDelivered ? 'delivered' : 'failed');
      }
    }

    async function deliver(notification: Notification): Promise<boolean> {
      for (let failures = 0; failures < tries; failures++) {
        if (failures > 0) await pause(backoffDelayMs(backoff, failures - 1));
        if (stopped.signal.aborted) return false;
        const attempt = await send(target, notification);
        if (stopped.signal.aborted) return false;
        note(attempt);
        if (attempt.ok) return true;
        if (attempt.isFinal) return false;
      }
      return false;
    }

    /** Said once, and once when it is over. */
    function note(attempt: Attempt): void {
      if (!attempt.ok && !isAway) {
        log.warning(
          `Notifications: ${target.shown} takes none (${attempt.reason}); each is tried ${tries} times at most`,
        );
      } else if (attempt.ok && isAway) {
        log.notice(`Notifications: ${target.shown} takes them again`);
      }
      isAway = !attempt.ok;
    }

    return (notification) => {
      waiting.push(notification);
      if (waiting.length > maxWaiting) {
        waiting.shift();
        onEnd(target.name, 'dropped');
      }
      if (isBusy) return;
      isBusy = true;
      void work().finally(() => {
        isBusy = false;
      });
    };
  }

  async function send(target: NotifyTarget, notification: Notification): Promise<Attempt> {
    try {
      const { url, headers, body } = await target.toRequest(notification);
      const signal = AbortSignal.any([stopped.signal, AbortSignal.timeout(answerMs)]);
      // What is signed for one place is sent to no other.
      const init = { method: 'POST', headers, body, signal, redirect: 'manual' } as const;
      const response = await fetch(url, init);
      const { ok, status } = response;
      await response.body?.cancel();
      if (ok) return { ok };
      return { ok, reason: `it answers HTTP ${status}`, isFinal: !passing(status) };
    } catch (error) {
      return { ok: false, reason: reasonOf(error), isFinal: false };
    }
  }

  function pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = clock.after(ms, resolve);
    const end = () => {
      cancel();
      resolve();
    };
    stopped.signal.addEventListener('abort', end, { once: true });
    return promise.finally(() => stopped.signal.removeEventListener('abort', end));
  }

  return {
    tell(notification) {
      for (const line of lines) line(notification);
    },
    stop: () => stopped.abort(),
  };
}

/** `fetch failed` says nothing: its cause does. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return errorText(error);
  if (error.name === 'TimeoutError') return `it gives no answer in ${answerMs / 1000} s`;
  return errorText(error.cause ?? error);
}
