// The mapping used without a mapping file (behaviour: pull-mapping).
import {
  defaultBuckets,
  defaultHelp,
  defaultQuantiles,
  defaultSummaryAge,
  type Mapping,
  type MappingRule,
  type ObserverOptions,
} from './metric-mapping.ts';

const histogram: ObserverOptions = { type: 'histogram', buckets: defaultBuckets };

const plain = {
  metricKind: undefined,
  action: 'map',
  labels: [],
  honorLabels: false,
  observer: histogram,
  scale: 1,
  ttlMs: 0,
  help: defaultHelp,
} as const satisfies Partial<MappingRule>;

const ruleStats = ['near_limit', 'over_limit', 'total_hits', 'within_limit', 'shadow_mode'];

/** With `responseTimeInMs` the values of response_time are milliseconds under the same name. */
export function createDefaultMapping(responseTimeInMs: boolean): Mapping {
  return {
    rules: [
      ...ruleStats.flatMap(toRules),
      {
        ...plain,
        ...counter('ratelimit.service.call.should_rate_limit.*'),
        name: 'ratelimit_service_should_rate_limit_error',
        labels: [['err_type', '$1']],
      },
      {
        ...plain,
        ...counter('ratelimit_server.*.total_requests'),
        name: 'ratelimit_service_total_requests',
        labels: [['grpc_method', '$1']],
      },
      {
        ...plain,
        match: toGlob('ratelimit_server.*.response_time'),
        name: 'ratelimit_service_response_time_seconds',
        labels: [['grpc_method', '$1']],
        scale: responseTimeInMs ? 1 : 0.001,
      },
      ...['config_load_success', 'config_load_error'].map((event) => ({
        ...plain,
        ...counter(`ratelimit.service.${event}`),
        name: `ratelimit_service_${event}`,
      })),
      ...['not_after_timestamp_seconds', 'renewal_refused'].map((what) => ({
        ...plain,
        match: toGlob(`ratelimit.certificate.*.${what}`),
        name: `ratelimit_certificate_${what}`,
        labels: [['port', '$1']] as const,
      })),
      {
        // A domain may contain dots.
        ...plain,
        match: /^ratelimit\.service\.no_match\.(.+)$/,
        metricKind: 'counter',
        name: 'ratelimit_service_no_match',
        labels: [['domain', '$1']],
      },
    ],
    mostSpecificGlob: false,
    labelsLimits: true,
    unmapped: {
      observer: { type: 'summary', quantiles: defaultQuantiles, ...defaultSummaryAge },
      ttlMs: 0,
    },
  };
}

/** A single key is matched exactly; with two or more, the second is retained and deeper ones are folded. */
function toRules(stat: string): MappingRule[] {
  const name = `ratelimit_service_rate_limit_${stat}`;
  const labels = [
    ['domain', '$1'],
    ['key1', '$2'],
  ] as const;
  // Anchored at the end: else over_limit_with_local_cache would also count as over_limit.
  const deeper = `ratelimit\\.service\\.rate_limit\\.([^.]*)\\.([^.]*)\\.([^.]*)(\\..*)?\\.${stat}$`;
  return [
    { ...plain, match: toGlob(`ratelimit.service.rate_limit.*.*.${stat}`), name, labels },
    { ...plain, match: new RegExp(deeper), name, labels: [...labels, ['key2', '$3']] },
  ];
}

function counter(glob: string): Pick<MappingRule, 'match' | 'metricKind'> {
  return { match: toGlob(glob), metricKind: 'counter' };
}

function toGlob(glob: string): string[] {
  return glob.split('.');
}
