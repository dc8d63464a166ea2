// A store that takes too long for its first answer.
import type { Clock } from '../../shared/clock.ts';
import { AppError } from '../../shared/errors.ts';
import type { Log } from '../../shared/log.ts';
import type { ConfigStore } from './store.ts';

const firstReadMs = 5_000;
/** Silence of more than two seconds looks like a program that hangs. */
const firstReadSaidMs = 2_000;

/** A hanging store must not keep the last good revision from the workers: reading goes on, and its result
 * arrives like any other change. */
export function withPatience(
  store: ConfigStore,
  { clock, log }: { clock: Clock; log: Log },
): ConfigStore {
  return {
    ...store,
    async read() {
      const late = Promise.withResolvers<never>();
      const seconds = firstReadMs / 1000;
      const cancelSaying = clock.after(firstReadSaidMs, () => {
        log.info(`Reading ${store.description} takes its time; waiting for it`);
      });
      const cancel = clock.after(firstReadMs, () => {
        late.reject(new AppError('store', `no answer within ${seconds}s, it is still asked`));
      });
      try {
        return await Promise.race([store.read(), late.promise]);
      } finally {
        cancelSaying();
        cancel();
      }
    },
  };
}
