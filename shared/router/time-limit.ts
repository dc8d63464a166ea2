// The time that a method has (behaviour: time-of-a-method).
import { endUnsent } from './answer/stream.ts';
import { HttpError } from './errors.ts';
import type { MaybePromise } from './maybe-promise.ts';
import type { LazyRequest, ResponseLike } from './request/request.ts';

/** When the time is over the request's signal is aborted, and it rejects with 503. An answer that comes later is ended. */
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
