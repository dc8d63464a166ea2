// The resources of a process, as reported by Linux; unknown on other systems.
import { readdirSync, readFileSync } from 'node:fs';

export interface ProcessSize {
  readonly files: number;
  readonly megabytes: number;
}

export function readProcessSize(pid: number): ProcessSize | undefined {
  try {
    const files = readdirSync(`/proc/${pid}/fd`).length;
    const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return { files, megabytes: Math.round(Number(kilobytes) / 1024) };
  } catch {
    return undefined;
  }
}

export function showProcessSize(size: ProcessSize | undefined): string {
  return size === undefined ? 'unknown' : `${size.files} files, ${size.megabytes} MB`;
}
