// The composition root of the worker: its parts, the order in which they start, and how they end. Read it top to
// bottom. serving.ts composes the part that answers callers.

import { randomUUID } from 'node:crypto';
import type { Clock } from '../shared/clock.ts';
import { parseHostPort } from '../shared/host-port.ts';
import type { LineOutput } from '../shared/line-output.ts';
import type { Log } from '../shared/log.ts';
import { createRuleSetBuilder, type RuleSetBuilder } from '../shared/rules/rule-set.ts';
import type { Environment } from '../shared/settings/setting.ts';
import type { StopSignal } from '../shared/stop-signals.ts';
import { unlessAborted } from '../shared/unless-aborted.ts';
import { toAgreement } from './agreement.ts';
import { describeExpiries, measureExpiry } from './client-tls.ts';
import type { UnmatchedSample } from './decision/unmatched-sampler.ts';
import { toDecisionOptions } from './decision-options.ts';
import { createLimitedValuesFor, createLinkFor } from './fleet/fleet.ts';
import type { ListenAddress } from './grpc/listen-address.ts';
import { createHealth } from './health.ts';
import { createDebugServer } from './listen/debug.ts';
import { describeCertificates } from './listen/server-tls.ts';
import { Statistics, type StatisticsOptions } from './metrics/statistics.ts';
import { createRecentStoreCalls } from './metrics/store-calls.ts';
import type { Metrics } from './metrics.ts';
import { FileSource } from './rules-source/file-source.ts';
import { createLoadRules } from './rules-source/load-rules.ts';
import { createParsingThread, type ParsingThread } from './rules-source/parsing-thread.ts';
import { createRuleEnds } from './rules-source/rule-ends.ts';
import { toRuleSetOptions } from './rules-source/rule-set-options.ts';
import { RulesInForce } from './rules-source/rules-in-force.ts';
import type { GoodLoad, RulesSource } from './rules-source/source.ts';
import { createServing, type ServingAddresses } from './serving.ts';
import { givenName } from './setting-names.ts';
import type { DumpRow } from './settings/dump.ts';
import type { WorkerSettings } from './settings.ts';
import { collectStartGarbage } from './start-garbage.ts';
import { createReadToken, type ReadToken } from './token-file.ts';
import type { Tracer } from './tracing/tracer.ts';
import { Unmatched } from './unmatched.ts';

export interface WorkerDeps {
  readonly settings: WorkerSettings;
  /** The environment from which the settings were read. */
  readonly environment: Environment;
  /** The settings as the debug port shows them. */
  readonly dump: readonly DumpRow[];
  readonly log: Log;
  readonly clock: Clock;
  /** Receives the statistics as lines when no other output is on. */
  readonly standardOutput: LineOutput;
  /** Undefined when traces are off, or other processes decide. The worker stops it. */
  readonly tracer: Tracer | undefined;
  /** Runs between the store's first answer and the opening of the ports, if this process decides. */
  readonly warmUp?: (signal: AbortSignal) => Promise<void>;
}

export interface Worker {
  /** Resolves when every port is open. `signal` aborts the start. */
  start(signal: AbortSignal): Promise<WorkerAddresses>;
  /** Makes the worker unhealthy from now on; the ports stay open until `stop`. */
  announceStop(reason: StopSignal): void;
  /** Lets decisions in flight finish for at most `stopGraceMs` and closes everything. */
  stop(): Promise<void>;
}

export interface WorkerAddresses extends ServingAddresses {
  readonly debug: ListenAddress;
}

/** Time limit for decisions in flight after the signal to stop. */
export const stopGraceMs = 10_000;
const statisticsGraceMs = 1_000;
const tracerGraceMs = 5_000;
const recordingGraceMs = 1_000;

