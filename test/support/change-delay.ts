// How long a change of rules takes to decide on a worker: from the change to the first decision under
// the new limit.
import type { ExecutionContext } from 'ava';
import { eventually } from './eventually.ts';
import { ruleText } from './rules-folder.ts';
import type { WorkerProcess } from './worker-process.ts';

const changes = 20;
const slackMs = 5_000;

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

/** The median keeps to the bound. The 95th percentile may be later by `slackMs`: of 20 changes two
 * that a busy machine holds up are enough to decide it. */
export function checkDelays(
  t: Pick<ExecutionContext, 'log' | 'true'>,
  delays: readonly number[],
  boundMs: number,
): void {
  const [median, p95] = [percentile(delays, 0.5), percentile(delays, 0.95)];
  const all = delays.map(Math.round).join(' ');
  t.log(`median ${Math.round(median)} ms, p95 ${Math.round(p95)} ms`);
  t.true(median < boundMs, `median: ${all}`);
  t.true(p95 < boundMs + slackMs, `p95: ${all}`);
}

function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * share) - 1] ?? Number.NaN;
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
