// Steps that may have to wait: a value that is available is passed on synchronously, since each promise in the path of
// a request costs more than most steps.

export type MaybePromise<Value> = Value | Promise<Value>;

/** Calls `next` with the value, or with what the promise resolves to. */
export function then<Value, Next>(
  value: MaybePromise<Value>,
  next: (value: Value) => MaybePromise<Next>,
): MaybePromise<Next> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** Converts promises of other libraries to the platform's. */
export function toNative<Value>(value: Value | PromiseLike<Value>): MaybePromise<Value> {
  const isOther =
    typeof value === 'object' && value !== null && 'then' in value && !(value instanceof Promise);
  return isOther ? Promise.resolve(value) : (value as MaybePromise<Value>);
}

/** Calls `next` with what `run` returns or resolves to; passes errors of both to `onError`, with one promise for each
 * wait. */
export function settle<Value, Next>(
  run: () => MaybePromise<Value>,
  next: (value: Value) => MaybePromise<Next>,
  onError: (error: unknown) => MaybePromise<Next>,
): MaybePromise<Next> {
  const proceed = (value: Value): MaybePromise<Next> => {
    let result: MaybePromise<Next>;
    try {
      result = next(value);
    } catch (error) {
      return onError(error);
    }
    return result instanceof Promise ? result.then(undefined, onError) : result;
  };
  let value: MaybePromise<Value>;
  try {
    value = run();
  } catch (error) {
    return onError(error);
  }
  return value instanceof Promise ? value.then(proceed, onError) : proceed(value);
}
