// A wait that an AbortSignal ends. The awaited work continues: its owner ends it.

/** `promise`, or a rejection with the signal's reason, whichever comes first. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  return Promise.race([promise, aborted.promise]).finally(() =>
    signal.removeEventListener('abort', onAbort),
  );
}
