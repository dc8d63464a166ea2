// The worker put together from its parts, read from top to bottom: what it consists of, in which
// order it starts and how it ends. What each part does is in the folder named for it.
import { Resolver } from 'node:dns/promises';
import type { Clock } from '../shared/clock.ts';
import { parseHostPort } from '../shared/host-port.ts';
import type { StopSignal } from '../shared/lifecycle.ts';
import type { LineOutput } from '../shared/line-output.ts';
import type { Log } from '../shared/log.ts';
import type { DumpRow } from '../shared/settings/dump.ts';
import type { TlsWatch } from '../shared/tls.ts';
import type { Tracer } from '../shared/tracing.ts';
import { loadDiscoveryProtos } from '../shared/wire/discovery.ts';
import { loadProtos, type Protos } from '../shared/wire/protos.ts';
import { toAgreement } from './agreement.ts';
import { createMemcachedMetrics } from './counters/memcached/memcached-metrics.ts';
import { toMemcachedOptions } from './counters/memcached/memcached-options.ts';
import { createMemcachedStore } from './counters/memcached/memcached-store.ts';
import { createMemoryStore } from './counters/memory-store.ts';
import { createPerSecondStore } from './counters/per-second-store.ts';
import { toRedisStoreOptions } from './counters/redis/redis-options.ts';
import { createRedisStore } from './counters/redis/redis-store.ts';
import type { CounterStore } from './counters/store.ts';
import { createDecisionTrail } from './decision/decision-trail.ts';
import { createOverLimitCache } from './decision/over-limit-cache.ts';
import type { HeaderOptions } from './decision/response-headers.ts';
import { createShouldRateLimit } from './decision/should-rate-limit.ts';
import { createHealth, type Health } from './health.ts';
import type { ListenAddress } from './listen/address.ts';
import { createDebugServer } from './listen/debug.ts';
import { createGrpcJsTransport } from './listen/grpc/grpc-js-transport.ts';
import { createGrpcServer } from './listen/grpc/grpc-server.ts';
import { createHttpServer } from './listen/http.ts';
import { readServerTls } from './listen/server-tls.ts';
import type { Metrics } from './metrics/metric.ts';
import { createStatistics, type StatisticsOptions } from './metrics/statistics.ts';
import { createFileSource } from './rules-source/file-source.ts';
import { createLoadRules } from './rules-source/load-rules.ts';
import { createRulesInForce } from './rules-source/rules-in-force.ts';
import type { RulesSource } from './rules-source/source.ts';
import { createXdsSource } from './rules-source/xds-source.ts';
import { toXdsSourceOptions } from './rules-source/xds-source-options.ts';
import type { WorkerSettings } from './settings.ts';
import { createDecisionSpans } from './tracing-decision.ts';
import { createRpcSpanDescription, toRpcConventions } from './tracing-rpc.ts';

export interface WorkerDeps {
  readonly settings: WorkerSettings;
  /** The settings as the debug port shows them. */
  readonly dump: readonly DumpRow[];
  readonly log: Log;
  readonly clock: Clock;
  /** Takes the statistics, as lines, when no other output is on. */
  readonly standardOutput: LineOutput;
  /** Undefined when traces are off. The worker stops it. */
  readonly tracer: Tracer | undefined;
}

export interface Worker {
  /** Resolves when every port is open. `signal` gives the start up. */
  start(signal: AbortSignal): Promise<WorkerAddresses>;
  /** Unhealthy from now on; the ports stay open until `stop`. */
  announceStop(reason: StopSignal): void;
  /** Lets decisions in flight finish for at most `stopGraceMs` and closes everything. */
  stop(): Promise<void>;
}

export interface WorkerAddresses {
  readonly http: ListenAddress;
  readonly grpc: ListenAddress;
  readonly debug: ListenAddress;
}

/** How long decisions in flight may take after the signal to stop. */
export const stopGraceMs = 10_000;
const statisticsGraceMs = 1_000;
const tracerGraceMs = 5_000;
/** Bounds of a look-up of memory-cache nodes. */
const dnsTimeoutMs = 2_000;
const dnsTries = 2;

