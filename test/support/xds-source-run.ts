// The worker's source of rules from a management server, composed as in the worker, for tests that act as the server.
import type { ExecutionContext } from 'ava';
import type { Clock } from '../../shared/clock.ts';
import { systemClock } from '../../shared/clock.ts';
import { createRuleSetBuilder, type RuleSetOptions } from '../../shared/rules/rule-set.ts';
import { loadDiscoveryProtos } from '../../shared/wire/discovery.ts';
import { loadProtos } from '../../shared/wire/protos.ts';
import { createHealth } from '../../worker/health.ts';
import type { ManagementServer } from '../../worker/management-stream.ts';
import { createRegistry } from '../../worker/metrics/registry.ts';
import type { ParsingThread } from '../../worker/rules-source/parsing-thread.ts';
import { RulesInForce } from '../../worker/rules-source/rules-in-force.ts';
import type { RulesSource } from '../../worker/rules-source/source.ts';
import {
  XdsSource,
  type XdsSourceDeps,
  type XdsSourceOptions,
} from '../../worker/rules-source/xds-source.ts';
import { eventually } from './eventually.ts';
import { createRecordedLog } from './recorded-log.ts';

const discovery = loadDiscoveryProtos();
const protos = loadProtos();

export type XdsSourceRun = Awaited<ReturnType<typeof startXdsSource>>;

export type XdsSourceRunOptions = Partial<Omit<XdsSourceOptions, 'servers'>> & {
  readonly rules?: RuleSetOptions;
  readonly server: Partial<ManagementServer> & { readonly url: string };
  /** Used when that one is lost. */
  readonly otherUrls?: readonly string[];
  readonly clock?: Clock;
  readonly parsingThread?: ParsingThread;
};

/** By default the waits are short. */
export function createSourceUnderTest(
  {
    server,
    otherUrls = [],
    rules = { mergeDomains: false, sanitizeMetricDots: false },
    clock = systemClock,
    parsingThread,
    ...options
  }: XdsSourceRunOptions,
  deps: Pick<XdsSourceDeps, 'log' | 'metrics'>,
): RulesSource {
  const first = { headers: {}, tls: undefined, maxMessageBytes: 0, ...server };
  return new XdsSource({
    options: {
      nodeId: 'default',
      nodeMetadata: '',
      agreement: '0c0ffee0',
      connectRetryMs: 20,
      backoff: { initialMs: 20, maxMs: 100, multiplier: 2, random: undefined },
      ...options,
      servers: [first, ...otherUrls.map((url) => ({ ...first, url }))],
    },
    instance: '00000000-0000-4000-8000-000000000000',
    discovery,
    protos,
    builder: createRuleSetBuilder(rules),
    clock,
    ...(parsingThread && { parsingThread }),
    ...deps,
  });
}

/** Closed when the test is over. */
export async function startXdsSource(t: ExecutionContext, options: XdsSourceRunOptions) {
  const { clock = systemClock } = options;
  const log = createRecordedLog();
  const metrics = createRegistry({ runtimeNamesMax: 0, log });
  const health = createHealth({ requireConfig: true });
  const rules = new RulesInForce({ log, metrics, health, clock, portsWait: false });
  const source = createSourceUnderTest(options, { log, metrics });
  t.teardown(() => source.close());
  await source.start((result) => rules.apply(result));

  const limits = (...domains: string[]) =>
    domains
      .flatMap((domain) => {
        const match = rules.current?.domains.get(domain)?.match([{ key: 'k', value: 'v' }]);
        return match === undefined ? [] : [`${domain}=${match.limit.requestsPerUnit}`];
      })
      .join(' ');
  return {
    source,
    rules,
    log,
    metric: (name: string) => metrics.snapshot().get(name),
    /** The limits in force as `domain=limit`, of the given domains. */
    limits,
    /** Resolves when `limits` returns this text. */
    becomes: (text: string, ...domains: string[]) =>
      eventually(`limits become ${text}`, () => limits(...domains) === text),
  };
}
