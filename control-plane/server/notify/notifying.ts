// Sends outcomes of revisions to the targets in the settings.
import type { Clock } from '../../../shared/clock.ts';
import { errorText } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import type { Examine } from '../admin/examination.ts';
import type { Outcomes } from '../record/outcomes.ts';
import type { NotifySettings } from '../settings/notify.ts';
import type { ConfigStore } from '../store/store.ts';
import { toNotification } from './notification.ts';
import { createNotifier, type NotifierDeps } from './notifier.ts';
import { toTargets } from './targets.ts';

export interface Notifying {
  /** Rejects with an AppError where a secret or a token cannot be read. */
  check(): Promise<void>;
  /** Sends the newest of these outcomes. Returns at once. */
  readonly notify: (outcomes: Outcomes) => void;
  stop(): void;
}

export interface NotifyingDeps extends Pick<NotifierDeps, 'onEnd'> {
  readonly settings: NotifySettings;
  readonly store: Pick<ConfigStore, 'readRevision'>;
  readonly examine: Examine;
  readonly repositoryFolder: string;
  readonly log: Log;
  readonly clock: Clock;
}

/** Undefined if no target is set. */
export function createNotifying(deps: NotifyingDeps): Notifying | undefined {
  const { settings, log } = deps;
  const targets = toTargets(settings);
  if (targets.length === 0) return undefined;
  const notifier = createNotifier({ ...deps, targets });
  /** In order: the store may take longer for one outcome than for the next. */
  let making: Promise<void> = Promise.resolve();
  return {
    async check() {
      for (const target of targets) await target.check();
    },
    notify(outcomes) {
      making = making
        .then(() => toNotification({ ...deps, publicUrl: settings.publicUrl }, outcomes))
        .then(
          (notification) => notification && notifier.notify(notification),
          (error: unknown) => log.warning(`A notification cannot be made: ${errorText(error)}`),
        );
    },
    stop: notifier.stop,
  };
}
