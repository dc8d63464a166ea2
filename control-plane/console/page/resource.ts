// What a page shows of the API: read at once, and again whenever there is news. What was read last stays
// until there is another answer.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { type Answer, ask } from './api.ts';
import { type LiveEvent, listen } from './live.ts';

export interface Resource<Value> {
  /** The last good answer; undefined before the first. */
  readonly value: Value | undefined;
  /** Why the last question failed; undefined when it did not. */
  readonly trouble: Trouble | undefined;
  reload(): void;
}

export type Trouble = Extract<Answer<never>, { ok: false }>;

/** `path` undefined: nothing is asked. `on`: the events that say there is news. */
export function useResource<Value>(
  path: string | undefined,
  ...on: readonly LiveEvent[]
): Resource<Value> {
  const [value, setValue] = useState<Value | undefined>(undefined);
  const [trouble, setTrouble] = useState<Trouble | undefined>(undefined);
  const asking = useRef<AbortController | undefined>(undefined);
  /** There was news while an answer was on its way, which may not have it. */
  const isOld = useRef(false);

  const load = useCallback(async () => {
    if (path === undefined) return;
    isOld.current = true;
    // One question at a time: a slow answer is not asked for again before it is there.
    if (asking.current !== undefined) return;
    const controller = new AbortController();
    asking.current = controller;
    while (isOld.current) {
      isOld.current = false;
      const answer = await ask<Value>(path, { signal: controller.signal });
      if (controller.signal.aborted) return;
      setTrouble(answer.ok ? undefined : answer);
      if (answer.ok) setValue(answer.value);
    }
    asking.current = undefined;
  }, [path]);

  useEffect(() => {
    void load();
    const leave = listen((events) => {
      if (on.some((event) => events.has(event))) void load();
    });
    return () => {
      leave();
      asking.current?.abort();
      asking.current = undefined;
    };
  }, [load, on.join()]);

  return { value, trouble, reload: () => void load() };
}
