// CPU time and memory of processes, from the kernel's accounting (Linux).
import { readdirSync, readFileSync } from 'node:fs';

/** USER_HZ, the same on every Linux that Node runs on. */
const ticksPerSecond = 100;
const kibibyte = 1024;

/** User and system time of these processes together, in microseconds. */
export function readCpuUs(pids: readonly number[]): number {
  let ticks = 0;
  for (const pid of pids) {
    const fields = readStat(pid);
    ticks += Number(fields[11]) + Number(fields[12]);
  }
  return (ticks * 1e6) / ticksPerSecond;
}

export interface MemoryUse {
  readonly residentBytes: number;
  /** Since the start of each process. */
  readonly peakBytes: number;
}

export function readMemory(pids: readonly number[]): MemoryUse {
  let residentBytes = 0;
  let peakBytes = 0;
  for (const pid of pids) {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    residentBytes += Number(/^VmRSS:\s*(\d+)/m.exec(status)?.[1] ?? 0) * kibibyte;
    peakBytes += Number(/^VmHWM:\s*(\d+)/m.exec(status)?.[1] ?? 0) * kibibyte;
  }
  return { residentBytes, peakBytes };
}

/** The live processes of a process group. */
export function readGroup(group: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const fields = readStat(pid);
        return Number(fields[2]) === group && !['Z', 'X'].includes(fields[0] ?? '');
      } catch {
        return false; // ended meanwhile
      }
    })
    .sort((a, b) => a - b);
}

/** The fields after the command, which is in parentheses and may itself contain spaces. */
function readStat(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}