export function createWorker(deps: WorkerDeps): Worker {
  const { settings, log, clock, tracer } = deps;
  const startedAt = new Date(clock.wallMs()).toISOString();
  const statistics = createStatistics({ options: toStatisticsOptions(deps), log, clock });
  const { metrics } = statistics;
  const agreement = toAgreement(settings);
  metrics.gauge('ratelimit.agreement').set(agreement.number);
  const health = createHealth({ requireConfig: settings.health.needsConfig });
  const rulesInForce = createRulesInForce({ log, metrics, health, clock });
  const protos = loadProtos();
  const source = createSource(deps, metrics, protos);
  const store = createStore(deps, metrics, health);
  const shouldRateLimit = createShouldRateLimit({
    rules: () => rulesInForce.current,
    store,
    overLimitCache: createOverLimitCache(settings.limits.localCacheSizeBytes, metrics),
    metrics,
    clock,
    spans:
      tracer &&
      createDecisionSpans({
        backend: settings.counting.backend,
        hasPerSecondStore: settings.perSecondStore.enabled,
      }),
    trail: createDecisionTrail(log),
    options: {
      weekResetDay: settings.limits.weekResetDay,
      calendarMonths: settings.limits.calendarMonth,
      storeTimeoutMs: settings.store.timeoutMs,
      cacheKeyPrefix: settings.counting.keyPrefix,
      nearLimitRatio: settings.limits.nearLimitRatio,
      shadowMode: settings.limits.shadowMode,
      quotaMode: settings.limits.quotaMode,
      // A memory cache cannot do it (decisions 16), which is told at the start.
      stopIncrementWhenOver:
        settings.limits.stopIncrementWhenOverLimit && settings.counting.backend !== 'memcached',
      sanitizeMetricDots: settings.stats.sanitizeDots,
      dynamicMetadata: settings.limits.responseDynamicMetadata,
      headers: toHeaderOptions(settings.headers),
    },
  });

  let awaited = 'nothing, it is about to start';
  const debug = createDebugServer(
    {
      providers: {
        rules: () => rulesInForce.current?.describe(),
        stats: () => metrics.snapshot(),
        settings: () => [
          ...deps.dump.map(({ name, value, from }) =>
            from === 'default' ? `${name}=${value}` : `${name}=${value} (from ${from})`,
          ),
          `agreement: ${agreement.hash} (what has to be the same on all workers; /status lists it)`,
        ],
        status: () => [
          `started: ${startedAt}`,
          `waiting for: ${awaited}`,
          `healthy: ${health.healthy}`,
          ...[...health.components()].map(([name, state]) => `  ${name}: ${state}`),
          `rules: ${rulesInForce.describe()}`,
          `rules come from: ${source.describe()}`,
          `counters: ${store.state().detail}`,
          `agreement: ${agreement.hash}, the same on all workers that count together`,
          ...agreement.parts.map((part) => `  ${part}`),
        ],
      },
      log,
      clock,
    },
    { ...settings.debug, tls: settings.debug.tls.enabled ? settings.http.tls : undefined },
  );
  const http = createHttpServer(
    { shouldRateLimit, health, log, clock, tracer },
    { ...settings.http, tls: settings.http.tls.enabled ? settings.http.tls : undefined },
  );
  let grpc: ReturnType<typeof createGrpcServer> | undefined;
  let certificateWatch: TlsWatch | undefined;

  return {
    async start(signal) {
      const debugAddress = await debug.start();
      await statistics.start();
      awaited = 'the counter store, and a first load of the rules';
      await source.start((result) => rulesInForce.apply(result));
      await store.connect(signal);
      awaited = 'a first load of the rules';
      if (!settings.config.forceStart) await unlessAborted(rulesInForce.firstLoad, signal);
      const serverTls = settings.grpc.tls.enabled
        ? await readServerTls(settings.grpc.tls, 'gRPC', { clock, log })
        : undefined;
      grpc = createGrpcServer(
        {
          shouldRateLimit,
          health,
          metrics,
          log,
          clock,
          protos,
          createTransport: createGrpcJsTransport,
          tracing: tracer && {
            tracer,
            description: createRpcSpanDescription(
              protos.rateLimitService.ShouldRateLimit.path,
              toRpcConventions(settings.tracing.semanticConventions),
            ),
          },
        },
        {
          target:
            settings.grpc.uds === ''
              ? { host: settings.grpc.host, port: settings.grpc.port }
              : { path: settings.grpc.uds },
          tls: serverTls && {
            ...serverTls.certificates,
            clientSan: settings.grpc.tls.clientSan || undefined,
          },
          maxConnectionAgeMs: settings.grpc.maxConnectionAgeMs,
          maxConnectionAgeGraceMs: settings.grpc.maxConnectionAgeGraceMs,
        },
      );
      signal.throwIfAborted();
      const addresses = {
        debug: debugAddress,
        grpc: await grpc.start(),
        http: await http.start(),
      };
      certificateWatch = serverTls?.watch(grpc.replaceCertificates);
      awaited = 'nothing, it is serving';
      return addresses;
    },
    announceStop(reason) {
      awaited = 'nothing, it is stopping';
      // Only SIGTERM is a component of its own: the others end the process by hand.
      if (reason === 'SIGTERM') health.set('sigterm', false);
    },
    async stop() {
      certificateWatch?.close();
      await Promise.all([grpc?.stop(stopGraceMs), http.stop(stopGraceMs), source.close()]);
      await store.close(stopGraceMs);
      await Promise.all([statistics.stop(statisticsGraceMs), tracer?.stop(tracerGraceMs)]);
      await debug.stop(0);
    },
  };
}

