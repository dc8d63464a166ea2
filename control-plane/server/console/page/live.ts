// Notifies pages of news: by server-sent events, or by a timer if these do not arrive (a proxy buffers them).
import { toRequest } from './api.ts';

/** The names of the events in the admin API (`GET /events`). */
export type LiveEvent = 'revisions' | 'state' | 'figures';
export type LiveState = 'live' | 'polling' | 'connecting';

type Listener = (events: ReadonlySet<LiveEvent>) => void;

const listeners = new Set<Listener>();
const stateListeners = new Set<(state: LiveState) => void>();
let state: LiveState = 'connecting';
let ending: AbortController | undefined;
/** Events that arrived while the page was hidden. */
let missed = new Set<LiveEvent>();

/** The server sends an event at least every five seconds. */
const silenceMs = 12_000;
const pollMs = 5_000;
/** A longer wait after silence: a proxy that buffers will continue to do so. */
const retryAfterSilenceMs = 60_000;

export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function listenToState(listener: (state: LiveState) => void): () => void {
  stateListeners.add(listener);
  listener(state);
  return () => stateListeners.delete(listener);
}

/** Starts, or restarts with another token. */
export function startLive(): void {
  ending?.abort();
  ending = new AbortController();
  const { signal } = ending;
  const poll = setInterval(() => {
    if (state !== 'live') notify('revisions', 'state', 'figures');
  }, pollMs);
  signal.addEventListener('abort', () => clearInterval(poll));
  void follow(signal);
}

export function stopLive(): void {
  ending?.abort();
}

async function follow(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const end = await followOnce(signal);
    if (signal.aborted) return;
    setState('polling');
    await pause(end === 'silent' ? retryAfterSilenceMs : pollMs, signal);
  }
}

async function followOnce(signal: AbortSignal): Promise<'silent' | 'ended'> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), silenceMs);
  try {
    const either = AbortSignal.any([signal, silence.signal]);
    const response = await fetch(toRequest('events', { signal: either }));
    if (!response.ok || response.body === null) return 'ended';
    let text = '';
    const decoder = new TextDecoder();
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), silenceMs);
      setState('live');
      text += decoder.decode(chunk, { stream: true });
      const blocks = text.split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) {
        const [, name] = /^event: ?(revisions|state|figures)$/m.exec(block) ?? [];
        if (name !== undefined) notify(name as LiveEvent);
      }
    }
    return 'ended';
  } catch {
    return silence.signal.aborted ? 'silent' : 'ended';
  } finally {
    clearTimeout(timer);
  }
}

function notify(...events: LiveEvent[]): void {
  if (document.hidden) {
    missed = new Set([...missed, ...events]);
    return;
  }
  for (const listener of listeners) listener(new Set(events));
}

document.addEventListener('visibilitychange', () => {
  if (document.hidden || missed.size === 0) return;
  const events = missed;
  missed = new Set();
  for (const listener of listeners) listener(events);
});

function setState(next: LiveState): void {
  if (next === state) return;
  state = next;
  for (const listener of stateListeners) listener(state);
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
