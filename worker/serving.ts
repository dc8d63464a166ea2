// Composes the part that answers callers: the counter store, the decision, and the gRPC and HTTP ports. Composition
// roots add rules, statistics and signals.
import type { Clock } from '../shared/clock.ts';
import type { Log } from '../shared/log.ts';
import { type OpenFilesWatch, watchOpenFiles } from '../shared/open-files.ts';
import type { RuleSet } from '../shared/rules/rule.ts';
import type { TlsWatch } from '../shared/tls.ts';
import { createFailurePolicy } from './counters/failure/failure-policy.ts';
import { createOutages, type Outages } from './counters/failure/outages.ts';
import { Leases } from './counters/leases.ts';
import { storeKinds } from './counters/store-kinds.ts';
import { type CounterAccess, createCounterAccess } from './decision/counter-access.ts';
import { createDecisionTrail } from './decision/decision-trail.ts';
import { createOverLimitCache } from './decision/over-limit-cache.ts';
import {
  createShouldRateLimit,
  type DecisionRecorder,
  type OverLimitObserver,
} from './decision/should-rate-limit.ts';
import { createUnmatchedSampler, type UnmatchedSample } from './decision/unmatched-sampler.ts';
import { toDecisionOptions } from './decision-options.ts';
import { LargeRequests } from './grpc/large-requests.ts';
import type { ListenAddress } from './grpc/listen-address.ts';
import type { Health } from './health.ts';
import { decisionMethodPath, undecodable } from './listen/grpc/decision-method.ts';
import { createGrpcServer } from './listen/grpc/grpc-server.ts';
import { createHttpServer } from './listen/http.ts';
import { letCallersLeave } from './listen/leaving.ts';
import { readServerTls } from './listen/server-tls.ts';
import type { Metrics } from './metrics.ts';
import { createQuota } from './quota/quota-method.ts';
import type { GoodLoad } from './rules-source/source.ts';
import type { WorkerSettings } from './settings.ts';
import type { Tracer } from './tracing/tracer.ts';
import { createRpcSpanDescription, toRpcConventions } from './tracing-rpc.ts';

export interface Serving {
  /** Sets the rules for decisions from now on. Before the first rules every decision fails. */
  useRules(rules: AcceptedRules): void;
  /** Resolves when the counter store has answered. `signal` aborts the wait. */
  connect(signal: AbortSignal): Promise<void>;
  /** Resolves when the ports are open; rejects with AppError `cannot_start`. Called after `connect`. */
  listen(signal: AbortSignal, options?: ListenOptions): Promise<ServingAddresses>;
  readonly counters: CounterAccess;
  /** Lines for the debug port. */
  describe(): readonly string[];
  /** Lets decisions in flight finish for at most `graceMs` and closes everything. */
  stop(graceMs: number): Promise<void>;
}

export interface ListenOptions {
  /** Whether another process of this worker is or was listening on the same unix socket. */
  readonly sharesSocket: boolean;
}

export type AcceptedRules = Pick<GoodLoad, 'ruleSet' | 'documents' | 'atMs'>;

export interface ServingAddresses {
  readonly http: ListenAddress;
  readonly grpc: ListenAddress;
}

export interface ServingDeps {
  readonly settings: WorkerSettings;
  readonly health: Health;
  readonly metrics: Metrics;
  /** Receives samples of the descriptors that no rule matches. */
  readonly onUnmatched: (sample: UnmatchedSample) => void;
  /** Undefined without a link to a control plane. */
  readonly observer: OverLimitObserver | undefined;
  /** Undefined if decisions are not recorded. */
  readonly recorder?: DecisionRecorder | undefined;
  readonly log: Log;
  readonly clock: Clock;
  /** Undefined when traces are off. */
  readonly tracer: Tracer | undefined;
  /** Whether it has its own ports even when several processes share theirs. */
  readonly listensAlone?: boolean;
}

/** Time limit for callers that do not stop sending requests. */
export const leaveLimitMs = 2_000;

