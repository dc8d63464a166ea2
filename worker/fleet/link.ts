// The link to the control plane that feeds this worker: one more stream to it, on which the worker reports
// what it does (behaviour: fleet-link; proto/ratelane/fleet/v1/fleet.proto). Nothing waits for it: a
// report is made only when the last one has been sent, so a slow server costs the memory of one.

import { type BackoffOptions, backoffDelayMs } from '../../shared/backoff.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';
import { createRepeatedLog } from '../../shared/repeated-log.ts';
import { toExcerpt } from '../../shared/text-excerpt.ts';
import type { FleetLink } from '../../shared/wire/fleet.ts';
import type {
  FromWorkerMessage,
  HelloMessage,
  ToWorkerMessage,
} from '../../shared/wire/fleet-messages.ts';
import type { CounterAccess } from '../decision/counter-access.ts';
import type {
  ManagementServer,
  ManagementStream,
  OpenManagementStream,
} from '../management-stream.ts';
import { createLinkAnswers } from './link-answers.ts';
import type { LinkReports } from './link-report.ts';

export interface LinkDeps {
  /** The first one to report to. */
  readonly server: ManagementServer;
  readonly method: FleetLink;
  readonly openStream: OpenManagementStream;
  readonly hello: HelloMessage;
  readonly reports: LinkReports;
  /** Undefined while no server can be asked. */
  readonly counters: () => CounterAccess | undefined;
  /** The server does not answer any more: what else is connected to it should be dropped. */
  readonly onLost?: (server: ManagementServer, reason: string) => void;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: () => number;
  /** How many processes decide. */
  readonly processes: number;
}

export interface Link {
  start(): void;
  /** Reports to this server from now on. */
  follow(server: ManagementServer): void;
  /** Lines for the debug port. */
  describe(): string;
  /** Sends a last report, for half a second at most. */
  stop(): Promise<void>;
}

export const intervalMs = 5_000;
/** Without an answer to a report, or without having sent it, a server is lost: the network may have forgotten the
 * connection. */
export const silenceMs = 15_000;
const lastReportMs = 500;
/** A server without the service may be replaced by one that has it. */
const unimplementedRetryMs = 600_000;
const troubleIntervalMs = 60_000;

export function createLink(deps: LinkDeps): Link {
  const { hello, reports, log, clock, random } = deps;
  const backoff: BackoffOptions = { initialMs: 1_000, maxMs: 30_000, multiplier: 2, random };
  let { server } = deps;
  const trouble = createRepeatedLog({
    clock,
    intervalMs: troubleIntervalMs,
    again: 'when-changed',
    write: (text) => log.info(text),
  });
  let stream: ManagementStream<FromWorkerMessage> | undefined;
  let isOpen = false;
  /** Whether a report is being sent. */
  let isReporting = false;
  let failures = 0;
  let state = 'not connected yet';
  let hasSaidUnimplemented = false;
  let isStarted = false;
  let isStopped = false;
  let cancelTimer = () => {};
  /** Whether the server has answered a report on this stream: those of earlier versions do not. */
  let isAnswering = false;
  /** While an answer, or the end of the sending, is awaited. */
  let cancelSilence: (() => void) | undefined;

  function awaitProgress(): void {
    cancelSilence ??= clock.after(silenceMs, () => {
      const reason = `the server has answered nothing for ${silenceMs / 1000}s`;
      const lost = server;
      stream?.close();
      onEnd(reason, false);
      deps.onLost?.(lost, reason);
    });
  }

  function noteProgress(): void {
    cancelSilence?.();
    cancelSilence = undefined;
  }

  function connect(): void {
    isOpen = false;
    isAnswering = false;
    noteProgress();
    const answers = createLinkAnswers({
      counters: deps.counters,
      allowsReset: hello.allowsReset,
      isAlone: hello.countsAlone && deps.processes > 1,
    });
    stream = deps.openStream<FromWorkerMessage, ToWorkerMessage>({
      server,
      method: deps.method,
      clock,
      onOpen() {
        isOpen = true;
        isReporting = false;
        stream?.send({ hello });
        report();
      },
      onResponse(message) {
        isAnswering = true;
        noteProgress();
        // The stream on which the question came: a later one has not asked.
        const asking = stream;
        answers.take(message, (answer, onSent) => asking?.send({ counters: answer }, onSent));
      },
      onEnd,
    });
  }

  function onEnd(reason: string, isUnimplemented: boolean): void {
    stream = undefined;
    cancelTimer();
    noteProgress();
    if (isStopped) return;
    const why = toExcerpt(reason, 500);
    state = `not connected: ${why}`;
    if (isUnimplemented) {
      if (!hasSaidUnimplemented) {
        log.info(
          `The management server ${server.url} takes no reports of this worker; it is done without`,
        );
      }
      hasSaidUnimplemented = true;
      cancelTimer = clock.after(unimplementedRetryMs, connect);
      return;
    }
    trouble.report(`The link to the control plane ${server.url} is not open: ${why}`);
    cancelTimer = clock.after(backoffDelayMs(backoff, failures), connect);
    failures++;
  }

  function report(done = () => {}): void {
    isReporting = true;
    awaitProgress();
    stream?.send({ report: reports.take() }, () => {
      isReporting = false;
      if (!isAnswering) noteProgress();
      noteOpen();
      done();
    });
    cancelTimer();
    cancelTimer = clock.after(intervalMs * (0.8 + 0.4 * random()), reportAgain);
  }

  function reportAgain(): void {
    failures = 0;
    if (!isReporting) report();
    else cancelTimer = clock.after(intervalMs, reportAgain);
  }

  function noteOpen(): void {
    state = `connected to ${server.url}, last report at ${new Date(clock.wallMs()).toISOString()}`;
    if (trouble.recover() !== undefined)
      log.info(`The link to the control plane ${server.url} is open`);
  }

  return {
    start() {
      isStarted = true;
      connect();
    },
    follow(next) {
      if (next.url === server.url || isStopped) return;
      server = next;
      if (!isStarted) return;
      stream?.close();
      cancelTimer();
      failures = 0;
      connect();
    },
    describe: () => `link to the control plane: ${state}`,
    async stop() {
      isStopped = true;
      cancelTimer();
      if (stream !== undefined && isOpen && !isReporting) {
        const sent = Promise.withResolvers<void>();
        const cancel = clock.after(lastReportMs, sent.resolve);
        report(sent.resolve);
        await sent.promise;
        cancel();
      }
      cancelTimer();
      noteProgress();
      trouble.flush();
      stream?.close();
    },
  };
}
