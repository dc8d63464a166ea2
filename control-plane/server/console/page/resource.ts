// Reads an answer of the API for a page: at once, and again whenever there is news. The last answer is kept until a
// newer one arrives, even while other pages are open.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { type Answer, ask } from './api.ts';
import { type LiveEvent, listen } from './live.ts';

export interface Resource<Value> {
  /** The last good answer; undefined before the first. */
  readonly value: Value | undefined;
  /** When that answer arrived, in wall time; 0 before the first. */
  readonly atMs: number;
  /** Whether `value` answers this question, rather than the previous one, whose empty answer would be misleading. */
  readonly isOwn: boolean;
  /** Why the last request failed; undefined if it succeeded. */
  readonly problem: Failure | undefined;
  reload(): void;
}

export type Failure = Extract<Answer<never>, { ok: false }>;

/** A path to read, or a request with a body or with a time in its path. In the latter case `name` identifies the
 * question: the answer remains valid for the same question a minute later. */
export type Question =
  | string
  | { readonly path: string; readonly body: unknown }
  | { readonly path: string; readonly name: string };

interface Known {
  readonly key: string;
  readonly value: unknown;
  readonly atMs: number;
}

/** The last good answers of this tab, the most recent at the end. */
const known = new Map<string, Known>();
const mostKnown = 50;

/** Hides the previous user's answers from the next user of the same tab. */
export function forgetAnswers(): void {
  known.clear();
}

function remember(answer: Known): void {
  known.delete(answer.key);
  known.set(answer.key, answer);
  const [oldest] = known.keys();
  if (known.size > mostKnown && oldest !== undefined) known.delete(oldest);
}

/** `question` undefined: sends no request. `on`: the events that announce news. A question without an answer is also
 * repeated every five seconds, with the figures; a refused one would be refused again. */
export function useResource<Value>(
  question: Question | undefined,
  ...on: readonly LiveEvent[]
): Resource<Value> {
  const asked = JSON.stringify(question);
  const key = typeof question === 'object' && 'name' in question ? question.name : asked;
  const [answer, setAnswer] = useState<Known | undefined>(undefined);
  const [failure, setFailure] = useState<{ key: string; problem: Failure } | undefined>(undefined);
  const asking = useRef<AbortController | undefined>(undefined);
  /** News arrived during a request, whose answer may not include it. */
  const isOld = useRef(false);
  const isUnanswered = useRef(false);

  const load = useCallback(async () => {
    if (question === undefined || key === undefined) return;
    isOld.current = true;
    // One request at a time: it is not repeated while its answer is pending.
    if (asking.current !== undefined) return;
    const controller = new AbortController();
    asking.current = controller;
    const { signal } = controller;
    while (isOld.current) {
      isOld.current = false;
      const next = await toAnswer<Value>(question, signal);
      if (signal.aborted) return;
      isUnanswered.current = !next.ok && (next.status === 0 || next.status >= 500);
      setFailure(next.ok ? undefined : { key, problem: next });
      if (!next.ok) continue;
      const given = { key, value: next.value, atMs: Date.now() };
      remember(given);
      setAnswer(given);
    }
    asking.current = undefined;
  }, [asked]);

  useEffect(() => {
    void load();
    const leave = listen((events) => {
      const isDue = isUnanswered.current && events.has('figures');
      if (isDue || on.some((event) => events.has(event))) void load();
    });
    return () => {
      leave();
      asking.current?.abort();
      asking.current = undefined;
    };
  }, [load, on.join()]);

  const problem = failure !== undefined && failure.key === key ? failure.problem : undefined;
  const own = answer?.key === key || key === undefined ? answer : known.get(key);
  // The answer to the previous question is shown until this one is answered.
  const shown = own ?? (problem === undefined ? answer : undefined);
  return {
    value: shown?.value as Value | undefined,
    atMs: shown?.atMs ?? 0,
    isOwn: own !== undefined,
    problem,
    reload: () => void load(),
  };
}

function toAnswer<Value>(question: Question, signal: AbortSignal): Promise<Answer<Value>> {
  if (typeof question === 'string') return ask<Value>(question, { signal });
  const { path } = question;
  return 'body' in question
    ? ask<Value>(path, { method: 'POST', body: question.body, signal })
    : ask<Value>(path, { signal });
}
