// For every setting a test that shows what it does: from the name in the environment to an effect that
// can be seen from outside. A test beside this holds it to the files.

/** A test that shows what settings do. */
export interface SettingProof {
  /** From the root of the project. */
  readonly file: string;
  /** What the file calls the test, or a part of that. */
  readonly title: string;
  /** The first names of the settings. */
  readonly names: readonly string[];
}

/** The title of a test, or the id of a recorded case, and the settings that it shows. */
type ProofsOfFile = Readonly<Record<string, readonly string[]>>;

const proofsByFile: Readonly<Record<string, ProofsOfFile>> = {
  'test/feature/worker/processes.test.ts': {
    'connections are shared out': ['WORKER_PROCESSES'],
  },
  'test/e2e/client-fields.test.ts': {
    'behind Envoy a client reads its limits, and when to come again': [
      'LIMIT_RETRY_AFTER_ENABLED',
      'LIMIT_RATELIMIT_ENABLED',
      'LIMIT_RATELIMIT_POLICY_ENABLED',
      'LIMIT_PARTITION_KEY_SECRET',
    ],
  },
  'test/feature/output/recorded-decisions.test.ts': {
    'a line has the request, its answer, and what a replay of it needs': ['RECORD_DECISIONS'],
    'a descriptor is recorded with all its requests or none': ['RECORD_DECISIONS_RATE'],
    'what is more is missing in the file, which says so': ['RECORD_DECISIONS_MAX_PER_SECOND'],
    'values of these keys are nowhere in the file': [
      'RECORD_DECISIONS_HASHED_KEYS',
      'RECORD_DECISIONS_HASH_SECRET',
    ],
    'a full file is turned over, and so many are kept': [
      'RECORD_DECISIONS_FILE_SIZE_IN_BYTES',
      'RECORD_DECISIONS_FILES',
    ],
  },
  'test/feature/store/failure-mode.test.ts': {
    'a worker started without its Redis serves at once': ['KVSTORE_FAILURE_MODE'],
  },
  'test/feature/settings/serving.test.ts': {
    'the address that is set is listened on': ['HOST', 'GRPC_HOST', 'DEBUG_HOST'],
    'the port that is set is open': ['PORT', 'GRPC_PORT', 'DEBUG_PORT'],
    'the ports answer over TLS': [
      'HTTP_SERVER_USE_TLS',
      'HTTP_SERVER_TLS_CERT',
      'HTTP_SERVER_TLS_KEY',
      'DEBUG_SERVER_USE_TLS',
    ],
    'the transport that was set once has no effect, which is said': ['GRPC_TRANSPORT'],
    'a connection of that age is told to go away': ['GRPC_MAX_CONNECTION_AGE'],
    'so much later calls are cut': ['GRPC_MAX_CONNECTION_AGE_GRACE'],
    'the one that is used least is closed': ['GRPC_MAX_CONNECTIONS'],
    'a request that asks about more is refused': ['REQUEST_MAX_DESCRIPTORS', 'REQUEST_MAX_ENTRIES'],
    'only a client certificate for that name opens the port': ['GRPC_CLIENT_TLS_SAN'],
  },
  'test/conformance/cases/grpc.json': {
    'grpc-unix-socket': ['GRPC_UDS'],
  },
  'test/conformance/cases/tls.json': {
    'tls-server': ['GRPC_SERVER_USE_TLS', 'GRPC_SERVER_TLS_CERT', 'GRPC_SERVER_TLS_KEY'],
    'tls-mutual': ['GRPC_CLIENT_TLS_CACERT'],
  },
  'test/feature/settings/output.test.ts': {
    'messages of that level are written': ['LOG_LEVEL'],
    'further names share one': ['RUNTIME_METRIC_NAMES_MAX'],
    'that host is tried': ['PUSHMETRICS_HOST'],
    'statistics are pushed there, and so often': [
      'PUSHMETRICS_PORT',
      'PUSHMETRICS_PROTOCOL',
      'STATS_FLUSH_INTERVAL',
    ],
    'times are whole milliseconds': ['PULLMETRICS_RESPONSE_TIME_AS_MILLISECONDS'],
    'spans name the instance': ['TRACING_SERVICE_INSTANCE_ID'],
  },
  'test/conformance/cases/logging.json': {
    'log-json': ['LOG_FORMAT'],
  },
  'test/feature/xds/source-worker.test.ts': {
    'it serves without rules when it is told to start by force': [
      'FORCE_START_WITHOUT_INITIAL_CONFIG',
    ],
    'it opens its ports with the first rules': ['CONFIG_TYPE'],
  },
  'test/feature/settings/rules.test.ts': {
    'rules that change in place are loaded': ['RUNTIME_WATCH_ROOT'],
    'rules are read where they lead together': [
      'RUNTIME_ROOT',
      'RUNTIME_SUBDIRECTORY',
      'RUNTIME_APPDIRECTORY',
    ],
    'the server at _SERVER_URL is told them': [
      'CONFIG_GRPC_XDS_NODE_ID',
      'CONFIG_GRPC_XDS_NODE_METADATA',
      'CONFIG_GRPC_XDS_SERVER_URL',
      'CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS',
    ],
    'the token in the file is sent, and a new one at the next connection': [
      'CONFIG_GRPC_XDS_TOKEN_FILE',
    ],
    'attempts that fail are so far apart': ['CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL'],
    'without it the TLS of that server cannot be had': [
      'CONFIG_GRPC_XDS_SERVER_USE_TLS',
      'CONFIG_GRPC_XDS_CLIENT_TLS_CERT',
      'CONFIG_GRPC_XDS_CLIENT_TLS_KEY',
      'CONFIG_GRPC_XDS_SERVER_TLS_CACERT',
      'CONFIG_GRPC_XDS_SERVER_TLS_SAN',
    ],
    'the waits begin, grow and end so': [
      'XDS_CLIENT_BACKOFF_INITIAL_INTERVAL',
      'XDS_CLIENT_BACKOFF_MAX_INTERVAL',
      'XDS_CLIENT_BACKOFF_RANDOM_FACTOR',
    ],
    'a wait is longer than it would be': ['XDS_CLIENT_BACKOFF_JITTER'],
    'a larger message is not taken': ['XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES'],
  },
  'test/feature/fleet/link.test.ts': {
    'without CONFIG_FLEET_LINK nothing is told': ['CONFIG_FLEET_LINK'],
    'values are told as they are, as hashes or not at all': ['CONFIG_FLEET_LINK_VALUES'],
  },
  'test/feature/fleet/counters.test.ts': {
    'counters are not reset where CONFIG_FLEET_LINK_RESET is false': ['CONFIG_FLEET_LINK_RESET'],
  },
  'test/conformance/cases/merge_domain.json': {
    'merge-two-files': ['MERGE_DOMAIN_CONFIG'],
  },
  'test/conformance/cases/reload.json': {
    'config-dot-files-ignored': ['RUNTIME_IGNOREDOTFILES'],
  },
  'test/conformance/cases/shadow_mode.json': {
    'global-shadow': ['SHADOW_MODE'],
  },
  'test/feature/settings/decision.test.ts': {
    'a descriptor over its limit refuses only when no other is left': ['QUOTA_MODE'],
    'the answer tells what was asked': ['RESPONSE_DYNAMIC_METADATA'],
    'a month ends with the month': ['USE_CALENDAR_MONTH_RATE_LIMIT'],
    'a week ends with the day before': ['WEEK_RATE_LIMIT_RESET_DAY'],
    'the request gets headers of the names that are set': [
      'LIMIT_REQUEST_HEADERS_ENABLED',
      'LIMIT_REQUEST_LIMIT_HEADER',
      'LIMIT_REQUEST_REMAINING_HEADER',
      'LIMIT_REQUEST_RESET_HEADER',
    ],
  },
  'test/conformance/cases/stats.json': {
    'stats-near-ratio': ['NEAR_LIMIT_RATIO'],
  },
  'test/conformance/cases/stop_increment.json': {
    'stop-increment-basic': ['STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT'],
  },
  'test/conformance/cases/local_cache.json': {
    'local-cache-basic': ['LOCAL_CACHE_SIZE_IN_BYTES'],
  },
  'test/conformance/cases/health.json': {
    'health-config-bad-start': ['HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED'],
    'health-redis-lost': ['KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION'],
  },
  'test/conformance/cases/headers.json': {
    'headers-names': [
      'LIMIT_RESPONSE_HEADERS_ENABLED',
      'LIMIT_LIMIT_HEADER',
      'LIMIT_REMAINING_HEADER',
      'LIMIT_RESET_HEADER',
    ],
  },
  'test/conformance/cases/own_features.json': {
    'per-unit-headers': ['LIMIT_PER_UNIT_HEADERS_ENABLED'],
    'sanitize-dots': ['SANITIZE_DESCRIPTOR_METRIC_DOTS'],
  },
  'test/conformance/cases/backend_memcached.json': {
    'memcached-basic': ['BACKEND_TYPE', 'MEMSTORE_HOST_PORT'],
  },
  'test/conformance/cases/backend_redis.json': {
    'key-prefix': ['CACHE_KEY_PREFIX'],
    'expiration-jitter-off': ['EXPIRATION_JITTER_MAX_SECONDS'],
    'per-second-instance': ['KVSTORE_PERSECOND'],
  },
  'test/feature/settings/store.test.ts': {
    'counters are kept there, and the type says what the address is': [
      'KVSTORE_URL',
      'KVSTORE_SOCKET_TYPE',
      'KVSTORE_PERSECOND_URL',
      'KVSTORE_PERSECOND_SOCKET_TYPE',
    ],
    'the sentinels of the address are asked for the master': [
      'KVSTORE_TYPE',
      'KVSTORE_SENTINEL_AUTH',
      'KVSTORE_PERSECOND_TYPE',
      'KVSTORE_PERSECOND_SENTINEL_AUTH',
    ],
    'a decision fails when the store has been silent for so long': [
      'KVSTORE_TIMEOUT',
      'KVSTORE_PERSECOND_TIMEOUT',
    ],
    'the password is sent': ['KVSTORE_AUTH', 'KVSTORE_PERSECOND_AUTH'],
    'the password in the file is sent': ['KVSTORE_AUTH_FILE', 'KVSTORE_PERSECOND_AUTH_FILE'],
    'so many connections are kept': ['KVSTORE_POOL_SIZE', 'KVSTORE_PERSECOND_POOL_SIZE'],
    'a decision that finds no free connection fails after that wait': [
      'KVSTORE_POOL_ON_EMPTY_BEHAVIOR',
      'KVSTORE_POOL_ON_EMPTY_WAIT_DURATION',
      'KVSTORE_PERSECOND_POOL_ON_EMPTY_BEHAVIOR',
      'KVSTORE_PERSECOND_POOL_ON_EMPTY_WAIT_DURATION',
    ],
    'a batch is held back for so long': [
      'KVSTORE_PIPELINE_WINDOW',
      'KVSTORE_PERSECOND_PIPELINE_WINDOW',
    ],
    'nothing changes, which is said': [
      'KVSTORE_PIPELINE_LIMIT',
      'KVSTORE_PERSECOND_PIPELINE_LIMIT',
    ],
    'so many nodes of a cluster are asked at once': [
      'KVSTORE_CLUSTER_PIPELINE_PARALLELISM',
      'KVSTORE_PERSECOND_CLUSTER_PIPELINE_PARALLELISM',
    ],
    'a token signed for these is the password': [
      'KVSTORE_CLOUDIAM_AUTH',
      'KVSTORE_CLOUDIAM_CACHE_NAME',
      'KVSTORE_CLOUDIAM_USER_ID',
      'KVSTORE_CLOUDIAM_SERVERLESS',
      'KVSTORE_CLOUDIAM_REGION',
      'KVSTORE_PERSECOND_CLOUDIAM_AUTH',
      'KVSTORE_PERSECOND_CLOUDIAM_CACHE_NAME',
      'KVSTORE_PERSECOND_CLOUDIAM_USER_ID',
      'KVSTORE_PERSECOND_CLOUDIAM_SERVERLESS',
      'KVSTORE_PERSECOND_CLOUDIAM_REGION',
    ],
  },
  'test/feature/settings/store-connections.test.ts': {
    'the second store speaks TLS, with the files of both': ['KVSTORE_PERSECOND_TLS'],
    'without it the TLS of that store cannot be had': [
      'KVSTORE_TLS',
      'KVSTORE_TLS_CLIENT_CERT',
      'KVSTORE_TLS_CLIENT_KEY',
      'KVSTORE_TLS_CACERT',
      'KVSTORE_TLS_SKIP_HOSTNAME_VERIFICATION',
    ],
    'a connection to a replica is closed': ['KVSTORE_CLOSE_CONNECTION_ON_READONLY_ERROR'],
    'attempts begin, grow and end so': [
      'KVSTORE_STARTUP_INITIAL_INTERVAL',
      'KVSTORE_STARTUP_MAX_INTERVAL',
      'KVSTORE_STARTUP_MAX_ELAPSED_TIME',
    ],
  },
  'test/feature/settings/memcached.test.ts': {
    'the nodes of the record count, and it is looked up so often': [
      'MEMSTORE_SRV',
      'MEMSTORE_SRV_REFRESH',
    ],
    'so many connections are opened': ['MEMSTORE_MAX_IDLE_CONNS'],
    'without it the TLS of that node cannot be had': [
      'MEMSTORE_TLS',
      'MEMSTORE_TLS_CLIENT_CERT',
      'MEMSTORE_TLS_CLIENT_KEY',
      'MEMSTORE_TLS_CACERT',
      'MEMSTORE_TLS_SKIP_HOSTNAME_VERIFICATION',
    ],
  },
  'test/conformance/cases/push_metrics.json': {
    'push-disabled': ['DISABLE_STATS'],
    'push-extra-tags': ['EXTRA_TAGS'],
    'push-to-output': ['USE_PUSHMETRICS'],
    'tagged-plain': ['USE_TAGGEDMETRICS'],
    'tagged-mogrifier': ['TAGGED_MOGRIFIERS'],
  },
  'test/conformance/cases/pull_metrics.json': {
    'pull-one-key': ['USE_PULLMETRICS', 'PULLMETRICS_ADDR'],
    'pull-path': ['PULLMETRICS_PATH'],
  },
  'test/feature/output/statistics-start.test.ts': {
    'a mapping file takes the place of the default mapping': ['PULLMETRICS_MAPPER_YAML'],
  },
  'test/feature/output/tracing.test.ts': {
    'while traces are off nothing of their library is loaded': ['TRACING_ENABLED'],
    'is a server span with the decision': [
      'TRACING_EXPORTER_PROTOCOL',
      'TRACING_SERVICE_NAME',
      'TRACING_SERVICE_NAMESPACE',
    ],
    'the sampling rate is for traces that begin here': ['TRACING_SAMPLING_RATE'],
    'a failed call is marked as such': ['OTEL_SEMCONV_STABILITY_OPT_IN'],
  },
};

export const settingProofs: readonly SettingProof[] = Object.entries(proofsByFile).flatMap(
  ([file, proofs]) => Object.entries(proofs).map(([title, names]) => ({ file, title, names })),
);
