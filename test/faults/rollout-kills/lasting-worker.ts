// A worker that outlives the control planes: when its stream ends it goes to the other address, as behind a balancer,
// and keeps what it has meanwhile.
import { randomUUID } from 'node:crypto';
import {
  connectStreamWorker,
  createStreamWorkerMemory,
  type StreamWorker,
} from '../../support/stream-worker.ts';

export interface LastingWorker {
  readonly id: string;
  has(text: string): boolean;
  /** All that it was ever told. */
  readonly told: readonly string[];
}

interface CleanUp {
  teardown(end: () => unknown): void;
}

const againMs = 300;

/** Refuses what has `refused` in it, and limits nearly everything by what has `bad` in it. */
export function startLastingWorker(
  t: CleanUp,
  id: string,
  addresses: readonly string[],
): LastingWorker {
  const instance = randomUUID();
  const memory = createStreamWorkerMemory();
  let current: StreamWorker | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isEnded = false;

  function connect(attempt: number): void {
    const address = addresses[attempt % addresses.length] ?? '';
    // Each connection is ended by the worker itself.
    const worker = connectStreamWorker(
      { teardown: () => {} },
      {
        address,
        id,
        instance,
        memory,
        figuresOf: (rules) => (rules.includes('bad') ? { overLimit: 90 } : {}),
        answer: (rules) => (rules.includes('refused') ? 'refuse' : 'take'),
      },
    );
    current = worker;
    void worker.closed.then(() => {
      worker.vanish();
      if (!isEnded) timer = setTimeout(connect, againMs, attempt + 1);
    });
  }

  connect(0);
  t.teardown(() => {
    isEnded = true;
    clearTimeout(timer);
    current?.vanish();
  });
  return { id, told: memory.told, has: (text) => memory.rules.includes(text) };
}
