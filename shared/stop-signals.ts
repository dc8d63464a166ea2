// The signals that stop a program, and which of them count as a second one.
import { readFileSync } from 'node:fs';

export const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
export type StopSignal = (typeof stopSignals)[number];

/**
 * A supervisor (systemd) or a terminal signals a whole group of processes, and npm and shells in it forward their
 * signal: a program receives one stop several times.
 */
const sameStopMs = 2_000;
const parentCheckMs = 200;

let isListening = false;

/**
 * Exits with 0 on a signal until `listenForStopSignals` is called: nothing is open yet. Call it before loading anything
 * else: a process with id 1, as in a container, ignores signals without a listener.
 */
export function endOnStopSignals(): void {
  // The listeners are never removed: without any, a signal in flight would be lost.
  for (const name of stopSignals) {
    process.on(name, () => {
      if (!isListening) process.exit(0);
    });
  }
}

/**
 * npx runs a program in a shell. It sends SIGTERM to that shell alone, and SIGHUP ends npx alone: the program then sends
 * itself the signal. Only under npx, which `npm_lifecycle_event` shows: elsewhere a program may outlive its parent.
 */
export function endWithNpx(script: string | undefined): void {
  if (script !== 'npx') return;
  const parent = process.ppid;
  const above = findProcess(parent)?.parent;
  // A system whose shell replaces itself by the program has another process above.
  const npx = above !== undefined && findProcess(above)?.name.startsWith('npm') ? above : undefined;
  const check = setInterval(() => {
    const isBelowNpx = npx === undefined || (findProcess(parent)?.parent ?? npx) === npx;
    if (process.ppid === parent && isBelowNpx) return;
    clearInterval(check);
    process.kill(process.pid, 'SIGTERM');
  }, parentCheckMs).unref();
}

/** Undefined where the system does not show it. */
function findProcess(id: number): { readonly name: string; readonly parent: number } | undefined {
  try {
    const text = readFileSync(`/proc/${id}/stat`, 'utf8');
    const [, name = '', parent] = /^\d+ \((.*)\) \S (\d+) /s.exec(text) ?? [];
    return { name, parent: Number(parent) };
  } catch {
    return undefined;
  }
}

/**
 * Calls `onFirst` for the first signal and `onAgain` for each later one. The same signal within two
 * seconds of the first is the same stop.
 */
export function listenForStopSignals(
  onFirst: (signal: StopSignal) => void,
  onAgain: (signal: StopSignal) => void,
): void {
  isListening = true;
  let first: { readonly signal: StopSignal; readonly atMs: number } | undefined;
  for (const signal of stopSignals) {
    process.on(signal, () => {
      const nowMs = performance.now();
      if (first === undefined) {
        first = { signal, atMs: nowMs };
        onFirst(signal);
        return;
      }
      if (signal !== first.signal || nowMs - first.atMs >= sameStopMs) onAgain(signal);
    });
  }
}
