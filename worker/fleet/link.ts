// The link to the control plane that configures this worker: one more stream to it, on which the worker reports its
// activity (behaviour: fleet-link; proto/ratelane/fleet/v1/fleet.proto). Nothing waits for it: a report is made only
// when the last one was sent, so a slow server costs the memory of one report.

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
import { type BackoffOptions, backoffDelayMs } from '../backoff.ts';
import type { CounterAccess } from '../decision/counter-access.ts';
import type {
  ManagementServer,
  ManagementStream,
  OpenManagementStream,
} from '../management-stream.ts';
import { createLinkAnswers } from './link-answers.ts';
import type { LinkReports } from './link-report.ts';

export interface LinkDeps {
  /** The first server to report to. */
  readonly server: ManagementServer;
  readonly method: FleetLink;
  readonly openStream: OpenManagementStream;
  readonly hello: HelloMessage;
  readonly reports: Pick<LinkReports, 'drain'>;
  /** Returns undefined while no counters can be read. */
  readonly counters: () => CounterAccess | undefined;
  /** Called when the server no longer answers: the caller should drop its other connections to it. */
  readonly onLost?: (server: ManagementServer, reason: string) => void;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: () => number;
  /** How many processes decide. */
  readonly processes: number;
}

export const intervalMs = 5_000;
/**
 * A server counts as lost when it has not answered a report, or the report could not be sent, for this long: the
 * network may have dropped the connection silently.
 */
export const silenceMs = 15_000;
const lastReportMs = 500;
/** The pause after which a server without the service is asked again: it may have been replaced by one that has it. */
const unimplementedRetryMs = 600_000;
const problemIntervalMs = 60_000;

export class Link {
  readonly #deps: LinkDeps;
  readonly #backoff: BackoffOptions;
  #server;
  readonly #problem;
  #stream: ManagementStream<FromWorkerMessage> | undefined;
  #isOpen = false;
  /** Whether a report is being sent. */
  #isReporting = false;
  #failures = 0;
  #state = 'not connected yet';
  #hasLoggedUnimplemented = false;
  #isStarted = false;
  #isStopped = false;
  #cancelTimer = () => {};
  /** Whether the server has answered a report on this stream: earlier versions do not. */
  #isAnswering = false;
  /** Set while an answer, or the end of sending, is awaited. */
  #cancelSilence: (() => void) | undefined;

  constructor(deps: LinkDeps) {
    this.#deps = deps;
    this.#backoff = { initialMs: 1_000, maxMs: 30_000, multiplier: 2, random: deps.random };
    this.#server = deps.server;
    this.#problem = createRepeatedLog({
      clock: deps.clock,
      intervalMs: problemIntervalMs,
      again: 'when-changed',
      write: (text) => deps.log.info(text),
    });
  }

  #awaitProgress(): void {
    this.#cancelSilence ??= this.#deps.clock.after(silenceMs, () => {
      const reason = `the server has answered nothing for ${silenceMs / 1000}s`;
      const lost = this.#server;
      this.#stream?.close();
      this.#onEnd(reason, false);
      this.#deps.onLost?.(lost, reason);
    });
  }

  #noteProgress(): void {
    this.#cancelSilence?.();
    this.#cancelSilence = undefined;
  }

  #connect(): void {
    this.#isOpen = false;
    this.#isAnswering = false;
    this.#noteProgress();
    const answers = createLinkAnswers({
      counters: this.#deps.counters,
      allowsReset: this.#deps.hello.allowsReset,
      isAlone: this.#deps.hello.countsAlone && this.#deps.processes > 1,
    });
    this.#stream = this.#deps.openStream<FromWorkerMessage, ToWorkerMessage>({
      server: this.#server,
      method: this.#deps.method,
      clock: this.#deps.clock,
      onOpen: () => {
        this.#isOpen = true;
        this.#isReporting = false;
        this.#stream?.send({ hello: this.#deps.hello });
        this.#report();
      },
      onResponse: (message) => {
        this.#isAnswering = true;
        this.#noteProgress();
        // The stream on which the question arrived: a later stream has not asked.
        const asking = this.#stream;
        answers.receive(message, (answer, onSent) => asking?.send({ counters: answer }, onSent));
      },
      onEnd: (reason, isUnimplemented) => this.#onEnd(reason, isUnimplemented),
    });
  }

  #onEnd(reason: string, isUnimplemented: boolean): void {
    this.#stream = undefined;
    this.#cancelTimer();
    this.#noteProgress();
    if (this.#isStopped) return;
    const why = toExcerpt(reason, 500);
    this.#state = `not connected: ${why}`;
    if (isUnimplemented) {
      if (!this.#hasLoggedUnimplemented) {
        this.#deps.log.info(
          `The management server ${this.#server.url} rejects reports from this worker, which continues without them`,
        );
      }
      this.#hasLoggedUnimplemented = true;
      this.#cancelTimer = this.#deps.clock.after(unimplementedRetryMs, () => this.#connect());
      return;
    }
    this.#problem.report(`The link to the control plane ${this.#server.url} is not open: ${why}`);
    this.#cancelTimer = this.#deps.clock.after(backoffDelayMs(this.#backoff, this.#failures), () =>
      this.#connect(),
    );
    this.#failures++;
  }

  #report(done = () => {}): void {
    this.#isReporting = true;
    this.#awaitProgress();
    this.#stream?.send({ report: this.#deps.reports.drain() }, () => {
      this.#isReporting = false;
      if (!this.#isAnswering) this.#noteProgress();
      this.#noteOpen();
      done();
    });
    this.#cancelTimer();
    this.#cancelTimer = this.#deps.clock.after(intervalMs * (0.8 + 0.4 * this.#deps.random()), () =>
      this.#reportAgain(),
    );
  }

  #reportAgain(): void {
    this.#failures = 0;
    if (!this.#isReporting) this.#report();
    else this.#cancelTimer = this.#deps.clock.after(intervalMs, () => this.#reportAgain());
  }

  #noteOpen(): void {
    this.#state = `connected to ${this.#server.url}, last report at ${new Date(this.#deps.clock.wallMs()).toISOString()}`;
    if (this.#problem.recover() !== undefined)
      this.#deps.log.info(`The link to the control plane ${this.#server.url} is open`);
  }

  start(): void {
    this.#isStarted = true;
    this.#connect();
  }

  /** Reports to this server from now on. */
  follow(next: ManagementServer): void {
    if (next.url === this.#server.url || this.#isStopped) return;
    this.#server = next;
    if (!this.#isStarted) return;
    this.#stream?.close();
    this.#cancelTimer();
    this.#failures = 0;
    this.#connect();
  }

  /** Lines for the debug port. */
  describe(): string {
    return `link to the control plane: ${this.#state}`;
  }

  /** Sends a last report, for half a second at most. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelTimer();
    if (this.#stream !== undefined && this.#isOpen && !this.#isReporting) {
      const sent = Promise.withResolvers<void>();
      const cancel = this.#deps.clock.after(lastReportMs, sent.resolve);
      this.#report(sent.resolve);
      await sent.promise;
      cancel();
    }
    this.#cancelTimer();
    this.#noteProgress();
    this.#problem.flush();
    this.#stream?.close();
  }
}
