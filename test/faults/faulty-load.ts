// Decisions at a steady rate while something happens to the connections of a worker's store, and what
// became of each.
import { eventually } from '../support/eventually.ts';
import type { Fault, TcpProxy } from '../support/tcp-proxy.ts';
import { createCaller } from '../support/worker-caller.ts';
import type { WorkerInProcess } from '../support/worker-in-process.ts';

export interface FaultyDecision {
  readonly value: string;
  /** On performance.now(). */
  readonly askedMs: number;
  readonly answeredMs: number;
  /** Why there was no decision, if so. */
  readonly failure: string | undefined;
}

export interface FaultyLoad {
  readonly decisions: readonly FaultyDecision[];
  readonly injectedMs: number;
  readonly healedMs: number;
  /** Decisions asked for, by value. */
  readonly asked: ReadonlyMap<string, number>;
}

const everyMs = 20;
const values = ['ann', 'bob', 'cat', 'dan', 'eve'];
const enough = 30;
const patienceMs = 30_000;

/**
 * Asks for decisions on a limit of domain `d` and key `k`, with the fault from some time on until
 * `isFelt`, and then until decisions that were asked for after the repair are made. Resolves when all
 * are answered.
 */
export async function askThroughFault(
  worker: WorkerInProcess,
  proxy: TcpProxy,
  fault: Fault,
  isFelt: (duringFault: readonly FaultyDecision[]) => boolean,
): Promise<FaultyLoad> {
  const caller = createCaller((await worker.started).grpc.text);
  const decisions: FaultyDecision[] = [];
  const asked = new Map<string, number>();
  const open = new Set<Promise<void>>();
  const ask = async (value: string): Promise<void> => {
    const askedMs = performance.now();
    asked.set(value, (asked.get(value) ?? 0) + 1);
    const answer = await caller.decide('d', 'k', value);
    const failure = answer === 'OK' ? undefined : answer;
    decisions.push({ value, askedMs, answeredMs: performance.now(), failure });
  };
  let next = 0;
  const timer = setInterval(() => {
    const asking = ask(values[next++ % values.length] ?? '').finally(() => open.delete(asking));
    open.add(asking);
  }, everyMs);
  const since = (ms: number) => decisions.filter(({ askedMs }) => askedMs >= ms);
  const isServing = (ms: number) =>
    since(ms).filter(({ failure }) => failure === undefined).length >= enough;
  try {
    await eventually('decisions', () => isServing(0), patienceMs);
    const injectedMs = performance.now();
    proxy.inject(fault);
    await eventually(
      `${fault.kind} is felt`,
      () => since(injectedMs).length >= enough && isFelt(since(injectedMs)),
      patienceMs,
    );
    const healedMs = performance.now();
    proxy.heal();
    await eventually(`decisions after ${fault.kind}`, () => isServing(healedMs), patienceMs);
    return { decisions, injectedMs, healedMs, asked };
  } finally {
    clearInterval(timer);
    await Promise.all(open);
    caller.close();
  }
}
