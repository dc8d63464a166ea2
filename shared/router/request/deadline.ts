// The time that a method has: it is told when it is over, and its caller is answered (behaviour:
// time-of-a-method).
import { HttpError } from '../errors.ts';

/** The same value; rejects with 503 when the time is over, after calling `onOver`. What comes later is dropped. */
export function withinTime<Value>(
  value: PromiseLike<Value>,
  timeMs: number,
  onOver: () => void,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new HttpError(503, { cause: new Error(`no answer within ${timeMs} ms`) }));
      onOver();
    }, timeMs);
    value.then(resolve, reject).then(
      () => clearTimeout(timer),
      () => clearTimeout(timer),
    );
  });
}
