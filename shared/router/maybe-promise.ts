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

/** Passes errors to `onError`, whether thrown synchronously or later. */
export function settle<Value>(
  run: () => MaybePromise<Value>,
  onError: (error: unknown) => MaybePromise<Value>,
): MaybePromise<Value> {
  try {
    const value = run();
    return value instanceof Promise ? value.catch(onError) : value;
  } catch (error) {
    return onError(error);
  }
}
