// Keeps one process that decides alive: starts it, replaces it when it ends or hangs, and ends it.
// process-group.ts coordinates the processes.

import { backoffDelayMs } from '../../shared/backoff.ts';
import type { Clock } from '../../shared/clock.ts';
import { toCountText } from '../../shared/count-text.ts';
import type { Log } from '../../shared/log.ts';
import type { ForkedProcess, ForkProcess } from './fork-process.ts';
import type { FromProcess, ToProcess } from './message.ts';

/** `ended`: not started yet, or to be replaced soon. */
export type ProcessState = 'ended' | 'starting' | 'connected' | 'serving';

export interface ProcessSlot {
  readonly number: number;
  readonly state: ProcessState;
  start(): void;
  /** Sends to the current process. Resolves when the message has left, or was lost with the process. */
  send(message: ToProcess): Promise<void>;
  describe(): string;
  /** Asks it to end, and kills it if it does not. */
  stop(graceMs: number): Promise<void>;
}

export interface ProcessSlotDeps {
  readonly number: number;
  readonly fork: ForkProcess;
  readonly log: Log;
  readonly clock: Clock;
  /** A process is running. It waits for `start` and the other messages it needs. */
  readonly onStart: () => void;
  /** `state` is up to date. */
  readonly onMessage: (message: FromProcess) => void;
  /** The process ended unasked. `reason` is its own message. Returns false to not replace it. */
  readonly onEnd: (how: string, reason: string | undefined) => boolean;
}

export const backoff = { initialMs: 100, maxMs: 5_000, multiplier: 2, random: undefined } as const;
/** After serving this long, an end does not count with those before. */
const steadyMs = 30_000;
/** A process reports each second. A silent one hangs and would keep its connections: no balancer would
 * notice, as the others answer for its health. Checked in steps, so that a pause of the whole machine does
 * not count as silence. */
export const silenceStepMs = 5_000;
export const maxSilentSteps = 6;
/** Beyond the time for decisions in flight. */
const stopMarginMs = 4_000;

export function createProcessSlot(deps: ProcessSlotDeps): ProcessSlot {
  const { number, fork, log, clock } = deps;
  let state: ProcessState = 'ended';
  let forked: ForkedProcess | undefined;
  let reason: string | undefined;
  let stateSinceMs = clock.wallMs();
  let servingSinceMs: number | undefined;
  let failures = 0;
  let restarts = 0;
  let lastEnd = '';
  let description: readonly string[] = [];
  let silentSteps = 0;
  let cancelRestart = () => {};
  let cancelWatch = () => {};
  let stopping: { readonly gone: PromiseWithResolvers<void> } | undefined;

  function enter(next: ProcessState): void {
    state = next;
    stateSinceMs = clock.wallMs();
  }

  function start(): void {
    reason = undefined;
    servingSinceMs = undefined;
    description = [];
    enter('starting');
    forked = fork({ onMessage: receive, onGone });
    deps.onStart();
  }

  function receive(message: FromProcess): void {
    silentSteps = 0;
    if (message.kind === 'connected') enter('connected');
    else if (message.kind === 'failed') reason = message.message;
    else if (message.kind === 'report') description = message.description;
    else if (message.kind === 'listening') {
      enter('serving');
      servingSinceMs = clock.monotonicMs();
      if (restarts > 0) log.notice(`Process ${number} serves again (pid ${forked?.pid})`);
    }
    deps.onMessage(message);
  }

  function watchSilence(): void {
    silentSteps = 0;
    const waitForStep = () => {
      cancelWatch = clock.after(silenceStepMs, () => {
        if (++silentSteps >= maxSilentSteps) {
          const seconds = (silenceStepMs * maxSilentSteps) / 1000;
          log.error(`Process ${number} (pid ${forked?.pid}) has said nothing for ${seconds}s`);
          forked?.kill();
        } else waitForStep();
      });
    };
    waitForStep();
  }

  function onGone(how: string): void {
    cancelWatch();
    const pid = forked?.pid;
    forked = undefined;
    enter('ended');
    if (stopping !== undefined) {
      stopping.gone.resolve();
      return;
    }
    const isSteady =
      servingSinceMs !== undefined && clock.monotonicMs() - servingSinceMs >= steadyMs;
    failures = isSteady ? 0 : failures;
    lastEnd = reason ?? `${pid === undefined ? '' : `pid ${pid} `}${how}`;
    if (!deps.onEnd(how, reason)) return;
    const delayMs = backoffDelayMs(backoff, failures++);
    log.error(
      `Process ${number}${pid === undefined ? '' : ` (pid ${pid})`} ${reason === undefined ? how : `failed: ${reason}`}; another takes its place in ${delayMs}ms`,
    );
    restarts++;
    cancelRestart = clock.after(delayMs, start);
  }

  function describeState(): string {
    const since = new Date(stateSinceMs).toISOString();
    switch (state) {
      case 'ended':
        return lastEnd === '' ? 'not started yet' : `ended at ${since} (${lastEnd})`;
      case 'starting':
        return `pid ${forked?.pid}, starts, and waits for the counter store, since ${since}`;
      case 'connected':
        return `pid ${forked?.pid}, waits for rules since ${since}`;
      case 'serving':
        return `pid ${forked?.pid}, serves since ${since}`;
    }
  }

  return {
    number,
    get state() {
      return state;
    },
    start,
    async send(message) {
      if (message.kind === 'start') watchSilence();
      await forked?.send(message);
    },
    describe() {
      const times = toCountText(restarts, 'time');
      const replaced = restarts === 0 ? '' : `, replaced ${times}`;
      return [`process ${number}: ${describeState()}${replaced}`, ...description].join(', ');
    },
    async stop(graceMs) {
      cancelRestart();
      if (forked === undefined) return;
      if (stopping === undefined) {
        stopping = { gone: Promise.withResolvers<void>() };
        void forked.send({ kind: 'stop', graceMs });
      }
      const cancelKill = clock.after(graceMs + stopMarginMs, () => forked?.kill());
      await stopping.gone.promise;
      cancelKill();
    },
  };
}
