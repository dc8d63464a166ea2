// A worker that outlives the control planes: when its stream ends, it connects to the other address, as behind a
// balancer, and keeps its rules meanwhile.
import { randomUUID } from 'node:crypto';
import {
  connectStreamWorker,
  createStreamWorkerMemory,
  type StreamWorker,
} from '../../support/stream-worker.ts';

export interface LastingWorker {
  readonly id: string;
  has(text: string): boolean;
  /** All versions that it was ever sent. */
  readonly notified: readonly string[];
}

interface CleanUp {
  teardown(end: () => unknown): void;
}

const againMs = 300;

/** Refuses rules that contain `refused`, and limits nearly everything under rules that contain `bad`. */
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
    // The worker itself ends each connection.
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
  return { id, notified: memory.notified, has: (text) => memory.rules.includes(text) };
}
