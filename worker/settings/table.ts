// Every setting of the worker (behaviour: two-names), grouped as the program uses them. Constraints between settings
// are in checks.ts.
import {
  bool,
  booleans,
  choice,
  duration,
  float,
  int,
  port,
  text,
} from '../../shared/settings/kind.ts';
import type { TableReading } from '../../shared/settings/parse-settings.ts';
import { section } from '../../shared/settings/setting.ts';
import { countingTable } from '../counters/counting-settings.ts';
import { storeKindNames } from '../counters/store-kinds.ts';
import { defaultRequestBounds } from '../decision/request-bounds.ts';
import { recordingSettings } from '../recording/recording-settings.ts';
import { bothNames } from '../setting-names.ts';
import { statsSettings, tracingSettings } from './output-settings.ts';
import { xdsSettings } from './xds-settings.ts';

export const workerTable = {
  http: section('HTTP', {
    host: text({ names: ['HOST'], default: '0.0.0.0', doc: 'Host to listen on' }),
    port: port({ names: ['PORT'], default: 8080, doc: 'Port to listen on' }),
    tls: {
      enabled: bool({ names: ['HTTP_SERVER_USE_TLS'], default: false, doc: 'Serve over TLS' }),
      certFile: text({
        names: ['HTTP_SERVER_TLS_CERT'],
        default: '',
        doc: 'File of the certificate chain, for the debug port too',
      }),
      keyFile: text({
        names: ['HTTP_SERVER_TLS_KEY'],
        default: '',
        secret: 'file',
        doc: 'File of the private key, for the debug port too',
      }),
    },
  }),
  grpc: section('gRPC', {
    host: text({ names: ['GRPC_HOST'], default: '0.0.0.0', doc: 'Host to listen on' }),
    port: port({ names: ['GRPC_PORT'], default: 8081, doc: 'Port to listen on' }),
    uds: text({
      names: ['GRPC_UDS'],
      default: '',
      doc: 'Path of a unix socket to listen on, in place of host and port',
    }),
    maxConnectionAgeMs: duration({
      names: ['GRPC_MAX_CONNECTION_AGE'],
      default: undefined,
      example: 600_000,
      doc: 'Age, give or take a tenth, at which clients are asked to close a connection; 0: no limit',
    }),
    maxConnectionAgeGraceMs: duration({
      names: ['GRPC_MAX_CONNECTION_AGE_GRACE'],
      default: undefined,
      example: 30_000,
      doc: 'Grace period after that age, before the connection is closed by force; 0: no limit',
    }),
    maxConnections: int({
      names: ['GRPC_MAX_CONNECTIONS'],
      default: undefined,
      defaultText: '10000, with TLS 3000',
      min: 1,
      max: 1_000_000,
      doc: 'Maximum number of connections of each process; one more closes the least used one',
    }),
    tls: {
      enabled: bool({ names: ['GRPC_SERVER_USE_TLS'], default: false, doc: 'Serve over TLS' }),
      certFile: text({
        names: ['GRPC_SERVER_TLS_CERT'],
        default: '',
        doc: 'File of the certificate chain',
      }),
      keyFile: text({
        names: ['GRPC_SERVER_TLS_KEY'],
        default: '',
        secret: 'file',
        doc: 'File of the private key',
      }),
      clientCaFile: text({
        names: ['GRPC_CLIENT_TLS_CACERT'],
        default: '',
        doc: 'CA certificate file to verify client certificates, which clients then need',
      }),
      clientSan: text({
        names: ['GRPC_CLIENT_TLS_SAN'],
        default: '',
        doc: 'DNS name that a client certificate must be valid for',
      }),
    },
  }),
  requests: section('Requests', {
    maxDescriptors: int({
      names: ['REQUEST_MAX_DESCRIPTORS'],
      default: defaultRequestBounds.maxDescriptors,
      min: 1,
      max: 100_000,
      doc: 'Maximum number of descriptors of a request; one with more is refused',
    }),
    maxEntries: int({
      names: ['REQUEST_MAX_ENTRIES'],
      default: defaultRequestBounds.maxEntries,
      min: 1,
      max: 1_000_000,
      doc: 'Maximum number of entries of a request; one with more is refused',
    }),
    invalidUtf8: choice({
      names: ['REQUEST_INVALID_UTF8'],
      words: { fail: 'fail', count: 'count' },
      anyCase: true,
      default: 'fail',
      doc: 'gRPC requests with bytes that are not UTF-8, such as a header in Latin-1: `fail` fails them, as the reference does, and Envoy lets them pass by default; `count` counts a value under its bytes, written as \\xNN, so that one byte does not disable all limits',
    }),
  }),
  debug: section('Debug port', {
    host: text({ names: ['DEBUG_HOST'], default: '0.0.0.0', doc: 'Host to listen on' }),
    port: port({ names: ['DEBUG_PORT'], default: 6070, doc: 'Port to listen on' }),
    tls: {
      enabled: bool({
        names: ['DEBUG_SERVER_USE_TLS'],
        default: false,
        doc: 'Serve over TLS, with the certificate of the HTTP port',
      }),
    },
  }),
  processes: section('Processes', {
    count: int({
      names: ['WORKER_PROCESSES'],
      default: 1,
      min: 1,
      max: 64,
      doc: 'How many processes decide, on the same ports; each has its own connections to the store and its own local cache',
    }),
  }),
  log: section('Logs', {
    level: choice({
      names: ['LOG_LEVEL'],
      words: {
        panic: 'panic',
        fatal: 'fatal',
        error: 'error',
        warn: 'warning',
        warning: 'warning',
        info: 'info',
        debug: 'debug',
        trace: 'trace',
      },
      anyCase: true,
      default: 'warning',
      doc: 'The lowest level that is logged, in upper or lower case; warn includes that ports, rules and connections are ready',
    }),
    format: text({
      names: ['LOG_FORMAT'],
      default: 'text',
      doc: '`json`, in upper or lower case, for one JSON object per line; anything else is text',
    }),
  }),
  config: section('Rules', {
    source: choice({
      names: ['CONFIG_TYPE'],
      words: { FILE: 'file', GRPC_XDS_SOTW: 'xds' },
      default: 'file',
      doc: 'Where rules come from',
    }),
    forceStart: bool({
      names: ['FORCE_START_WITHOUT_INITIAL_CONFIG'],
      default: false,
      doc: 'Serve before the first rules are loaded',
    }),
    mergeDomains: bool({
      names: ['MERGE_DOMAIN_CONFIG'],
      default: false,
      doc: 'Allow several files for one domain',
    }),
  }),
  runtime: section('Rules from files', {
    root: text({
      names: ['RUNTIME_ROOT'],
      default: '/srv/runtime_data/current',
      doc: 'Root folder',
    }),
    subdirectory: text({ names: ['RUNTIME_SUBDIRECTORY'], default: '', doc: 'Folder in the root' }),
    appDirectory: text({
      names: ['RUNTIME_APPDIRECTORY'],
      default: 'config',
      doc: 'Folder with the rules, inside RUNTIME_ROOT',
    }),
    ignoreDotFiles: bool({
      names: ['RUNTIME_IGNOREDOTFILES'],
      default: false,
      doc: 'Skip files and folders whose names begin with a dot',
    }),
    watchRoot: bool({
      names: ['RUNTIME_WATCH_ROOT'],
      default: true,
      doc: 'true: load again when the link RUNTIME_ROOT is swapped; false: when files change in place',
    }),
  }),
  xds: section('Rules from a management server', xdsSettings()),
  limits: section('Decisions', {
    shadowMode: bool({
      names: ['SHADOW_MODE'],
      default: false,
      doc: 'Answer OK overall whatever the limits are',
    }),
    quotaMode: bool({ names: ['QUOTA_MODE'], default: false, doc: 'Treat every rule as a quota' }),
    responseDynamicMetadata: bool({
      names: ['RESPONSE_DYNAMIC_METADATA'],
      default: false,
      doc: 'Add dynamic metadata to responses',
    }),
    nearLimitRatio: float({
      names: ['NEAR_LIMIT_RATIO'],
      default: 0.8,
      min: 0,
      doc: 'Share of a limit from which hits count as near the limit; above 1, no hits do',
    }),
    calendarMonth: bool({
      names: ['USE_CALENDAR_MONTH_RATE_LIMIT'],
      default: false,
      doc: 'Calendar months, UTC, instead of 30 days; changing it restarts windows',
    }),
    weekResetDay: choice({
      names: ['WEEK_RATE_LIMIT_RESET_DAY'],
      words: {
        Sunday: 0,
        Monday: 1,
        Tuesday: 2,
        Wednesday: 3,
        Thursday: 4,
        Friday: 5,
        Saturday: 6,
      },
      anyCase: true,
      default: 4,
      doc: 'Day on which weeks begin, in upper or lower case; changing it restarts windows',
    }),
    stopIncrementWhenOverLimit: choice({
      names: ['STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT'],
      words: { false: 'false', true: 'true', enforced: 'enforced' },
      otherWords: new Map(
        [...booleans].map(([word, value]) => [word, value ? 'true' : 'false'] as const),
      ),
      default: 'false',
      doc: 'Do not count the other descriptors of a request when one is over its limit: `true` also where that one is in shadow mode or is one of several quotas, so that limits beside it no longer refuse; `enforced` only where the request is refused',
    }),
    localCacheSizeBytes: int({
      names: ['LOCAL_CACHE_SIZE_IN_BYTES', 'LocalCacheSizeInBytes'],
      default: 0,
      min: 0,
      doc: 'Memory for remembering keys that are over their limit; 0 is off',
    }),
  }),
  health: section('Health', {
    needsConfig: bool({
      names: ['HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED'],
      default: false,
      doc: 'Unhealthy while no domain is loaded',
    }),
    needsStoreConnection: bool({
      names: bothNames('KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION'),
      default: false,
      doc: 'Unhealthy while there is no connection to a store',
    }),
  }),
  headers: section('Headers', {
    response: {
      enabled: bool({
        names: ['LIMIT_RESPONSE_HEADERS_ENABLED'],
        default: false,
        doc: 'Add the three headers below to responses',
      }),
      limit: text({
        names: ['LIMIT_LIMIT_HEADER'],
        default: 'RateLimit-Limit',
        doc: 'Name of the header with the limit',
      }),
      remaining: text({
        names: ['LIMIT_REMAINING_HEADER'],
        default: 'RateLimit-Remaining',
        doc: 'Name of the header with the remaining hits',
      }),
      reset: text({
        names: ['LIMIT_RESET_HEADER'],
        default: 'RateLimit-Reset',
        doc: "Name of the header with the seconds to the window's end",
      }),
      perUnit: bool({
        names: ['LIMIT_PER_UNIT_HEADERS_ENABLED'],
        default: false,
        doc: 'Add a limit and a remaining header for each unit to responses',
      }),
    },
    request: {
      enabled: bool({
        names: ['LIMIT_REQUEST_HEADERS_ENABLED'],
        default: false,
        doc: 'Add the three headers below to requests that are admitted',
      }),
      limit: text({
        names: ['LIMIT_REQUEST_LIMIT_HEADER'],
        default: 'RateLimit-Limit',
        doc: 'Name of the header with the limit',
      }),
      remaining: text({
        names: ['LIMIT_REQUEST_REMAINING_HEADER'],
        default: 'RateLimit-Remaining',
        doc: 'Name of the header with the remaining hits',
      }),
      reset: text({
        names: ['LIMIT_REQUEST_RESET_HEADER'],
        default: 'RateLimit-Reset',
        doc: "Name of the header with the seconds to the window's end",
      }),
      shadowed: text({
        names: ['LIMIT_REQUEST_SHADOWED_HEADER'],
        default: '',
        doc: 'Name of a header, with the value `true`, of requests that only shadow mode lets through; unset: none',
      }),
    },
    clientFields: {
      retryAfter: bool({
        names: ['LIMIT_RETRY_AFTER_ENABLED'],
        default: false,
        doc: 'Add `Retry-After` to responses that refuse a request, in seconds',
      }),
      rateLimit: bool({
        names: ['LIMIT_RATELIMIT_ENABLED'],
        default: false,
        doc: 'Add `RateLimit` of draft-ietf-httpapi-ratelimit-headers to responses: what each limit has left',
      }),
      policy: bool({
        names: ['LIMIT_RATELIMIT_POLICY_ENABLED'],
        default: false,
        doc: 'Add `RateLimit-Policy` of that draft to responses: the limits and their windows',
      }),
      partitionSecret: text({
        names: ['LIMIT_PARTITION_KEY_SECRET'],
        default: '',
        secret: 'whole',
        doc: 'Secret; these two fields then identify the owner of the counter, as a hash with this secret (`pk`)',
      }),
    },
  }),
  ...countingTable(storeKindNames, 'redis'),
  stats: section('Statistics', statsSettings()),
  tracing: section('Tracing', tracingSettings()),
  recording: section('Recorded decisions', recordingSettings()),
};

export type WorkerReading = TableReading<typeof workerTable>;
