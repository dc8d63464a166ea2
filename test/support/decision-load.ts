// A steady stream of calls over several workers, with what became of each, for tests that break what
// the workers depend on.
import type { CallAnswer, WorkerCaller } from './worker-caller.ts';

export interface Decision {
  readonly caller: WorkerCaller;
  readonly answer: CallAnswer;
  /** On performance.now(). */
  readonly askedMs: number;
  readonly answeredMs: number;
}

export interface DecisionLoad {
  /** In the order of the answers. */
  readonly decisions: readonly Decision[];
  /** Whom to ask from now on, in turn. */
  callers: readonly WorkerCaller[];
  /** Ends the stream; resolves when every call is answered. */
  stop(): Promise<void>;
}

const everyMs = 10;

/** One call every few milliseconds; `ask` gets the number of the round over all callers. */
export function startDecisionLoad(
  callers: readonly WorkerCaller[],
  ask: (caller: WorkerCaller, round: number) => Promise<CallAnswer>,
): DecisionLoad {
  const decisions: Decision[] = [];
  const open = new Set<Promise<void>>();
  let sent = 0;
  const load = {
    decisions,
    callers,
    async stop() {
      clearInterval(timer);
      await Promise.all(open);
    },
  };
  const timer = setInterval(() => {
    const { length } = load.callers;
    const caller = load.callers[sent % length];
    if (caller === undefined) return;
    const askedMs = performance.now();
    const asked = ask(caller, Math.floor(sent++ / length)).then((answer) => {
      decisions.push({ caller, answer, askedMs, answeredMs: performance.now() });
      open.delete(asked);
    });
    open.add(asked);
  }, everyMs);
  return load;
}
