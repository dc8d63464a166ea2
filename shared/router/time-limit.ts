// The time limit of a method (behaviour: time-of-a-method).
import { HttpError } from './errors.ts';
import type { MaybePromise } from './maybe-promise.ts';
import type { LazyRequest } from './request/request.ts';

/** When the limit has passed, the request's signal is aborted, and the promise rejects with 503. */
export function limitTime<Value>(
  value: MaybePromise<Value>,
  timeMs: number,
  request: LazyRequest,
  onLate?: (value: Value) => void,
): MaybePromise<Value> {
  if (timeMs === Number.POSITIVE_INFINITY || !(value instanceof Promise)) return value;
  const over = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    over.reject(new HttpError(503, { cause: new Error(`no answer within ${timeMs} ms`) }));
    value.then(onLate, () => {});
    request.end();
  }, timeMs);
  return Promise.race([value, over.promise]).finally(() => clearTimeout(timer));
}
