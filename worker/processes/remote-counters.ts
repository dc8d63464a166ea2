// Reads and resets counters when several processes decide: one of them asks the store, and all drop what they have
// cached.
import type { CounterAccess, CountersAnswer } from '../decision/counter-access.ts';
import type { FromProcess, ToProcess } from './message.ts';

export interface RemoteCounters extends CounterAccess {
  /** Called with a process's answer. */
  receive(message: FromProcess & { readonly kind: 'counters' }): void;
}

export interface RemoteCountersDeps {
  /** Sends to one process that serves; false if there is none. */
  readonly sendToOne: (message: ToProcess) => boolean;
  readonly sendToAll: (message: ToProcess) => void;
  /** Runs `task` after `ms`; the returned function cancels it. */
  readonly after: (ms: number, task: () => void) => () => void;
}

/** The time that a process may take beyond its own time limit. */
const graceMs = 200;

export function createRemoteCounters({
  sendToOne,
  sendToAll,
  after,
}: RemoteCountersDeps): RemoteCounters {
  const open = new Map<number, (answer: CountersAnswer) => void>();
  let lastId = 0;

  return {
    async ask(asked, reset, timeoutMs) {
      const id = ++lastId;
      const answered = Promise.withResolvers<CountersAnswer>();
      const fail = (problem: string) => answered.resolve({ ok: false, problem });
      open.set(id, answered.resolve);
      const cancel = after(timeoutMs + graceMs, () => fail('none of its processes has answered'));
      if (!sendToOne({ kind: 'counters', id, asked, reset, timeoutMs })) {
        fail('none of its processes serves');
      }
      const answer = await answered.promise;
      cancel();
      open.delete(id);
      if (reset && answer.ok) sendToAll({ kind: 'forget-counters', asked });
      return answer;
    },
    forget: (asked) => sendToAll({ kind: 'forget-counters', asked }),
    receive: ({ id, answer }) => open.get(id)?.(answer),
  };
}
