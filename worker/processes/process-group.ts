// Several processes that decide for one worker (WORKER_PROCESSES above 1), behind the same interface as the one that
// decides by itself (serving.ts). This process, the primary, is then all of the worker except its decisions.
//
// - The primary has what exists once: the source of rules with its one stream to a management server, the
//   statistics and their outputs, the debug port, the health, and the log of the start.
// - Each process has its own connections to the counter store, cache of keys over their limit, and gRPC
//   and HTTP listeners (decision-process.ts).
// - Connections are accepted by the primary and handed to the processes in turn (the cluster module's
//   round robin). With SO_REUSEPORT another worker could share the port unnoticed, unix sockets do not
//   support it, and few long connections, as Envoy's, are spread badly: the kernel assigns them at random.
// - The primary sends what has changed in the documents that it accepted; a process builds its rules from
//   them with the same code. A process that starts later gets those in force before it listens.
// - Statistics are reported each second as increases, and added to the primary's. A killed process loses
//   at most those of the last second.
// - Health: each process answers with the primary's, and reports to it when it loses its store.
// - A process that ends is replaced, with growing delays if it ends young; the primary stays. Only during
//   the worker's own start a process that cannot start fails the worker, with the same message as for a
//   single process. All are loaded at once, but the first starts first, and logs what the others would
//   repeat.
// - Only the primary reacts to signals. The processes ignore them, since a terminal sends them to all,
//   obey the primary, and end at once when it has ended.
import type { Clock } from '../../shared/clock.ts';
import { AppError } from '../../shared/errors.ts';
import type { Log } from '../../shared/log.ts';
import { type OpenFilesWatch, watchOpenFiles } from '../../shared/open-files.ts';
import { PartNumbers } from '../../shared/rules/thread/document-parts.ts';
import type { Environment } from '../../shared/settings/setting.ts';
import { unlessAborted } from '../../shared/unless-aborted.ts';
import type { UnmatchedSample } from '../decision/unmatched-sampler.ts';
import type { LimitedShare } from '../fleet/limited-values.ts';
import type { Health } from '../health.ts';
import type { Profiler } from '../listen/profiler.ts';
import type { MetricsRegistry } from '../metrics/registry.ts';
import type { Counter, Gauge } from '../metrics.ts';
import type { RecordBatch } from '../recording/record-buffer.ts';
import type { AcceptedRules, Serving, ServingAddresses } from '../serving.ts';
import type { ForkProcess } from './fork-process.ts';
import type { FromProcess, ToProcess } from './message.ts';
import { ProcessSlot } from './process-slot.ts';
import { createRemoteCounters, type RemoteCounters } from './remote-counters.ts';
import { createRemoteProfiler, type RemoteProfiler } from './remote-profiler.ts';
import { RulesSender } from './shared-documents.ts';
import {
  createStatisticsMerge,
  type ReportedProcess,
  type StatisticsMerge,
} from './statistics-merge.ts';

export interface ProcessGroupDeps {
  readonly count: number;
  /** The environment of the settings: each process reads them itself. */
  readonly environment: Environment;
  readonly fork: ForkProcess;
  readonly health: Health;
  readonly metrics: MetricsRegistry;
  readonly onUnmatched: (sample: UnmatchedSample) => void;
  readonly onLimited: (share: LimitedShare) => void;
  readonly onRecorded: (batch: RecordBatch) => void;
  readonly log: Log;
  readonly clock: Clock;
}

/**
 * What the start of the worker waits for. The states follow each other; if the start fails, the last one stays.
 *
 * - `first_connecting`: `connect`, and then the counter store of the first process; the others are `loaded`
 * - `connecting`: the counter stores of the others, and then `listen`
 * - `first_listening`: the ports of the first process
 * - `listening`: the ports of the others
 * - `started`: nothing; a process that ends no longer fails the start, but the worker is unhealthy while none serves
 */
type GroupState = 'first_connecting' | 'connecting' | 'first_listening' | 'listening' | 'started';

