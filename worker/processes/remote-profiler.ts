// Requests profiles from a process that decides.
import type { ProfileResult, Profiler } from '../listen/profiler.ts';
import type { FromProcess, ToProcess } from './message.ts';

export interface RemoteProfiler extends Profiler {
  /** Called with the process's answer. */
  receive(message: FromProcess & { readonly kind: 'profile' }): void;
  /** Call it when the process has ended. */
  end(): void;
}

/** `send` returns false without a process. */
export function createRemoteProfiler(send: (message: ToProcess) => boolean): RemoteProfiler {
  const open = new Map<number, (result: ProfileResult) => void>();
  let lastId = 0;

  function ask(of: 'cpu' | 'heap', durationMs: number, signal: AbortSignal) {
    const id = ++lastId;
    return new Promise<ProfileResult>((resolve) => {
      if (!send({ kind: 'profile', id, of, durationMs })) {
        resolve('gone');
        return;
      }
      const giveUp = () => send({ kind: 'end-profile', id });
      signal.addEventListener('abort', giveUp, { once: true });
      open.set(id, (result) => {
        open.delete(id);
        signal.removeEventListener('abort', giveUp);
        resolve(result);
      });
    });
  }

  return {
    cpu: (durationMs, signal) => ask('cpu', durationMs, signal),
    heap: (durationMs, signal) => ask('heap', durationMs, signal),
    receive({ id, result }) {
      open.get(id)?.(result === 'busy' ? result : Buffer.from(result));
    },
    end() {
      for (const answer of open.values()) answer('gone');
    },
  };
}
