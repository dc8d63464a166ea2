// Keeps one process that decides running: starts it, replaces it when it ends or hangs, and stops it. process-group.ts
// coordinates the processes.

import type { Clock } from '../../shared/clock.ts';
import { toCountText } from '../../shared/count-text.ts';
import type { Log } from '../../shared/log.ts';
import { backoffDelayMs } from '../backoff.ts';
import type { ForkedProcess, ForkProcess } from './fork-process.ts';
import type { FromProcess, ToProcess } from './message.ts';

/**
 * What a process waits for.
 *
 * - `new`: to be started for the first time
 * - `loaded`: the message `start`
 * - `starting`: its counter store
 * - `connected`: rules, and the message `listen`, after which it opens its ports
 * - `serving`: nothing
 * - `ended`: its replacement; nothing if the worker has stopped or could not start
 */
export type ProcessState = 'new' | 'loaded' | 'starting' | 'connected' | 'serving' | 'ended';

export interface ProcessSlotDeps {
  readonly number: number;
  readonly fork: ForkProcess;
  readonly log: Log;
  readonly clock: Clock;
  /** Called when a process runs: it waits for `start` and the other messages it needs. */
  readonly onStart: () => void;
  /** Called with each message; `state` is already up to date. */
  readonly onMessage: (message: FromProcess) => void;
  /** Called when the process ended unasked. `reason` is its own message. Return false not to replace it. */
  readonly onEnd: (how: string, reason: string | undefined) => boolean;
}

export const backoff = { initialMs: 100, maxMs: 5_000, multiplier: 2, random: undefined } as const;
/** After a process has served this long, its end does not count with earlier ones. */
const steadyMs = 30_000;
/**
 * A process reports each second. A silent one hangs and would keep its connections: no balancer would notice, as the
 * others answer for its health. Checked in steps, so that a pause of the whole machine does not count as silence.
 */
export const silenceStepMs = 5_000;
export const maxSilentSteps = 6;
/** Added to the time for decisions in flight. */
const stopMarginMs = 4_000;

export class ProcessSlot {
  readonly number: number;
  readonly #deps: ProcessSlotDeps;
  #state: ProcessState = 'new';
  #forked: ForkedProcess | undefined;
  #reason: string | undefined;
  #stateSinceMs;
  #servingSinceMs: number | undefined;
  #failures = 0;
  #restarts = 0;
  #lastEnd = '';
  #description: readonly string[] = [];
  #silentSteps = 0;
  #cancelRestart = () => {};
  #cancelWatch = () => {};
  /** Settled by the end of a process that was asked to stop. */
  #stopped: PromiseWithResolvers<void> | undefined;

  constructor(deps: ProcessSlotDeps) {
    this.number = deps.number;
    this.#deps = deps;
    this.#stateSinceMs = deps.clock.wallMs();
  }

  #enter(next: ProcessState): void {
    this.#state = next;
    this.#stateSinceMs = this.#deps.clock.wallMs();
  }

  start(): void {
    this.#reason = undefined;
    this.#servingSinceMs = undefined;
    this.#description = [];
    this.#enter('loaded');
    this.#forked = this.#deps.fork({
      onMessage: (message) => this.#receive(message),
      onGone: (how) => this.#onGone(how),
    });
    this.#deps.onStart();
  }

  #receive(message: FromProcess): void {
    this.#silentSteps = 0;
    if (message.kind === 'connected') this.#enter('connected');
    else if (message.kind === 'failed') this.#reason = message.message;
    else if (message.kind === 'report') this.#description = message.description;
    else if (message.kind === 'listening') {
      this.#enter('serving');
      this.#servingSinceMs = this.#deps.clock.monotonicMs();
      if (this.#restarts > 0)
        this.#deps.log.notice(`Process ${this.number} serves again (pid ${this.#forked?.pid})`);
    }
    this.#deps.onMessage(message);
  }

  #watchSilence(): void {
    this.#silentSteps = 0;
    const waitForStep = () => {
      this.#cancelWatch = this.#deps.clock.after(silenceStepMs, () => {
        if (++this.#silentSteps >= maxSilentSteps) {
          const seconds = (silenceStepMs * maxSilentSteps) / 1000;
          this.#deps.log.error(
            `Process ${this.number} (pid ${this.#forked?.pid}) has not reported for ${seconds}s`,
          );
          this.#forked?.kill();
        } else waitForStep();
      });
    };
    waitForStep();
  }

  #onGone(how: string): void {
    this.#cancelWatch();
    const pid = this.#forked?.pid;
    this.#forked = undefined;
    this.#enter('ended');
    this.#lastEnd = this.#reason ?? `${pid === undefined ? '' : `pid ${pid} `}${how}`;
    if (this.#stopped !== undefined) {
      this.#stopped.resolve();
      return;
    }
    const isSteady =
      this.#servingSinceMs !== undefined &&
      this.#deps.clock.monotonicMs() - this.#servingSinceMs >= steadyMs;
    this.#failures = isSteady ? 0 : this.#failures;
    if (!this.#deps.onEnd(how, this.#reason)) return;
    const delayMs = backoffDelayMs(backoff, this.#failures++);
    this.#deps.log.error(
      `Process ${this.number}${pid === undefined ? '' : ` (pid ${pid})`} ${this.#reason === undefined ? how : `failed: ${this.#reason}`}; another replaces it in ${delayMs}ms`,
    );
    this.#restarts++;
    this.#cancelRestart = this.#deps.clock.after(delayMs, () => this.start());
  }

  #describeState(): string {
    const since = new Date(this.#stateSinceMs).toISOString();
    switch (this.#state) {
      case 'new':
        return 'not started yet';
      case 'ended':
        return `ended at ${since} (${this.#lastEnd})`;
      case 'loaded':
      case 'starting':
        return `pid ${this.#forked?.pid}, starts, and waits for the counter store, since ${since}`;
      case 'connected':
        return `pid ${this.#forked?.pid}, waits for rules since ${since}`;
      case 'serving':
        return `pid ${this.#forked?.pid}, serves since ${since}`;
    }
  }

  get state(): ProcessState {
    return this.#state;
  }

  /** Sends a message to the current process. Resolves when the message was sent, or lost with the process. */
  async send(message: ToProcess): Promise<void> {
    if (message.kind === 'start') {
      // Not a new time: the description has that of the process.
      this.#state = 'starting';
      this.#watchSilence();
    }
    await this.#forked?.send(message);
  }

  describe(): string {
    const times = toCountText(this.#restarts, 'time');
    const replaced = this.#restarts === 0 ? '' : `, replaced ${times}`;
    return [
      `process ${this.number}: ${this.#describeState()}${replaced}`,
      ...this.#description,
    ].join(', ');
  }

  /** Asks the process to end, and kills it if it does not. */
  async stop(graceMs: number): Promise<void> {
    this.#cancelRestart();
    if (this.#forked === undefined) return;
    if (this.#stopped === undefined) {
      this.#stopped = Promise.withResolvers();
      void this.#forked.send({ kind: 'stop', graceMs });
    }
    const cancelKill = this.#deps.clock.after(graceMs + stopMarginMs, () => this.#forked?.kill());
    await this.#stopped.promise;
    cancelKill();
  }
}