export async function createWorker(deps: WorkerDeps): Promise<Worker> {
  const { settings, log, clock, tracer } = deps;
  /** Identifies this start of the worker, however many processes decide. */
  const instance = randomUUID();
  const startedAt = new Date(clock.wallMs()).toISOString();
  const statistics = new Statistics({ options: toStatisticsOptions(deps), log, clock });
  const { metrics } = statistics;
  const agreement = toAgreement(settings);
  metrics.gauge('ratelimit.agreement').set(agreement.number);
  const health = createHealth({
    requireConfig: settings.health.needsConfig,
    isShared: settings.processes.count > 1,
    log,
  });
  const rulesInForce = new RulesInForce({
    log,
    metrics,
    health,
    clock,
    portsWait: !settings.config.forceStart,
  });
  const unmatched = new Unmatched(metrics);
  const storeCalls = createRecentStoreCalls(metrics.storeCallDurations, clock);
  const parsingThread = createParsingThread({ log, clock });
  const { tokenFile } = settings.xds;
  const readToken = tokenFile === '' ? undefined : createReadToken(tokenFile, log);
  const builder = createRuleSetBuilder(toRuleSetOptions(settings));
  const source = await createSource(deps, { instance, metrics, builder, parsingThread, readToken });
  const limited = createLimitedValuesFor(settings, clock);
  const link =
    limited &&
    (await createLinkFor({
      settings,
      instance,
      metrics,
      limited,
      source,
      readToken,
      counters: () => serving.counters,
      log,
      clock,
    }));
  const onUnmatched = (sample: UnmatchedSample) => {
    unmatched.add(sample);
    link?.noteUnmatched(sample);
  };
  const recording = settings.recording.path === '' ? undefined : await createRecording();
  const processes = settings.processes.count > 1 ? await createProcesses() : undefined;
  const serving =
    processes ??
    (await createServing({
      settings,
      health,
      metrics,
      onUnmatched,
      observer: limited,
      recorder: recording?.createRecorder(),
      log,
      clock,
      tracer,
    }));

  function useRules(load: GoodLoad): void {
    unmatched.useRules(load.documents, load.atMs);
    serving.useRules(load);
  }
  const ruleEnds = createRuleEnds({
    builder,
    onChange(load) {
      rulesInForce.renew(load.ruleSet);
      useRules(load);
    },
    log,
    clock,
  });

  let awaited = 'nothing, it is about to start';
  const debug = createDebugServer(
    {
      providers: {
        rules: () => rulesInForce.current?.describe(),
        ...(processes && { profilers: processes.profilers }),
        stats: () => metrics.snapshot(),
        settings: () => [
          ...deps.dump.map(({ name, value, from }) =>
            from === 'default' ? `${name}=${value}` : `${name}=${value} (from ${from})`,
          ),
          `agreement: ${agreement.hash} (the settings that must be the same on all workers; /status lists them)`,
        ],
        status: () => [
          `started: ${startedAt}, as instance ${instance}`,
          `waiting for: ${awaited}`,
          `healthy: ${health.healthy}`,
          ...[...health.components()].map(([name, state]) => `  ${name}: ${state}`),
          `rules: ${rulesInForce.describe()}`,
          `rules come from: ${source.describe()}`,
          ...(link === undefined ? [] : [link.describe()]),
          unmatched.summarize(),
          ...serving.describe(),
          ...storeCalls.describe(),
          ...describeCertificates(metrics.snapshot()),
          ...describeExpiries(metrics.snapshot()),
          `agreement: ${agreement.hash}, the same on all workers that count together`,
          ...agreement.parts.map((part) => `  ${part}`),
        ],
        unmatched: () => unmatched.describe(),
      },
      log,
      clock,
    },
    {
      ...settings.debug,
      tls: settings.debug.tls.enabled ? { ...settings.http.tls, metrics } : undefined,
    },
  );

  /** Loaded only if decisions are recorded. */
  async function createRecording() {
    const { createRecordFileFor, createRecorderFor } = await import('./recording/recording.ts');
    const file = createRecordFileFor({
      settings,
      decisionOptions: toDecisionOptions(settings),
      instance,
      metrics,
      log,
      clock,
    });
    return { file, createRecorder: () => createRecorderFor({ settings, log, clock }, file) };
  }

  /** Loaded only with several processes. */
  async function createProcesses() {
    const { ProcessGroup } = await import('./processes/process-group.ts');
    const { forkProcess } = await import('./processes/fork-process.ts');
    return new ProcessGroup({
      count: settings.processes.count,
      environment: deps.environment,
      fork: forkProcess,
      health,
      metrics,
      onUnmatched,
      onLimited: (share) => limited?.addShare(share),
      onRecorded: (batch) => recording?.file.addBatch(batch),
      log,
      clock,
    });
  }

  return {
    async start(signal) {
      const debugAddress = await debug.start();
      await statistics.start();
      awaited = 'the counter store, and a first good load of the rules';
      await source.start((result) => {
        rulesInForce.apply(result);
        if (!result.ok) return;
        useRules(result);
        ruleEnds.follow(result);
      });
      await serving.connect(signal);
      awaited = 'a first good load of the rules';
      if (processes === undefined) await deps.warmUp?.(signal);
      if (!settings.config.forceStart) await unlessAborted(rulesInForce.firstGoodLoad, signal);
      collectStartGarbage();
      const addresses = await serving.listen(signal);
      link?.start();
      awaited = 'nothing, it is serving';
      return { debug: debugAddress, ...addresses };
    },
    announceStop(reason) {
      awaited = 'nothing, it is stopping';
      // Only SIGTERM has its own component: the other signals end the process by hand.
      if (reason === 'SIGTERM') health.set('sigterm', false);
    },
    async stop() {
      ruleEnds.close();
      storeCalls.close();
      await Promise.all([serving.stop(stopGraceMs), source.close(), parsingThread.close()]);
      await recording?.file.stop(recordingGraceMs);
      // Stopped last, so that it can report the end.
      await link?.stop();
      await Promise.all([statistics.stop(statisticsGraceMs), tracer?.stop(tracerGraceMs)]);
      await debug.stop(0);
    },
  };
}

