// Serializes changes of the rules by this process: each is planned on the files that the previous one left, so that
// changes without conflicts all succeed.
import type { Clock } from '../../../shared/clock.ts';
import { HttpError } from '../../../shared/router/index.ts';

export interface ChangeTurns {
  /** Makes the change when the earlier ones have ended, whether or not they succeeded. Rejects with an HttpError 409 if
   * too many wait, or if its turn does not come in time: then the change is not made. */
  queue<Result>(make: () => Promise<Result>): Promise<Result>;
}

const maxWaiting = 100;
const maxWaitMs = 60_000;

export function createChangeTurns(clock: Pick<Clock, 'after'>): ChangeTurns {
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  return {
    queue(make) {
      if (waiting === maxWaiting) return Promise.reject(busy());
      waiting++;
      const late = Promise.withResolvers<never>();
      let isLate = false;
      const cancel = clock.after(maxWaitMs, () => {
        isLate = true;
        late.reject(busy());
      });
      const made = last.then(() => {
        waiting--;
        cancel();
        if (isLate) throw busy();
        return make();
      });
      last = made.catch(() => {});
      return Promise.race([made, late.promise]);
    },
  };
}

export function busy(): HttpError {
  return new HttpError(409, {
    detail: 'others are changing the rules at the same time; try again',
  });
}
