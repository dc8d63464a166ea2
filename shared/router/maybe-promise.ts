// Steps that may have to wait: a value that is available is passed on synchronously, since each promise in the path of
// a request costs more than most steps. `about` is what all steps of a request need: a function made for each request
// costs more than a step, too.

export type MaybePromise<Value> = Value | Promise<Value>;

export type Step<About, Value, Next> = (about: About, value: Value) => MaybePromise<Next>;

/** Calls `next` with the value, or with what the promise resolves to. */
export function then<About, Value, Next>(
  about: About,
  value: MaybePromise<Value>,
  next: Step<About, Value, Next>,
): MaybePromise<Next> {
  return value instanceof Promise ? settleLater(about, value, next) : next(about, value);
}

/** Converts promises of other libraries to the platform's. */
export function toNative<Value>(value: Value | PromiseLike<Value>): MaybePromise<Value> {
  const isOther =
    typeof value === 'object' && value !== null && 'then' in value && !(value instanceof Promise);
  return isOther ? Promise.resolve(value) : (value as MaybePromise<Value>);
}

/** Calls `next` with what `run` returns or resolves to; passes errors of both to `onError`, with one promise for each
 * wait. */
export function settle<About, Value, Next>(
  about: About,
  run: (about: About) => MaybePromise<Value>,
  next: Step<About, Value, Next>,
  onError: Step<About, unknown, Next>,
): MaybePromise<Next> {
  try {
    const value = run(about);
    if (value instanceof Promise) return settleLater(about, value, next, onError);
    const result = next(about, value);
    return result instanceof Promise ? settleLater(about, result, pass, onError) : result;
  } catch (error) {
    return onError(about, error);
  }
}

async function settleLater<About, Value, Next>(
  about: About,
  value: Promise<Value>,
  next: Step<About, Value, Next>,
  onError?: Step<About, unknown, Next>,
): Promise<Next> {
  try {
    const result = next(about, await value);
    return result instanceof Promise ? await result : result;
  } catch (error) {
    if (onError === undefined) throw error;
    return onError(about, error);
  }
}

function pass<Value>(_about: unknown, value: Value): Value {
  return value;
}