interface Member {
  readonly slot: ProcessSlot;
  readonly profiler: RemoteProfiler;
  /** Sends the rules to the current process. */
  rules: RulesSender;
  hasStore: boolean;
  reported: ReportedProcess;
  /** Settled by the first process that reaches this state. */
  readonly connected: PromiseWithResolvers<void>;
  readonly serving: PromiseWithResolvers<ServingAddresses>;
  /** Whether `connected` is settled: from then on the start fails only by a reason that a process reports. */
  hasConnected: boolean;
}

export class ProcessGroup implements Serving {
  readonly counters: RemoteCounters;
  /** One for each process, in the order of their numbers. */
  readonly profilers: readonly Profiler[];
  readonly #deps: ProcessGroupDeps;
  readonly #statistics: StatisticsMerge;
  readonly #servingCount: Gauge;
  readonly #replacedCount: Counter;
  readonly #openFilesExhausted: Counter;
  readonly #members: readonly Member[];
  readonly #partNumbers = new PartNumbers();
  /** Rejects when a process cannot start while the worker itself starts. */
  readonly #failed = Promise.withResolvers<never>();
  #openFiles: OpenFilesWatch | undefined;
  #rulesInForce: AcceptedRules | undefined;
  #state: GroupState = 'first_connecting';

  constructor(deps: ProcessGroupDeps) {
    const { count, health, metrics, clock } = deps;
    this.#deps = deps;
    this.#statistics = createStatisticsMerge(metrics);
    this.#servingCount = metrics.gauge('ratelimit.processes.serving');
    this.#replacedCount = metrics.counter('ratelimit.processes.replaced');
    this.#openFilesExhausted = metrics.counter('ratelimit.open_files_exhausted');
    this.#failed.promise.catch(() => {});
    this.#members = Array.from({ length: count }, (_, index) => this.#createMember(index + 1));
    this.profilers = this.#members.map(({ profiler }) => profiler);
    this.counters = createRemoteCounters({
      sendToOne: (message) => {
        const member = this.#members.find(isServing);
        void member?.slot.send(message);
        return member !== undefined;
      },
      sendToAll: (message) => this.#broadcast(message),
      after: clock.after,
    });
    health.onChange((healthy) => this.#broadcast({ kind: 'health', healthy }));
  }

  useRules(rules: AcceptedRules): void {
    this.#rulesInForce = rules;
    for (const member of this.#members) if (isStarted(member)) member.rules.use(rules);
  }

  async connect(signal: AbortSignal): Promise<void> {
    for (const { slot } of this.#members) slot.start();
    await this.#unlessFailed([this.#first.connected.promise], signal);
    this.#state = 'connecting';
    for (const member of this.#members) {
      if (member.slot.state === 'loaded') this.#startDeciding(member);
    }
    await this.#unlessFailed(
      this.#members.map(({ connected }) => connected.promise),
      signal,
    );
  }

  async listen(signal: AbortSignal): Promise<ServingAddresses> {
    const { clock, log } = this.#deps;
    this.#state = 'first_listening';
    await this.#letListen(signal);
    this.#state = 'listening';
    await this.#letListen(signal);
    this.#state = 'started';
    this.#updateHealth();
    // The primary accepts the connections of all; each process only watches its own files.
    const onExhausted = () => this.#openFilesExhausted.add(1);
    this.#openFiles = watchOpenFiles({ clock, log, onExhausted });
    return this.#first.serving.promise;
  }

  describe(): string[] {
    return [
      `processes: ${this.#servingCount.value} of ${this.#deps.count} serve`,
      ...this.#members.map(({ slot }) => `  ${slot.describe()}`),
    ];
  }

  async stop(graceMs: number): Promise<void> {
    this.#openFiles?.close();
    await Promise.all(this.#members.map(({ slot }) => slot.stop(graceMs)));
  }

  get #first(): Member {
    return this.#members[0] as Member;
  }

  #createMember(number: number): Member {
    const { fork, log, clock } = this.#deps;
    const createSender = () => new RulesSender((message) => slot.send(message), this.#partNumbers);
    const slot = new ProcessSlot({
      ...{ number, fork, log, clock },
      onStart: () => {
        member.rules = createSender();
        member.reported = this.#statistics.addProcess();
        if (number === 1 || this.#state !== 'first_connecting') this.#startDeciding(member);
      },
      onMessage: (message) => this.#receive(member, message),
      onEnd: (how, reason) => {
        member.rules.close();
        member.reported.end();
        member.profiler.end();
        member.hasStore = true;
        this.#updateHealth();
        if (this.#state === 'started' || (member.hasConnected && reason === undefined)) {
          this.#replacedCount.add(1);
          return true;
        }
        const message = reason ?? `process ${number} ${how} before it could serve`;
        this.#failed.reject(new AppError('cannot_start', message));
        return false;
      },
    });
    const member: Member = {
      slot,
      profiler: createRemoteProfiler((message) => {
        if (!isServing(member)) return false;
        void slot.send(message);
        return true;
      }),
      rules: createSender(),
      hasStore: true,
      reported: this.#statistics.addProcess(),
      connected: Promise.withResolvers(),
      serving: Promise.withResolvers(),
      hasConnected: false,
    };
    return member;
  }

  /** Sends everything that a process needs before it can decide. */
  #startDeciding(member: Member): void {
    const { environment, health } = this.#deps;
    const { slot } = member;
    const logsForAll = slot.number === 1 && this.#state !== 'started';
    void slot.send({ kind: 'start', environment, number: slot.number, logsForAll });
    void slot.send({ kind: 'health', healthy: health.healthy });
    if (this.#rulesInForce !== undefined) member.rules.use(this.#rulesInForce);
  }

  #receive(member: Member, message: FromProcess): void {
    switch (message.kind) {
      case 'connected':
        member.hasConnected = true;
        member.connected.resolve();
        if (this.#mayListen(member)) this.#letOneListen(member);
        break;
      case 'listening':
        member.serving.resolve(message.addresses);
        this.#updateHealth();
        break;
      case 'store':
        member.hasStore = message.healthy;
        this.#updateHealth();
        break;
      case 'report':
        member.reported.receive(message.statistics);
        message.unmatched.forEach(this.#deps.onUnmatched);
        if (message.limited !== undefined) this.#deps.onLimited(message.limited);
        if (message.recorded !== undefined) this.#deps.onRecorded(message.recorded);
        break;
      case 'profile':
        member.profiler.receive(message);
        break;
      case 'counters':
        this.counters.receive(message);
        break;
      case 'failed':
        break;
    }
  }

  #updateHealth(): void {
    const { health } = this.#deps;
    health.set(
      'store',
      this.#members.every(({ hasStore }) => hasStore),
    );
    this.#servingCount.set(this.#members.filter(isServing).length);
    health.set('processes', this.#state !== 'started' || this.#servingCount.value > 0);
  }

  #broadcast(message: ToProcess): void {
    for (const member of this.#members) if (isStarted(member)) void member.slot.send(message);
  }

  /** Whether a process is or was listening. */
  get #hasListened(): boolean {
    return this.#state === 'listening' || this.#state === 'started';
  }

  #mayListen(member: Member): boolean {
    return this.#hasListened || (this.#state === 'first_listening' && member === this.#first);
  }

  async #letListen(signal: AbortSignal): Promise<void> {
    const called = this.#members.filter((member) => this.#mayListen(member));
    for (const member of called) if (member.slot.state === 'connected') this.#letOneListen(member);
    await this.#unlessFailed(
      called.map(({ serving }) => serving.promise),
      signal,
    );
  }

  #letOneListen({ rules }: Member): void {
    rules.sendAfter({ kind: 'listen', hasListened: this.#hasListened });
  }

  async #unlessFailed(promises: Promise<unknown>[], signal: AbortSignal): Promise<void> {
    await unlessAborted(Promise.race([this.#failed.promise, Promise.all(promises)]), signal);
  }
}

/** Whether `start` was sent to the current process. */
function isStarted({ slot: { state } }: Member): boolean {
  return state === 'starting' || state === 'connected' || state === 'serving';
}

function isServing({ slot }: Member): boolean {
  return slot.state === 'serving';
}
