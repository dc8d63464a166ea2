// The descendants of this process, whatever their group or session: how much CPU time they have used, and a way to end
// all of them.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

const pollMs = 20;
/** The unit of `/proc/PID/stat`, in seconds: every Linux counts in hundredths. */
const tickSeconds = 0.01;

/** Processor seconds of all descendants that have ended; 0 where the system does not report it. */
export function cpuOfEndedChildren(): number {
  const fields = readStat('self');
  return (Number(fields?.[13] ?? 0) + Number(fields?.[14] ?? 0)) * tickSeconds;
}

/** Asks all descendants to end, and kills those that have not after `graceMs`. */
export async function endProcessesBelow(graceMs: number): Promise<void> {
  // Collected first: processes whose parent ends earlier are no longer descendants.
  const pids = findBelow(process.pid);
  for (const pid of pids) signal(pid, 'SIGTERM');
  const deadline = performance.now() + graceMs;
  while (performance.now() < deadline && pids.some(isAlive)) await pause(pollMs);
  for (const pid of new Set([...pids, ...findBelow(process.pid)])) signal(pid, 'SIGKILL');
}

function findBelow(root: number): number[] {
  const children = Map.groupBy(listProcesses(), ({ parent }) => parent);
  const below = [root];
  for (const pid of below) below.push(...(children.get(pid) ?? []).map((child) => child.pid));
  return below.slice(1);
}

function listProcesses(): { pid: number; parent: number }[] {
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map((name) => ({ pid: Number(name), parent: Number(readStat(name)?.[1]) }));
  } catch {
    const list = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' });
    return list.split('\n').map((line) => {
      const [pid, parent] = line.trim().split(/\s+/).map(Number);
      return { pid: pid ?? 0, parent: parent ?? 0 };
    });
  }
}

/** The fields after the name, which may contain blanks: the first is the state. */
function readStat(pid: string): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  return signal(pid, 0) && readStat(String(pid))?.[0] !== 'Z';
}

function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}
