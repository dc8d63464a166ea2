// Reserves one processor for the service under test; its load and its store share the others.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Moves this process, and all processes that it starts, away from the service's processor. */
export function divideProcessors() {
  const allowed = readAllowed();
  const [first, ...others] = allowed;
  if (first === undefined || others.length === 0)
    return { servicePrefix: [], description: 'one processor for everything: read with care' };
  const pinned = spawnSync('taskset', ['-a', '-c', '-p', others.join(','), String(process.pid)]);
  if (pinned.status !== 0)
    return { servicePrefix: [], description: 'nothing is pinned, for want of taskset' };
  return {
    /** The prefix of the service's command. */
    servicePrefix: ['taskset', '-c', String(first)],
    /** One line about which program runs where. */
    description: `the service on one processor, load and store on ${others.length === 1 ? 'one other' : `${others.length} others`}`,
  };
}

function readAllowed(): number[] {
  let list: string | undefined;
  try {
    list = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  } catch {
    // Not Linux, or taskset is missing.
  }
  return (list ?? '').split(',').flatMap((range) => {
    const [from, to = from] = range.split('-').map(Number);
    if (from === undefined || to === undefined || Number.isNaN(from)) return [];
    return Array.from({ length: to - from + 1 }, (_, index) => from + index);
  });
}
