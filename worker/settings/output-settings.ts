// The rows of statistics and traces.
import {
  bool,
  choice,
  duration,
  float,
  int,
  list,
  map,
  port,
  text,
} from '../../shared/settings/kind.ts';
import { bothNames } from '../setting-names.ts';

export function statsSettings() {
  return {
    disabled: bool({ names: ['DISABLE_STATS'], default: false, doc: 'Send no statistics at all' }),
    flushIntervalMs: duration({
      names: ['STATS_FLUSH_INTERVAL'],
      default: 10_000,
      min: 1,
      doc: 'Interval between sends',
    }),
    extraTags: map({
      names: ['EXTRA_TAGS'],
      example: 'env:prod,zone:b',
      doc: 'Tags of all statistics, as comma-separated key:value items',
    }),
    sanitizeDots: bool({
      names: ['SANITIZE_DESCRIPTOR_METRIC_DOTS'],
      default: false,
      doc: 'Write `_` for each `.` of descriptor keys and values in metric names',
    }),
    runtimeMetricNames: int({
      names: ['RUNTIME_METRIC_NAMES_MAX'],
      default: 25_000,
      min: 0,
      max: 10_000_000,
      doc: 'How many metric names from values of requests are distinguished; further ones share one',
    }),
    push: {
      enabled: bool({
        names: bothNames('USE_PUSHMETRICS'),
        default: undefined,
        defaultText: 'true, unless another output is on',
        doc: 'Push statistics; without any output they are written to standard output',
      }),
      host: text({
        names: bothNames('PUSHMETRICS_HOST'),
        default: 'localhost',
        doc: 'Host of the receiver of pushed and of tagged statistics',
      }),
      port: port({
        names: bothNames('PUSHMETRICS_PORT'),
        default: 8125,
        doc: 'Port of that receiver',
      }),
      protocol: choice({
        names: bothNames('PUSHMETRICS_PROTOCOL'),
        words: {
          tcp: 'tcp',
          udp: 'udp',
          tcp4: 'tcp4',
          tcp6: 'tcp6',
          udp4: 'udp4',
          udp6: 'udp6',
        },
        default: 'tcp',
        doc: 'Its protocol (the tagged output is always udp)',
      }),
    },
    tagged: {
      enabled: bool({
        names: bothNames('USE_TAGGEDMETRICS'),
        default: false,
        doc: 'Send statistics with tags',
      }),
      mogrifierNames: list({
        names: bothNames('TAGGED_MOGRIFIERS', 'USE_TAGGEDMETRICS_MOGRIFIERS'),
        example: 'LIMITS,CALLS',
        doc: 'Comma-separated names of rewriting rules, the first that matches counts; each has `TAGGED_MOGRIFIER_<NAME>_PATTERN` (regular expression), `_NAME` (new name, `$1` for a group) and `_TAGS` (key:value items)',
      }),
    },
    pull: {
      enabled: bool({
        names: bothNames('USE_PULLMETRICS'),
        default: false,
        doc: 'Serve statistics to be pulled',
      }),
      address: text({
        names: bothNames('PULLMETRICS_ADDR'),
        default: ':9090',
        emptyMeans: ':9090',
        doc: 'Address to listen on, host:port or :port',
      }),
      path: text({
        names: bothNames('PULLMETRICS_PATH'),
        default: '/metrics',
        emptyMeans: '/metrics',
        doc: 'Path of the endpoint',
      }),
      mapperFile: text({
        names: bothNames('PULLMETRICS_MAPPER_YAML'),
        default: '',
        doc: 'File that maps pushed names to pulled metrics',
      }),
      responseTimeInMs: bool({
        names: bothNames('PULLMETRICS_RESPONSE_TIME_AS_MILLISECONDS'),
        default: false,
        doc: 'Keep response_time in milliseconds; ignored with a mapper file',
      }),
    },
  };
}

export function tracingSettings() {
  return {
    enabled: choice({
      names: ['TRACING_ENABLED'],
      words: { true: true, false: false },
      default: false,
      doc: 'Send traces over OTLP; `OTEL_EXPORTER_OTLP_*`, `OTEL_BSP_*` and `OTEL_RESOURCE_ATTRIBUTES` apply as everywhere',
    }),
    protocol: choice({
      names: ['TRACING_EXPORTER_PROTOCOL'],
      words: { http: 'http', grpc: 'grpc' },
      default: 'http',
      doc: 'How to send them',
    }),
    serviceName: text({
      names: ['TRACING_SERVICE_NAME'],
      default: 'RateLimit',
      doc: 'Service name in spans',
    }),
    serviceNamespace: text({
      names: ['TRACING_SERVICE_NAMESPACE'],
      default: '',
      doc: 'Service namespace in spans',
    }),
    serviceInstanceId: text({
      names: ['TRACING_SERVICE_INSTANCE_ID'],
      default: '',
      defaultText: 'a random UUID',
      doc: 'Instance id in spans',
    }),
    samplingRate: float({
      names: ['TRACING_SAMPLING_RATE'],
      default: 1,
      min: 0,
      max: 1,
      doc: 'Share of traces to keep',
    }),
    semanticConventions: list({
      names: ['OTEL_SEMCONV_STABILITY_OPT_IN'],
      example: 'rpc/dup',
      doc: 'Older attributes in spans: rpc/old in place of, rpc/dup beside the stable ones',
    }),
  };
}