export async function createServing(deps: ServingDeps): Promise<Serving> {
  const { settings, health, metrics, log, clock, tracer } = deps;
  const { failureMode, backend } = settings.counting;
  const kind = storeKinds[backend];
  const outages: Outages[] = [];
  const outagesAreOver = () => outages.every(({ areOver }) => areOver);
  const failurePolicy =
    failureMode === 'error' || !kind.needsServer
      ? undefined
      : createFailurePolicy({ mode: failureMode, metrics, clock, log, outagesAreOver });
  const onError = kind.countsBeforeAnswer
    ? 'KVSTORE_FAILURE_MODE=error: callers get an error (Envoy: failure_mode_deny decides)'
    : 'KVSTORE_FAILURE_MODE=error: its counters count as 0, and requests pass';
  const addOutages = (metricPrefix: string): Outages => {
    const added = createOutages({
      metricPrefix,
      metrics,
      clock,
      onOver() {
        if (outagesAreOver()) failurePolicy?.storeIsBack();
      },
    });
    outages.push(added);
    return added;
  };
  const store = await kind.create(settings, { health, metrics, log, clock, addOutages });
  const rules: { current: RuleSet | undefined } = { current: undefined };
  const leases = kind.countsBeforeAnswer ? new Leases({ store, clock, metrics }) : undefined;
  const overLimitCache = createOverLimitCache(settings.limits.localCacheSizeBytes, metrics, clock);
  const options = toDecisionOptions(settings);
  const unmatched = createUnmatchedSampler(metrics, deps.onUnmatched);
  const shouldRateLimit = createShouldRateLimit({
    rules,
    store,
    leases,
    failurePolicy,
    overLimitCache,
    metrics,
    unmatched,
    observer: deps.observer,
    recorder: deps.recorder,
    clock,
    log,
    describeStoreCall: (hits) => kind.describeCall(hits, settings),
    trail: createDecisionTrail(log),
    options,
  });
  const quota = createQuota({
    ...{ rules, store, unmatched, metrics, log, clock, options, tracer },
    isShared: kind.isShared,
  });
  const largeRequests = new LargeRequests(() => clock.monotonicMs());
  const http = createHttpServer(
    {
      shouldRateLimit,
      requestBounds: settings.requests,
      largeRequests,
      health,
      log,
      clock,
      duration: metrics.decisionDuration,
      onUndecodable: () => metrics.counter(undecodable).add(1),
      tracer,
    },
    {
      ...settings.http,
      tls: settings.http.tls.enabled ? { ...settings.http.tls, metrics } : undefined,
      exclusive: deps.listensAlone === true,
    },
  );
  const openFilesExhausted = metrics.counter('ratelimit.open_files_exhausted');
  let grpc: ReturnType<typeof createGrpcServer> | undefined;
  let certificateWatch: TlsWatch | undefined;
  let openFiles: OpenFilesWatch | undefined;

  return {
    useRules(accepted) {
      rules.current = accepted.ruleSet;
    },
    connect: (signal) => store.connect(signal),
    counters: createCounterAccess({
      rules,
      store,
      leases,
      overLimitCache,
      clock,
      options,
    }),
    async listen(signal, { sharesSocket } = { sharesSocket: false }) {
      const serverTls = settings.grpc.tls.enabled
        ? await readServerTls(settings.grpc.tls, 'gRPC', { clock, log, metrics })
        : undefined;
      grpc = createGrpcServer(
        {
          shouldRateLimit,
          requestBounds: settings.requests,
          largeRequests,
          health,
          metrics,
          log,
          clock,
          furtherMethods: quota.methods,
          tracing: tracer && {
            tracer,
            description: createRpcSpanDescription(
              decisionMethodPath,
              toRpcConventions(settings.tracing.semanticConventions),
            ),
          },
        },
        {
          target:
            settings.grpc.uds === ''
              ? {
                  host: settings.grpc.host,
                  port: settings.grpc.port,
                  exclusive: deps.listensAlone === true,
                }
              : { path: settings.grpc.uds, isShared: sharesSocket },
          tls: serverTls && {
            ...serverTls.certificates,
            clientSan: settings.grpc.tls.clientSan || undefined,
          },
          maxConnectionAgeMs: settings.grpc.maxConnectionAgeMs,
          maxConnectionAgeGraceMs: settings.grpc.maxConnectionAgeGraceMs,
          maxConnections: settings.grpc.maxConnections,
        },
      );
      signal.throwIfAborted();
      const addresses = { grpc: await grpc.start(), http: await http.start() };
      certificateWatch = serverTls?.watch(grpc.replaceCertificates);
      openFiles = watchOpenFiles({ clock, log, onExhausted: () => openFilesExhausted.add(1) });
      return addresses;
    },
    describe: () => [
      `counters: ${store.state().detail}`,
      ...outages.flatMap((each) => each.describe()).map((text) => `  not asked: ${text}`),
      ...quota.describe(),
      ...(kind.needsServer
        ? [`when the store fails: ${failurePolicy?.describe() ?? onError}`]
        : []),
    ],
    async stop(graceMs) {
      certificateWatch?.close();
      openFiles?.close();
      if (graceMs > 0 && grpc) await letCallersLeave([grpc, http], leaveLimitMs, clock);
      await Promise.all([grpc?.stop(graceMs), http.stop(graceMs)]);
      leases?.close();
      quota.close();
      await store.close(graceMs);
      failurePolicy?.close();
    },
  };
}
