// What a page shows of the API: read at once, and again whenever there is news. What was read last stays
// while an answer fails.
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

/** `path` undefined: nothing is asked. `on`: the event that says there is news. */
export function useResource<Value>(path: string | undefined, on: LiveEvent): Resource<Value> {
  const [state, setState] = useState<{
    readonly path: string | undefined;
    readonly value: Value | undefined;
    readonly trouble: Trouble | undefined;
  }>({ path, value: undefined, trouble: undefined });
  const asking = useRef<AbortController | undefined>(undefined);

  const load = useCallback(async () => {
    // One question at a time: a slow answer is not asked for again before it is there.
    if (path === undefined || asking.current !== undefined) return;
    const controller = new AbortController();
    asking.current = controller;
    const answer = await ask<Value>(path, { signal: controller.signal });
    if (controller.signal.aborted) return;
    asking.current = undefined;
    setState((before) => {
      const last = before.path === path ? before.value : undefined;
      if (answer.ok) return { path, value: answer.value, trouble: undefined };
      return { path, value: last, trouble: answer };
    });
  }, [path]);

  useEffect(() => {
    void load();
    const leave = listen((events) => {
      if (events.has(on)) void load();
    });
    return () => {
      leave();
      asking.current?.abort();
      asking.current = undefined;
    };
  }, [load, on]);

  const isCurrent = state.path === path;
  return {
    value: isCurrent ? state.value : undefined,
    trouble: isCurrent ? state.trouble : undefined,
    reload: () => void load(),
  };
}
