// Delivers notifications to each target, one after another, with a bounded number of attempts and a bounded queue. No
// caller waits for a delivery.
import { setMaxListeners } from 'node:events';
import pRetry, { type Options as Retries } from 'p-retry';
import { errorText } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import type { Notification } from './notification.ts';
import type { NotifyTarget } from './targets.ts';

/** How the delivery of a notification to a target ended; `dropped`: the queue was full. */
export type Delivery = 'delivered' | 'failed' | 'dropped';

export interface Notifier {
  /** Returns at once. */
  notify(notification: Notification): void;
  /** Drops all notifications that have not been delivered. Idempotent. */
  stop(): void;
}

export interface NotifierDeps {
  readonly targets: readonly NotifyTarget[];
  readonly onEnd: (target: NotifyTarget['name'], delivery: Delivery) => void;
  readonly log: Log;
  /** Replaces `retries` in tests. */
  readonly retries?: Pick<Retries, keyof typeof retries>;
}

/** The most notifications queued for each target. */
export const maxWaiting = 100;
/** Delays of 1, 4, 16, 60 and 60 seconds. */
export const retries = { retries: 5, minTimeout: 1_000, factor: 4, maxTimeout: 60_000 };
export const answerMs = 10_000;
/** Statuses after which a target may accept a retry; after others it never will. */
const passing = (status: number) => status >= 500 || status === 408 || status === 429;

/** Why a target did not accept a notification, human-readable. */
class Refusal extends Error {
  readonly isFinal: boolean;

  /** `isFinal`: a retry is useless. */
  constructor(reason: string, isFinal: boolean) {
    super(reason);
    this.isFinal = isFinal;
  }
}

export function createNotifier({ targets, onEnd, log, ...deps }: NotifierDeps): Notifier {
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

    function deliver(notification: Notification): Promise<boolean> {
      const options: Retries = {
        ...(deps.retries ?? retries),
        signal: stopped.signal,
        onFailedAttempt: ({ error }) => noteRefusal(error.message),
        shouldRetry: ({ error }) => !(error instanceof Refusal && error.isFinal),
      };
      return pRetry(() => send(target, notification), options).then(
        () => {
          if (isAway) log.notice(`Notifications to ${target.shown} are accepted again`);
          isAway = false;
          return true;
        },
        // The reason has already been logged.
        () => false,
      );
    }

    /** Logs the reason once, until the target accepts a notification. */
    function noteRefusal(reason: string): void {
      if (!isAway) {
        log.warning(
          `Notifications to ${target.shown} fail (${reason}); giving up on each after ${retries.retries + 1} attempts`,
        );
      }
      isAway = true;
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

  /** Rejects with a Refusal. */
  async function send(target: NotifyTarget, notification: Notification): Promise<void> {
    try {
      const { url, headers, body } = await target.toRequest(notification);
      const signal = AbortSignal.any([stopped.signal, AbortSignal.timeout(answerMs)]);
      // A request signed for one address must not be sent to another.
      const init = { method: 'POST', headers, body, signal, redirect: 'manual' } as const;
      const response = await fetch(url, init);
      const { ok, status } = response;
      await response.body?.cancel();
      if (!ok) throw new Refusal(`it answers HTTP ${status}`, !passing(status));
    } catch (error) {
      throw error instanceof Refusal ? error : new Refusal(reasonOf(error), false);
    }
  }

  return {
    notify(notification) {
      for (const line of lines) line(notification);
    },
    stop: () => stopped.abort(),
  };
}

/** `fetch failed` contains no reason: its cause does. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return errorText(error);
  if (error.name === 'TimeoutError') return `no answer in ${answerMs / 1000} s`;
  return errorText(error.cause ?? error);
}
