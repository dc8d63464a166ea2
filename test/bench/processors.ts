// Which processors the service under test has for itself, and which its load and its store share.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Moves this process, and so whatever it starts, away from the processor of the service. */
export function divideProcessors() {
  const allowed = readAllowed();
  const [first, ...others] = allowed;
  if (first === undefined || others.length === 0) {
    return { servicePrefix: [], description: 'one processor for everything: read with care' };
  }
  const pinned = spawnSync('taskset', ['-a', '-c', '-p', others.join(','), String(process.pid)]);
  if (pinned.status !== 0) {
    return { servicePrefix: [], description: 'nothing is pinned, for want of taskset' };
  }
  return {
    /** What to put before the service's command. */
    servicePrefix: ['taskset', '-c', String(first)],
    /** One line about who runs where. */
    description: `the service on one processor, load and store on ${others.length === 1 ? 'one other' : `${others.length} others`}`,
  };
}

function readAllowed(): number[] {
  let list: string | undefined;
  try {
    list = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  } catch {
    // Not Linux: there is no taskset either.
  }
  return (list ?? '').split(',').flatMap((range) => {
    const [from, to = from] = range.split('-').map(Number);
    if (from === undefined || to === undefined || Number.isNaN(from)) return [];
    return Array.from({ length: to - from + 1 }, (_, index) => from + index);
  });
}
