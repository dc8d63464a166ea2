// The time limit of a method (behaviour: time-of-a-method).
import { endUnsent } from './answer/stream.ts';
import { HttpError } from './errors.ts';
import type { MaybePromise } from './maybe-promise.ts';
import type { LazyRequest, ResponseLike } from './request/request.ts';

/** When the limit has passed, the request's signal is aborted, and the promise rejects with 503. A later answer is
 * ended. */
export function limitTime(
  answer: MaybePromise<ResponseLike>,
  timeMs: number,
  request: LazyRequest,
): MaybePromise<ResponseLike> {
  if (timeMs === Number.POSITIVE_INFINITY || !(answer instanceof Promise)) return answer;
  const over = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    over.reject(new HttpError(503, { cause: new Error(`no answer within ${timeMs} ms`) }));
    answer.then(endUnsent, () => {});
    request.end();
  }, timeMs);
  return Promise.race([answer, over.promise]).finally(() => clearTimeout(timer));
}
