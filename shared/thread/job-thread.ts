// A separate thread for work that would block the event loop, one job at a time and bounded in time and memory. It
// starts when a job needs it and ends after being idle; a job that exceeds a bound ends with its thread.
import { setImmediate } from 'node:timers/promises';
import {
  MessageChannel,
  type MessagePort,
  receiveMessageOnPort,
  type Worker,
} from 'node:worker_threads';
import type { Clock } from '../clock.ts';
import { runInSlices } from '../in-slices.ts';
import { CpuDeadline } from './cpu-deadline.ts';

/** Sent to the thread, together with a port. */
export interface Job {
  readonly pieces: MessagePort;
  /** In processor time: a job that checks it ends by itself. */
  readonly deadlineMs: number;
}

/** The thread's answer: all pieces of the result were sent to the port, or the job exceeded its time or its memory. */
export type JobEnd = 'done' | 'overtime' | 'out of memory';

/** The job itself is too large: it would be on any machine. */
export class TooMuch extends Error {}

/** Too many jobs wait for the thread: this one was not begun. */
export class TooBusy extends Error {}

export interface ThreadJob<Result> {
  /** The input as messages name it: `the document`. */
  readonly subject: string;
  /** The size of the input, in the unit of `mostWaiting`; default 0. */
  readonly size?: number;
  /** Aborted when the caller has disconnected: the job is then not begun. */
  readonly signal?: AbortSignal;
  /** The messages that make up the job. */
  readonly send: Iterable<object>;
  readonly receive: (next: Next) => Steps<Result>;
}

export interface JobThread {
  /**
   * Sends the job and receives its result, both in slices. Jobs wait for earlier ones. Rejects with a TooBusy when too
   * many wait, with a TooMuch, or with an error when the thread fails or is closed.
   */
  run<Result>(job: ThreadJob<Result>): Promise<Result>;
  /** Idempotent. */
  close(): Promise<void>;
}

/** The next piece of a result; undefined after the last. */
export type Next = () => unknown;
export type Steps<Result> = Generator<void, Result>;

export interface JobThreadDeps {
  readonly clock: Clock;
  /** In processor time of one job: on a busy machine it may take ten times as long. */
  readonly deadlineMs: number;
  /** The total size of the jobs that may wait or run; a job may run alone whatever its size. Default: any size. */
  readonly mostWaiting?: number;
  /** How long an idle thread stays. */
  readonly idleMs: number;
  readonly startWorker: () => Worker;
}

export class ThreadOfJobs implements JobThread {
  readonly #deps: JobThreadDeps;
  #worker: Worker | undefined;
  #isClosed = false;
  #cancelEnd = () => {};
  /** The subject of the current job. */
  #subject = '';
  /** Rejects the current wait for the thread. */
  #fail: ((error: Error) => void) | undefined;
  /** Settles when the last job, waiting or running, has ended. */
  #last: Promise<void> | undefined;
  /** The total size of the jobs that wait or run. */
  #waiting = 0;

  constructor(deps: JobThreadDeps) {
    this.#deps = deps;
  }

  async run<Result>(job: ThreadJob<Result>): Promise<Result> {
    const { size = 0 } = job;
    const { mostWaiting = Number.POSITIVE_INFINITY } = this.#deps;
    if (this.#waiting > 0 && this.#waiting + size > mostWaiting) throw new TooBusy();
    this.#waiting += size;
    const before = this.#last;
    const done = before === undefined ? this.#runNow(job) : before.then(() => this.#runNow(job));
    const ended = done.then(
      () => {},
      () => {},
    );
    this.#last = ended;
    try {
      return await done;
    } finally {
      this.#waiting -= size;
      if (this.#last === ended) this.#last = undefined;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#fail?.(new Error('closed while a job was running'));
    await this.#end();
  }

  async #runNow<Result>(job: ThreadJob<Result>): Promise<Result> {
    const { subject, signal, send, receive } = job;
    if (this.#isClosed) throw new Error('closed');
    signal?.throwIfAborted();
    const { clock, deadlineMs, idleMs } = this.#deps;
    this.#subject = subject;
    this.#cancelEnd();
    const isNew = this.#worker === undefined;
    this.#worker ??= this.#start();
    const used = this.#worker;
    const { port1, port2 } = new MessageChannel();
    const done = Promise.withResolvers<void>();
    // The thread may fail while it is still being sent its job.
    done.promise.catch(() => {});
    this.#fail = done.reject;
    const onMessage = (end: JobEnd) => {
      if (end === 'done') done.resolve();
      else done.reject(this.#toTooMuch(end));
    };
    used.once('message', onMessage);
    const deadline = new CpuDeadline(used, {
      ...{ clock, deadlineMs },
      onOver: () => {
        done.reject(this.#toTooMuch('overtime'));
        void this.#end();
      },
    });
    try {
      // Starting a thread takes longer than a slice may.
      if (isNew) await setImmediate();
      await runInSlices(post(send, port1));
      used.postMessage({ pieces: port2, deadlineMs } satisfies Job, [port2]);
      await done.promise;
      return await runInSlices(receive(() => receiveMessageOnPort(port1)?.message));
    } finally {
      used.off('message', onMessage);
      deadline.cancel();
      this.#fail = undefined;
      port1.close();
      if (this.#worker !== undefined) this.#cancelEnd = clock.after(idleMs, () => void this.#end());
    }
  }

  #start(): Worker {
    const started = this.#deps.startWorker();
    // The thread does not keep an idle process alive.
    started.unref();
    started.on('error', (error) => this.#drop(started, this.#toFailure(error)));
    started.on('exit', (code) => this.#drop(started, new Error(`it ended with code ${code}`)));
    return started;
  }

  #drop(gone: Worker, error: Error): void {
    if (this.#worker !== gone) return;
    this.#worker = undefined;
    this.#fail?.(error);
  }

  async #end(): Promise<void> {
    this.#cancelEnd();
    const ended = this.#worker;
    this.#worker = undefined;
    await ended?.terminate();
  }

  #toTooMuch(end: Exclude<JobEnd, 'done'>): TooMuch {
    const what =
      end === 'overtime'
        ? `takes more than ${this.#deps.deadlineMs / 1000} s to read`
        : 'needs more memory than there is';
    return new TooMuch(`${this.#subject} ${what}`);
  }

  #toFailure(error: unknown): Error {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ERR_WORKER_OUT_OF_MEMORY') return this.#toTooMuch('out of memory');
    return error instanceof Error ? error : new Error(String(error));
  }
}

function* post(messages: Iterable<object>, port: MessagePort): Steps<void> {
  for (const message of messages) {
    port.postMessage(message);
    yield;
  }
}
