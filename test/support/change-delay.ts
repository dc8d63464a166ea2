// How long a change of rules takes to decide on a worker: from the change to the first decision under
// the new limit.
import { eventually } from './eventually.ts';
import { ruleText } from './rules-folder.ts';
import type { WorkerProcess } from './worker-process.ts';

const changes = 20;

/** Milliseconds of each of 20 changes of domain `shop`. `change` makes the one with this text, and
 * gives the time, as `performance.now` has it, from which to count. */
export async function measureChanges(
  worker: WorkerProcess,
  change: (text: string) => Promise<number>,
): Promise<readonly number[]> {
  const delays: number[] = [];
  for (let number = 0; number < changes; number++) {
    const isBlocked = number % 2 === 0;
    const startedMs = await change(ruleText('shop', isBlocked ? 0 : 1_000_000));
    await eventually(`change ${number + 1} decides`, async () => {
      return (await decide(worker)) === (isBlocked ? 429 : 200);
    });
    delays.push(performance.now() - startedMs);
  }
  return delays;
}

export function percentile95(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * 0.95) - 1] ?? Number.NaN;
}

async function decide(worker: WorkerProcess): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${worker.ports.http}/json`, {
    method: 'POST',
    body: JSON.stringify({
      domain: 'shop',
      descriptors: [{ entries: [{ key: 'k', value: 'v' }] }],
    }),
  });
  await answer.body?.cancel();
  return answer.status;
}