interface SourceParts {
  readonly instance: string;
  readonly metrics: Metrics;
  readonly builder: RuleSetBuilder;
  readonly parsingThread: ParsingThread;
  readonly readToken: ReadToken | undefined;
}

/** Loads the client of a management server only if there is one. */
async function createSource(
  { settings, log, clock }: WorkerDeps,
  { readToken, ...parts }: SourceParts,
): Promise<RulesSource> {
  const { metrics, builder, parsingThread } = parts;
  if (settings.config.source === 'xds') {
    const { XdsSource } = await import('./rules-source/xds-source.ts');
    const { toXdsSourceOptions } = await import('./rules-source/xds-source-options.ts');
    const { loadDiscoveryProtos } = await import('../shared/wire/discovery.ts');
    const { loadProtos } = await import('../shared/wire/protos.ts');
    const options = toXdsSourceOptions(settings, Math.random, readToken);
    const { tls } = options.servers[0];
    if (tls !== undefined) measureExpiry('xds', tls, { metrics, clock });
    return new XdsSource({
      ...parts,
      options,
      discovery: loadDiscoveryProtos(),
      protos: loadProtos(),
      log,
      clock,
    });
  }
  return new FileSource({
    options: settings.runtime,
    load: createLoadRules(builder, parsingThread, clock),
    metrics,
    log,
    clock,
  });
}

function toStatisticsOptions({ settings, standardOutput }: WorkerDeps): StatisticsOptions {
  const { push, tagged, pull, disabled, flushIntervalMs, extraTags, runtimeMetricNames } =
    settings.stats;
  const hasOtherOutput = push.enabled || tagged.enabled || pull.enabled;
  const pullAddress = parseHostPort(pull.address, 0);
  return {
    push: push.enabled && !disabled ? push : undefined,
    tagged:
      tagged.enabled && !disabled
        ? { host: push.host, port: push.port, rewrites: tagged.mogrifiers }
        : undefined,
    pull:
      pull.enabled && !disabled && pullAddress.ok
        ? {
            ...pull,
            ...pullAddress.value,
            addressSetting: givenName(settings, 'PULLMETRICS_ADDR'),
            mapperSetting: givenName(settings, 'PULLMETRICS_MAPPER_YAML'),
          }
        : undefined,
    lines: hasOtherOutput || disabled ? undefined : standardOutput,
    flushIntervalMs,
    extraTags,
    runtimeNamesMax: runtimeMetricNames,
  };
}
