// Starts a process that decides and carries the messages to and from it: a thin shell over the
// runtime's cluster module. What is said, and what becomes of a process that ended, is left to
// process-slot.ts.
import cluster from 'node:cluster';
import { fileURLToPath } from 'node:url';
import { errorText } from '../../shared/errors.ts';
import type { FromProcess, ToProcess } from './message.ts';

export interface ForkedProcess {
  /** Undefined when it could not be started. */
  readonly pid: number | undefined;
  /** In order. What a process that is gone does not get is lost. */
  send(message: ToProcess): void;
  /** SIGKILL. */
  kill(): void;
}

export interface ProcessListener {
  onMessage(message: FromProcess): void;
  /** Called once, never from inside `fork`, after its last message: `was ended by SIGKILL`. */
  onGone(how: string): void;
}

export type ForkProcess = (listener: ProcessListener) => ForkedProcess;

const entry = fileURLToPath(new URL('./main.ts', import.meta.url));

/** With the same Node and the same flags as this process. */
export const forkProcess: ForkProcess = ({ onMessage, onGone }) => {
  cluster.schedulingPolicy = cluster.SCHED_RR;
  cluster.setupPrimary({
    exec: entry,
    args: [],
    serialization: 'advanced',
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const { process: child } = cluster.fork();
  let how: string | undefined;
  let hasChannel = true;
  let isGone = false;

  function noteEnd(): void {
    // It may have said something that is not read yet.
    if (isGone || how === undefined || hasChannel) return;
    isGone = true;
    onGone(how);
  }

  child.on('message', (message) => onMessage(message as unknown as FromProcess));
  child.once('disconnect', () => {
    hasChannel = false;
    noteEnd();
  });
  child.once('exit', (code, signal) => {
    how = signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`;
    noteEnd();
  });
  child.on('error', (error) => {
    if (child.pid !== undefined) return;
    how = `could not be started: ${errorText(error)}`;
    hasChannel = false;
    noteEnd();
  });
  return {
    pid: child.pid,
    send(message) {
      // Failures are those of a process that is gone, which is noticed above.
      if (child.connected) child.send(message, () => {});
    },
    kill() {
      child.kill('SIGKILL');
    },
  };
};
