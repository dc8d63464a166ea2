// Makes decisions before there are callers. A newly started program takes many times longer for a decision, and proxies
// do not wait: some admit a request without an answer after 20 ms. So all code of a decision runs before the ports
// open, from bytes on a connection to the store and back, in a second instance of serving.ts. It is isolated: its log,
// statistics and health are discarded, and its counters have keys of their own that soon expire.
import { readFile } from 'node:fs/promises';
import type { Clock } from '../shared/clock.ts';
import { type Log, silentLog } from '../shared/log.ts';
import { buildRuleSet } from '../shared/rules/rule-set.ts';
import { unlessAborted } from '../shared/unless-aborted.ts';
import type { ListenAddress } from './grpc/listen-address.ts';
import { createHealth } from './health.ts';
import { createRegistry } from './metrics/registry.ts';
import { createServing, type Serving } from './serving.ts';
import type { WorkerSettings } from './settings.ts';
import { createSampleCaller, postSample, type SampleTarget } from './warm-up/sample-caller.ts';
import {
  createSampleOfOneCounter,
  createSampleRequests,
  sampleRules,
  toSampleKeyPrefix,
} from './warm-up/sample-traffic.ts';

export interface WarmUpDeps {
  readonly settings: WorkerSettings;
  readonly clock: Clock;
  /** Default 1.5 s: a slow or failing store does not delay serving further. */
  readonly limitMs?: number;
}

const defaultLimitMs = 1_500;
/** Concurrent callers, and the requests of each: enough for V8 to compile the code of decisions. */
const callerCount = 8;
const grpcCalls = 60;
const httpCalls = 8;
const host = '127.0.0.1';

/**
 * A log that writes nothing. `onDenied` is called when the store refuses the keys or commands of a decision: the store
 * records each refusal, and the worker's own decisions report theirs.
 */
function createSilence(onDenied: () => void): Log {
  const notice = (text: string) => {
    if (/\bNOPERM\b/.test(text)) onDenied();
  };
  return { ...silentLog, warning: notice, error: notice };
}

/**
 * Resolves when it is done, has failed or has taken 1.5 s: failures here also occur in the worker, which logs them.
 * Rejects only with the reason of `signal`.
 */
export async function warmUp(deps: WarmUpDeps, signal: AbortSignal): Promise<void> {
  const settings = toOwnSettings(deps.settings);
  const limit = new AbortController();
  const cancelLimit = deps.clock.after(deps.limitMs ?? defaultLimitMs, () => limit.abort());
  const ending = AbortSignal.any([signal, limit.signal]);
  const serving = await createOwnServing(deps, settings, () => limit.abort());
  const rehearsal = rehearse(serving, settings, ending).finally(() => serving.stop(0));
  await unlessAborted(rehearsal, ending).catch(() => {});
  cancelLimit();
  signal.throwIfAborted();
}

/** Settings with which decisions run the same code, with separate ports, connections and keys. */
function toOwnSettings(settings: WorkerSettings): WorkerSettings {
  const { http, grpc, counting, store, perSecondStore, health } = settings;
  return {
    ...settings,
    http: { ...http, host, port: 0 },
    grpc: {
      ...grpc,
      uds: '',
      host,
      port: 0,
      // The callers have no client certificate.
      tls: { ...grpc.tls, clientCaFile: '', clientSan: '' },
    },
    counting: {
      ...counting,
      keyPrefix: toSampleKeyPrefix(counting.keyPrefix),
      expirationJitterSeconds: 0,
    },
    store: { ...store, poolSize: 1 },
    perSecondStore: { ...perSecondStore, poolSize: 1 },
    health: { ...health, needsStoreConnection: false },
  };
}

async function createOwnServing(
  { clock }: WarmUpDeps,
  settings: WorkerSettings,
  onDenied: () => void,
): Promise<Serving> {
  const { runtimeMetricNames: runtimeNamesMax } = settings.stats;
  const silence = createSilence(onDenied);
  const serving = await createServing({
    settings,
    health: createHealth({ requireConfig: false }),
    metrics: createRegistry({ runtimeNamesMax, log: silence }),
    onUnmatched() {},
    observer: undefined,
    log: silence,
    clock,
    tracer: undefined,
    listensAlone: true,
  });
  const documents = [sampleRules];
  const built = buildRuleSet(documents, { mergeDomains: false, sanitizeMetricDots: false });
  if (built.ok) serving.useRules({ ruleSet: built.ruleSet, documents, atMs: 0 });
  return serving;
}

/** Ends soon after `signal` aborts, like its connections. */
async function rehearse(
  serving: Serving,
  { grpc, http }: WorkerSettings,
  signal: AbortSignal,
): Promise<void> {
  await serving.connect(signal);
  const ports = await serving.listen(signal);
  const requests = createSampleRequests();
  const toGrpc = await toTarget(ports.grpc, grpc.tls, signal);
  const toHttp = await toTarget(ports.http, http.tls, signal);
  // Sent alone: a refusal of the store ends the rehearsal.
  const single = await createSampleCaller(toGrpc);
  await single.call(createSampleOfOneCounter());
  await single.close();
  signal.throwIfAborted();
  await Promise.all(
    Array.from({ length: callerCount }, async (_, number) => {
      const caller = await createSampleCaller(toGrpc);
      for (const { message } of requests.slice(number, number + grpcCalls)) {
        await caller.call(message);
      }
      await caller.close();
    }),
  );
  for (const { json } of requests.slice(0, httpCalls)) await postSample(toHttp, '/json', json);
}

async function toTarget(
  { port }: ListenAddress,
  tls: { readonly enabled: boolean; readonly certFile: string },
  signal: AbortSignal,
): Promise<SampleTarget> {
  return {
    host,
    port,
    certificate: tls.enabled ? await readFile(tls.certFile) : undefined,
    signal,
  };
}
