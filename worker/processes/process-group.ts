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
import type { RecordBatch } from '../recording/record-buffer.ts';
import type { AcceptedRules, Serving, ServingAddresses } from '../serving.ts';
import type { ForkProcess } from './fork-process.ts';
import type { FromProcess, ToProcess } from './message.ts';
import { ProcessSlot } from './process-slot.ts';
import { createRemoteCounters } from './remote-counters.ts';
import { createRemoteProfiler, type RemoteProfiler } from './remote-profiler.ts';
import { RulesSender } from './shared-documents.ts';
import { createStatisticsMerge, type ReportedProcess } from './statistics-merge.ts';

export interface ProcessGroupDeps {
  readonly count: number;
  /** The environment of the settings: each process reads them itself. */
  readonly environment: Environment;
  readonly fork: ForkProcess;
  readonly health: Health;
  readonly metrics: MetricsRegistry;
  readonly takeUnmatched: (sample: UnmatchedSample) => void;
  readonly takeLimited: (share: LimitedShare) => void;
  readonly takeRecorded: (batch: RecordBatch) => void;
  readonly log: Log;
  readonly clock: Clock;
}

interface Member {
  readonly slot: ProcessSlot;
  readonly profiler: RemoteProfiler;
  /** Whether `start` was sent to the current process. */
  isStarted: boolean;
  /** Sends the rules to the current process. */
  rules: RulesSender;
  hasStore: boolean;
  reported: ReportedProcess;
  /** Settled by the first process that reaches this state. */
  readonly connected: PromiseWithResolvers<void>;
  readonly serving: PromiseWithResolvers<ServingAddresses>;
  hasConnected: boolean;
}

export interface ProcessGroup extends Serving {
  /** One for each process, in the order of their numbers. */
  readonly profilers: readonly Profiler[];
}

export function createProcessGroup(deps: ProcessGroupDeps): ProcessGroup {
  const { count, environment, fork, health, log, clock } = deps;
  const merge = createStatisticsMerge(deps.metrics);
  const servingCount = deps.metrics.gauge('ratelimit.processes.serving');
  const replacedCount = deps.metrics.counter('ratelimit.processes.replaced');
  const openFilesExhausted = deps.metrics.counter('ratelimit.open_files_exhausted');
  let openFiles: OpenFilesWatch | undefined;
  /** Rejects when a process cannot start while the worker itself starts. */
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => {});
  const partNames = new PartNumbers();
  let rulesInForce: AcceptedRules | undefined;
  let hasStarted = false;
  /** How many processes may listen, in the order of their numbers, and whether one is or was listening. */
  let listening = 0;
  let hasListened = false;
  const first = createMember(1);
  const others = Array.from({ length: count - 1 }, (_, index) => createMember(index + 2));
  const members = [first, ...others];
  const counters = createRemoteCounters({
    sendToOne(message) {
      const member = members.find(isServing);
      void member?.slot.send(message);
      return member !== undefined;
    },
    sendToAll: broadcast,
    after: clock.after,
  });

  function createMember(number: number): Member {
    const slot = new ProcessSlot({
      number,
      fork,
      log,
      clock,
      onStart() {
        member.isStarted = false;
        member.rules = new RulesSender((message) => slot.send(message), partNames);
        member.reported = merge.addProcess();
        if (number === 1 || first.hasConnected) brief(member);
      },
      onMessage: (message) => take(member, message),
      onEnd(how, reason) {
        member.rules.close();
        member.reported.end();
        member.profiler.end();
        member.hasStore = true;
        noteState();
        if (hasStarted || (member.hasConnected && reason === undefined)) {
          replacedCount.add(1);
          return true;
        }
        const message = reason ?? `process ${number} ${how} before it could serve`;
        failed.reject(new AppError('cannot_start', message));
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
      isStarted: false,
      rules: new RulesSender((message) => slot.send(message), partNames),
      hasStore: true,
      reported: merge.addProcess(),
      connected: Promise.withResolvers(),
      serving: Promise.withResolvers(),
      hasConnected: false,
    };
    return member;
  }

  function brief(member: Member): void {
    const { slot } = member;
    member.isStarted = true;
    const logsForAll = slot.number === 1 && !hasStarted;
    void slot.send({ kind: 'start', environment, number: slot.number, logsForAll });
    void slot.send({ kind: 'health', healthy: health.healthy });
    if (rulesInForce !== undefined) member.rules.use(rulesInForce);
  }

  function take(member: Member, message: FromProcess): void {
    switch (message.kind) {
      case 'connected':
        member.hasConnected = true;
        member.connected.resolve();
        if (member.slot.number <= listening) letOneListen(member);
        break;
      case 'listening':
        hasListened = true;
        member.serving.resolve(message.addresses);
        noteState();
        break;
      case 'store':
        member.hasStore = message.healthy;
        noteState();
        break;
      case 'report':
        member.reported.take(message.statistics);
        message.unmatched.forEach(deps.takeUnmatched);
        if (message.limited !== undefined) deps.takeLimited(message.limited);
        if (message.recorded !== undefined) deps.takeRecorded(message.recorded);
        break;
      case 'profile':
        member.profiler.take(message);
        break;
      case 'counters':
        counters.take(message);
        break;
      case 'failed':
        break;
    }
  }

  function noteState(): void {
    health.set(
      'store',
      members.every(({ hasStore }) => hasStore),
    );
    servingCount.set(members.filter(isServing).length);
    health.set('processes', !hasStarted || servingCount.value > 0);
  }

  function broadcast(message: ToProcess): void {
    for (const { slot, isStarted } of members) if (isStarted) void slot.send(message);
  }

  function letOneListen({ rules }: Member): void {
    rules.sendAfter({ kind: 'listen', hasListened });
  }

  async function letListen(number: number, signal: AbortSignal): Promise<void> {
    listening = number;
    const called = members.slice(0, number);
    for (const member of called) if (member.slot.state === 'connected') letOneListen(member);
    await unlessFailed(
      called.map(({ serving }) => serving.promise),
      signal,
    );
  }

  async function unlessFailed(promises: Promise<unknown>[], signal: AbortSignal): Promise<void> {
    await unlessAborted(Promise.race([failed.promise, Promise.all(promises)]), signal);
  }

  health.onChange((healthy) => broadcast({ kind: 'health', healthy }));

  return {
    counters,
    profilers: members.map(({ profiler }) => profiler),
    useRules(rules) {
      rulesInForce = rules;
      for (const member of members) if (member.isStarted) member.rules.use(rules);
    },
    async connect(signal) {
      for (const { slot } of members) slot.start();
      await unlessFailed([first.connected.promise], signal);
      for (const member of others) if (!member.isStarted) brief(member);
      await unlessFailed(
        others.map(({ connected }) => connected.promise),
        signal,
      );
    },
    async listen(signal) {
      await letListen(1, signal);
      await letListen(count, signal);
      hasStarted = true;
      noteState();
      // The primary accepts the connections of all; each process only watches its own files.
      openFiles = watchOpenFiles({ clock, log, onExhausted: () => openFilesExhausted.add(1) });
      return first.serving.promise;
    },
    describe: () => [
      `processes: ${servingCount.value} of ${count} serve`,
      ...members.map(({ slot }) => `  ${slot.describe()}`),
    ],
    async stop(graceMs) {
      openFiles?.close();
      await Promise.all(members.map(({ slot }) => slot.stop(graceMs)));
    },
  };
}

function isServing({ slot }: Member): boolean {
  return slot.state === 'serving';
}