function createSource(
  { settings, log, clock }: WorkerDeps,
  metrics: Metrics,
  protos: Protos,
): RulesSource {
  if (settings.config.source === 'xds') {
    return createXdsSource({
      options: toXdsSourceOptions(settings, Math.random),
      discovery: loadDiscoveryProtos(),
      protos,
      metrics,
      log,
      clock,
    });
  }
  return createFileSource({
    options: settings.runtime,
    load: createLoadRules({
      mergeDomains: settings.config.mergeDomains,
      sanitizeMetricDots: settings.stats.sanitizeDots,
    }),
    metrics,
    log,
    clock,
  });
}

function createStore(
  { settings, log, clock }: WorkerDeps,
  metrics: Metrics,
  health: Health,
): CounterStore {
  if (settings.counting.backend === 'memory') return createMemoryStore({ clock, log });
  if (settings.counting.backend === 'memcached') {
    const resolver = new Resolver({ timeout: dnsTimeoutMs, tries: dnsTries });
    return createMemcachedStore(toMemcachedOptions(settings), {
      clock,
      log,
      metrics: createMemcachedMetrics(metrics),
      resolveSrv: (name) => resolver.resolveSrv(name),
    });
  }
  const createOne = (which: 'store' | 'perSecondStore', pool: string): CounterStore =>
    createRedisStore(toRedisStoreOptions(settings, which, clock), {
      clock,
      log,
      clockOffset: metrics.gauge(
        which === 'store'
          ? 'ratelimit.store.clock_offset_ms'
          : 'ratelimit.per_second_store.clock_offset_ms',
      ),
      connections: {
        active: metrics.gauge(`ratelimit.${pool}.cx_active`),
        total: metrics.counter(`ratelimit.${pool}.cx_total`),
        localClose: metrics.counter(`ratelimit.${pool}.cx_local_close`),
      },
      onHealthChange: (isConnected) => {
        if (settings.health.needsStoreConnection) health.set('store', isConnected);
      },
    });
  const main = createOne('store', 'redis_pool');
  if (!settings.perSecondStore.enabled) return main;
  const perSecond = createOne('perSecondStore', 'redis_per_second_pool');
  return createPerSecondStore({ main, perSecond });
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
      pull.enabled && !disabled && pullAddress.ok ? { ...pull, ...pullAddress.value } : undefined,
    lines: hasOtherOutput || disabled ? undefined : standardOutput,
    flushIntervalMs,
    extraTags,
    runtimeNamesMax: runtimeMetricNames,
  };
}

function toHeaderOptions({ response, request }: WorkerSettings['headers']): HeaderOptions {
  return {
    response: response.enabled ? response : undefined,
    request: request.enabled ? request : undefined,
    perUnit: response.perUnit ? response : undefined,
  };
}

function unlessAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  return Promise.race([promise, aborted.promise]).finally(() =>
    signal.removeEventListener('abort', onAbort),
  );
}
