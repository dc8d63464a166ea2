// The time that a method has (behaviour: time-of-a-method).
import type { Controller, Handler } from './controller.ts';
import { HttpError } from './errors.ts';
import type { LazyRequest } from './request/request.ts';

/** The same method; when its time is over the request's signal is aborted, and it rejects with 503. What comes later is
 * dropped. */
export function withTimeLimit(handler: Handler, timeMs: number): Handler {
  if (timeMs === Number.POSITIVE_INFINITY) return handler;
  return function (this: Controller, ...args: unknown[]) {
    const value = handler.apply(this, args);
    if (typeof value !== 'object' || value === null || !('then' in value)) return value;
    const over = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      over.reject(new HttpError(503, { cause: new Error(`no answer within ${timeMs} ms`) }));
      (this.request as LazyRequest).end();
    }, timeMs);
    return Promise.race([value, over.promise]).finally(() => clearTimeout(timer));
  };
}
