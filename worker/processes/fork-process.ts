// Starts a process that decides, and carries messages to and from it: a thin layer over Node's cluster module.
// process-slot.ts restarts processes.
import type { ChildProcess } from 'node:child_process';
import cluster, { type Worker } from 'node:cluster';
import { errorText } from '../../shared/errors.ts';
import { ownPath } from '../../shared/own-files.ts';
import type { FromProcess, ToProcess } from './message.ts';

export interface ForkedProcess {
  /** Undefined when it could not be started. */
  readonly pid: number | undefined;
  /**
   * Sends a message: messages arrive in order, once the process has loaded its program; those to an ended process are
   * lost.
   */
  send(message: ToProcess): Promise<void>;
  /** Sends SIGKILL. */
  kill(): void;
}

export interface ProcessListener {
  onMessage(message: FromProcess): void;
  /**
   * Called once, after the process' last message and never during `fork`, with a text such as `was ended by SIGKILL`.
   */
  onGone(how: string): void;
}

export type ForkProcess = (listener: ProcessListener) => ForkedProcess;

const entry = ownPath('worker/processes/main.ts');

const notStarted: ForkedProcess = { pid: undefined, send: async () => {}, kill: () => {} };

/** Uses the same Node and the same flags as this process. */
export const forkProcess: ForkProcess = ({ onMessage, onGone }) => {
  cluster.schedulingPolicy = cluster.SCHED_RR;
  cluster.setupPrimary({
    exec: entry,
    args: [],
    serialization: 'advanced',
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  let worker: Worker;
  try {
    worker = cluster.fork();
  } catch (error) {
    // For example for lack of memory. Reported asynchronously, like every other end.
    process.nextTick(() => onGone(`could not be started: ${errorText(error)}`));
    return notStarted;
  }
  const child = worker.process;
  if (child.pid === undefined) {
    // For example for lack of file descriptors; an event has the reason.
    worker.once('error', (error) => onGone(`could not be started: ${errorText(error)}`));
    return notStarted;
  }
  const underway = followHandles(child);
  let how = 'was lost';
  let isDisconnected = false;
  /**
   * Settled when the process has loaded its program, or has ended: Node drops messages that arrive before the program
   * listens, which may be late, for example with `NODE_OPTIONS=--import`.
   */
  const loaded = Promise.withResolvers<void>();

  child.on('message', (received) => {
    const message = received as unknown as FromProcess;
    if (message.kind === 'loaded') loaded.resolve();
    else onMessage(message);
  });
  child.once('disconnect', () => {
    isDisconnected = true;
  });
  child.once('exit', (code, signal) => {
    how = signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`;
  });
  // Emitted after its exit, when all its messages were read.
  child.once('close', () => {
    for (const handle of underway) handle.close();
    loaded.resolve();
    // If a connection was in transit to the process, Node omits the event by which the cluster module forgets the
    // process.
    if (!isDisconnected) child.emit('disconnect');
    onGone(how);
  });
  // Messages that cannot be sent: the process is ending.
  worker.on('error', () => {});
  return {
    pid: child.pid,
    async send(message) {
      await loaded.promise;
      if (!child.connected) return;
      // Fails only for an ended process, which is detected above.
      await new Promise<void>((resolve) => child.send(message, () => resolve()));
    },
    kill() {
      child.kill('SIGKILL');
    },
  };
};

/** A connection that the cluster module passes to a process. */
interface Handle {
  close(callback?: () => void): void;
}

/**
 * Connections passed to the process that it has not acknowledged. If the process hangs or ends before, the cluster
 * module would keep them for ever, and their callers would wait.
 */
function followHandles(child: ChildProcess): ReadonlySet<Handle> {
  const underway = new Set<Handle>();
  const send = child.send.bind(child) as (...parts: unknown[]) => boolean;
  child.send = (message: unknown, handle?: unknown, ...others: unknown[]) => {
    if (isHandle(handle)) {
      underway.add(handle);
      const close = handle.close.bind(handle);
      handle.close = (callback) => {
        underway.delete(handle);
        close(callback);
      };
    }
    return send(message, handle, ...others);
  };
  return underway;
}

function isHandle(value: unknown): value is Handle {
  return typeof value === 'object' && value !== null && 'close' in value;
}
