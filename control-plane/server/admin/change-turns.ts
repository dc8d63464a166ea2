// Changes of the rules by this process are made one after the other: each is planned on the files that the one before
// has left, so that those that do not contradict each other all succeed.
import type { Clock } from '../../../shared/clock.ts';
import { HttpError } from '../../../shared/router/index.ts';

export interface ChangeTurns {
  /** Makes the change when those before it have ended, whether or not they succeeded. Rejects with an HttpError 409
   * where too many wait, or its turn does not come in time: it is not made then. */
  take<Result>(make: () => Promise<Result>): Promise<Result>;
}

const maxWaiting = 100;
const maxWaitMs = 60_000;

export function createChangeTurns(clock: Pick<Clock, 'after'>): ChangeTurns {
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  return {
    take(make) {
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
