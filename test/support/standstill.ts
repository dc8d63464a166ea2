// Stops a process, like an overloaded or frozen server: it keeps its connections and sends nothing.
import { setTimeout as sleep } from 'node:timers/promises';
import { readThreads } from './threads.ts';

const deadlineMs = 30_000;

/** SIGSTOP; resolves when every thread of the process has stopped. The signal does not wait for that: until one of its
 * threads gets a processor, the others continue and may still answer. */
export async function standStill(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  const giveUpAt = Date.now() + deadlineMs;
  while (!(await isStopped(pid))) {
    if (Date.now() > giveUpAt) throw new Error(`process ${pid} has not stopped after SIGSTOP`);
    await sleep(1);
  }
}

async function isStopped(pid: number): Promise<boolean> {
  const states = (await readThreads(pid, 'stat')).map(
    // `1234 (name) T ...`: the name may contain anything, and ends at the last parenthesis.
    (stat) => stat.charAt(stat.lastIndexOf(')') + 2),
  );
  return states.every((state) => state === 'T');
}
