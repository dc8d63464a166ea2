import test from 'ava';
import { toRows } from '../shared/settings/setting.ts';
import { workerTable } from './settings/table.ts';
import {
  describeWorkerSettings,
  findTlsFileProblems,
  findTokenFileProblems,
  parseWorkerSettings,
  type WorkerSettings,
} from './settings.ts';

type Environment = Record<string, string>;

/** The fewest settings with which a worker starts. */
const enough: Environment = { REDIS_URL: 'localhost:6379' };
const saysDebugPort = /^DEBUG_HOST is not set: /;

function parse(environment: Environment) {
  return parseWorkerSettings({ ...enough, ...environment });
}

function settingsOf(environment: Environment): WorkerSettings {
  const result = parse(environment);
  if (!result.ok) throw new Error(result.problems.join('\n'));
  return result.settings;
}

test('without a store the start fails and says both ways out', (t) => {
  const result = parseWorkerSettings({ DEBUG_HOST: '127.0.0.1' });
  t.deepEqual(result, {
    ok: false,
    problems: [
      'KVSTORE_URL/REDIS_URL is not set: write the address of the store such as localhost:6379, or BACKEND_TYPE=memory to count inside this process',
    ],
    warnings: [],
  });
});

// Proof of differences.md: `GRPC_MAX_CONNECTION_AGE` unset is no limit
test('all other settings have their defaults', (t) => {
  const store = {
    url: '',
    socketType: undefined,
    type: 'single',
    timeoutMs: 10_000,
    auth: '',
    authFile: '',
    sentinelAuth: '',
    tls: false,
    poolSize: 10,
    poolOnEmpty: 'create',
    poolOnEmptyWaitMs: 1_000,
    pipelineWindowMs: 0,
    pipelineLimit: 0,
    clusterPipelineParallelism: 1,
    cloudIam: { enabled: false, cacheName: '', userId: '', serverless: false, region: '' },
    target: undefined,
  };
  const headerNames = {
    limit: 'RateLimit-Limit',
    remaining: 'RateLimit-Remaining',
    reset: 'RateLimit-Reset',
  };
  const result = parse({});
  t.true(result.ok);
  t.is(result.warnings.length, 1);
  t.regex(result.warnings[0] ?? '', saysDebugPort);
  t.deepEqual(settingsOf({}), {
    givenNames: { KVSTORE_URL: 'REDIS_URL' },
    http: {
      host: '0.0.0.0',
      port: 8080,
      tls: { enabled: false, certFile: '', keyFile: '' },
    },
    grpc: {
      host: '0.0.0.0',
      port: 8081,
      uds: '',
      transport: 'http2',
      maxConnectionAgeMs: undefined,
      maxConnectionAgeGraceMs: undefined,
      maxConnections: undefined,
      tls: { enabled: false, certFile: '', keyFile: '', clientCaFile: '', clientSan: '' },
    },
    requests: { maxDescriptors: 256, maxEntries: 2560 },
    debug: { host: '0.0.0.0', port: 6070, tls: { enabled: false } },
    processes: { count: 1 },
    log: { level: 'warning', format: 'text' },
    config: { source: 'file', forceStart: false, mergeDomains: false },
    runtime: {
      root: '/srv/runtime_data/current',
      subdirectory: '',
      appDirectory: 'config',
      ignoreDotFiles: false,
      watchRoot: true,
    },
    xds: {
      nodeId: 'default',
      nodeMetadata: '',
      serverUrl: 'localhost:18000',
      connectRetryIntervalMs: 3_000,
      additionalHeaders: {},
      tokenFile: '',
      tls: { enabled: false, certFile: '', keyFile: '', caFile: '', san: '' },
      backoff: { initialIntervalMs: 10_000, maxIntervalMs: 60_000, factor: 0.5, jitter: false },
      link: { enabled: true, values: 'plain', allowsReset: true },
      maxMessageBytes: 0,
    },
    limits: {
      shadowMode: false,
      quotaMode: false,
      responseDynamicMetadata: false,
      nearLimitRatio: 0.8,
      calendarMonth: false,
      weekResetDay: 4,
      stopIncrementWhenOverLimit: false,
      localCacheSizeBytes: 0,
    },
    health: { needsConfig: false, needsStoreConnection: false },
    headers: {
      response: { enabled: false, ...headerNames, perUnit: false },
      request: { enabled: false, ...headerNames },
      clientFields: { retryAfter: false, rateLimit: false, policy: false, partitionSecret: '' },
    },
    counting: {
      backend: 'redis',
      keyPrefix: '',
      failureMode: 'error',
      expirationJitterSeconds: 300,
    },
    store: {
      ...store,
      url: 'localhost:6379',
      target: {
        address: { kind: 'tcp', host: 'localhost', port: 6379 },
        tls: false,
        credentials: undefined,
        database: 0,
      },
    },
    perSecondStore: { enabled: false, ...store },
    bothStores: {
      tls: { certFile: '', keyFile: '', caFile: '', skipHostnameVerification: false },
      closeOnReadonlyError: false,
      startup: { initialIntervalMs: 1_000, maxIntervalMs: 1_500, maxElapsedMs: 0 },
    },
    memcached: {
      addresses: [],
      srv: '',
      srvRefreshMs: 0,
      maxIdleConnections: 2,
      tls: {
        enabled: false,
        certFile: '',
        keyFile: '',
        caFile: '',
        skipHostnameVerification: false,
      },
    },
    stats: {
      disabled: false,
      flushIntervalMs: 10_000,
      extraTags: {},
      sanitizeDots: false,
      runtimeMetricNames: 25_000,
      push: { enabled: true, host: 'localhost', port: 8125, protocol: 'tcp' },
      tagged: { enabled: false, mogrifierNames: [], mogrifiers: [] },
      pull: {
        enabled: false,
        address: ':9090',
        path: '/metrics',
        mapperFile: '',
        responseTimeInMs: false,
      },
    },
    tracing: {
      enabled: false,
      protocol: 'http',
      serviceName: 'RateLimit',
      serviceNamespace: '',
      serviceInstanceId: '',
      samplingRate: 1,
      semanticConventions: [],
    },
    recording: {
      path: '',
      rate: 0.01,
      maxPerSecond: 1_000,
      fileBytes: 104_857_600,
      files: 3,
      hashedKeys: [],
      hashKey: '',
    },
  } as WorkerSettings);
});

/** Names without a product's name in them (behaviour: two-names). */
const sameNames = `HOST PORT HTTP_SERVER_USE_TLS HTTP_SERVER_TLS_CERT HTTP_SERVER_TLS_KEY
  DEBUG_SERVER_USE_TLS DEBUG_HOST DEBUG_PORT GRPC_HOST GRPC_PORT GRPC_UDS GRPC_TRANSPORT
  GRPC_MAX_CONNECTION_AGE GRPC_MAX_CONNECTION_AGE_GRACE GRPC_MAX_CONNECTIONS
  REQUEST_MAX_DESCRIPTORS REQUEST_MAX_ENTRIES
  GRPC_SERVER_USE_TLS GRPC_SERVER_TLS_CERT
  GRPC_SERVER_TLS_KEY GRPC_CLIENT_TLS_CACERT GRPC_CLIENT_TLS_SAN LOG_LEVEL LOG_FORMAT CONFIG_TYPE
  FORCE_START_WITHOUT_INITIAL_CONFIG CONFIG_GRPC_XDS_NODE_ID CONFIG_GRPC_XDS_NODE_METADATA
  CONFIG_GRPC_XDS_SERVER_URL CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL
  CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS CONFIG_GRPC_XDS_TOKEN_FILE CONFIG_GRPC_XDS_SERVER_USE_TLS
  CONFIG_GRPC_XDS_CLIENT_TLS_CERT CONFIG_GRPC_XDS_CLIENT_TLS_KEY CONFIG_GRPC_XDS_SERVER_TLS_CACERT
  CONFIG_GRPC_XDS_SERVER_TLS_SAN XDS_CLIENT_BACKOFF_INITIAL_INTERVAL
  XDS_CLIENT_BACKOFF_MAX_INTERVAL XDS_CLIENT_BACKOFF_RANDOM_FACTOR XDS_CLIENT_BACKOFF_JITTER
  XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES CONFIG_FLEET_LINK CONFIG_FLEET_LINK_VALUES CONFIG_FLEET_LINK_RESET EXTRA_TAGS STATS_FLUSH_INTERVAL DISABLE_STATS RUNTIME_ROOT
  RUNTIME_SUBDIRECTORY RUNTIME_APPDIRECTORY RUNTIME_IGNOREDOTFILES RUNTIME_WATCH_ROOT
  RUNTIME_METRIC_NAMES_MAX EXPIRATION_JITTER_MAX_SECONDS LOCAL_CACHE_SIZE_IN_BYTES
  LocalCacheSizeInBytes NEAR_LIMIT_RATIO CACHE_KEY_PREFIX BACKEND_TYPE
  STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT LIMIT_RESPONSE_HEADERS_ENABLED LIMIT_LIMIT_HEADER
  LIMIT_REMAINING_HEADER LIMIT_RESET_HEADER LIMIT_PER_UNIT_HEADERS_ENABLED
  LIMIT_REQUEST_HEADERS_ENABLED LIMIT_REQUEST_LIMIT_HEADER LIMIT_REQUEST_REMAINING_HEADER
  LIMIT_REQUEST_RESET_HEADER HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED SHADOW_MODE QUOTA_MODE
  RESPONSE_DYNAMIC_METADATA MERGE_DOMAIN_CONFIG USE_CALENDAR_MONTH_RATE_LIMIT
  WEEK_RATE_LIMIT_RESET_DAY SANITIZE_DESCRIPTOR_METRIC_DOTS TRACING_ENABLED TRACING_SERVICE_NAME
  TRACING_SERVICE_NAMESPACE TRACING_SERVICE_INSTANCE_ID TRACING_EXPORTER_PROTOCOL
  TRACING_SAMPLING_RATE OTEL_SEMCONV_STABILITY_OPT_IN WORKER_PROCESSES KVSTORE_FAILURE_MODE
  LIMIT_RETRY_AFTER_ENABLED LIMIT_RATELIMIT_ENABLED LIMIT_RATELIMIT_POLICY_ENABLED LIMIT_PARTITION_KEY_SECRET
  RECORD_DECISIONS RECORD_DECISIONS_RATE RECORD_DECISIONS_MAX_PER_SECOND RECORD_DECISIONS_FILE_SIZE_IN_BYTES
  RECORD_DECISIONS_FILES RECORD_DECISIONS_HASHED_KEYS RECORD_DECISIONS_HASH_SECRET`.split(/\s+/);

/** Rest of the name for the store and for the second store (behaviour: per-second-store). */
const twins = `SOCKET_TYPE URL POOL_SIZE TYPE TLS AUTH AUTH_FILE SENTINEL_AUTH TIMEOUT
  POOL_ON_EMPTY_BEHAVIOR POOL_ON_EMPTY_WAIT_DURATION PIPELINE_WINDOW PIPELINE_LIMIT
  CLUSTER_PIPELINE_PARALLELISM`.split(/\s+/);
const cloudIam = ['AUTH', 'CACHE_NAME', 'USER_ID', 'SERVERLESS', 'REGION'];
const onlyOnce = `PERSECOND TLS_CLIENT_CERT TLS_CLIENT_KEY TLS_CACERT TLS_SKIP_HOSTNAME_VERIFICATION
  HEALTH_CHECK_ACTIVE_CONNECTION CLOSE_CONNECTION_ON_READONLY_ERROR STARTUP_INITIAL_INTERVAL
  STARTUP_MAX_INTERVAL STARTUP_MAX_ELAPSED_TIME`.split(/\s+/);
const memcached = `HOST_PORT SRV SRV_REFRESH MAX_IDLE_CONNS TLS TLS_CLIENT_CERT TLS_CLIENT_KEY
  TLS_CACERT TLS_SKIP_HOSTNAME_VERIFICATION`.split(/\s+/);
const pull = ['ADDR', 'PATH', 'MAPPER_YAML', 'RESPONSE_TIME_AS_MILLISECONDS'];

const pairs: [neutral: string, established: string][] = [
  ...twins.flatMap((rest): [string, string][] => [
    [`KVSTORE_${rest}`, `REDIS_${rest}`],
    [`KVSTORE_PERSECOND_${rest}`, `REDIS_PERSECOND_${rest}`],
  ]),
  ...cloudIam.flatMap((rest): [string, string][] => [
    [`KVSTORE_CLOUDIAM_${rest}`, `REDIS_AWS_IAM_${rest}`],
    [`KVSTORE_PERSECOND_CLOUDIAM_${rest}`, `REDIS_PERSECOND_AWS_IAM_${rest}`],
  ]),
  ...onlyOnce.map((rest): [string, string] => [`KVSTORE_${rest}`, `REDIS_${rest}`]),
  ...memcached.map((rest): [string, string] => [`MEMSTORE_${rest}`, `MEMCACHE_${rest}`]),
  ...pull.map((rest): [string, string] => [`PULLMETRICS_${rest}`, `PROMETHEUS_${rest}`]),
  ['USE_PUSHMETRICS', 'USE_STATSD'],
  ['PUSHMETRICS_HOST', 'STATSD_HOST'],
  ['PUSHMETRICS_PORT', 'STATSD_PORT'],
  ['PUSHMETRICS_PROTOCOL', 'STATSD_PROTOCOL'],
  ['USE_TAGGEDMETRICS', 'USE_DOG_STATSD'],
  ['TAGGED_MOGRIFIERS', 'DOG_STATSD_MOGRIFIERS'],
  ['USE_TAGGEDMETRICS_MOGRIFIERS', 'USE_DOG_STATSD_MOGRIFIERS'],
  ['USE_PULLMETRICS', 'USE_PROMETHEUS'],
];

test("the settings are the reference's, the neutral ones, and few of ours", (t) => {
  const known = toRows(workerTable).flatMap(({ setting }) => setting.names);
  t.deepEqual(known.toSorted(), [...sameNames, ...pairs.flat()].toSorted());
  t.is(new Set(known).size, known.length);
});

test('a neutral name and its established name are one setting', (t) => {
  for (const [neutral, established] of pairs) {
    const row = toRows(workerTable).find(({ setting }) => setting.names.includes(neutral));
    t.true(row?.setting.names.includes(established), `${neutral} and ${established}`);
  }
});

test('both families lead to the same settings', (t) => {
  const neutral = settingsOf({
    KVSTORE_URL: 'localhost:6379',
    BACKEND_TYPE: 'kvstore',
    KVSTORE_PERSECOND: 'true',
    KVSTORE_PERSECOND_URL: 'localhost:6380',
    PUSHMETRICS_PORT: '1',
    LocalCacheSizeInBytes: '5',
    TAGGED_MOGRIFIERS: 'A',
    TAGGED_MOGRIFIERS_A_PATTERN: 'x',
    TAGGED_MOGRIFIER_A_PATTERN: 'x',
    TAGGED_MOGRIFIER_A_NAME: 'y',
  });
  const established = settingsOf({
    BACKEND_TYPE: 'redis',
    REDIS_PERSECOND: 'true',
    REDIS_PERSECOND_URL: 'localhost:6380',
    STATSD_PORT: '1',
    LOCAL_CACHE_SIZE_IN_BYTES: '5',
    USE_DOG_STATSD_MOGRIFIERS: 'A',
    DOG_STATSD_MOGRIFIER_A_PATTERN: 'x',
    DOG_STATSD_MOGRIFIER_A_NAME: 'y',
  });
  t.deepEqual({ ...neutral, givenNames: {} }, { ...established, givenNames: {} });
  // Texts say the name that somebody wrote.
  t.is(neutral.givenNames['PUSHMETRICS_PORT'], 'PUSHMETRICS_PORT');
  t.is(established.givenNames['PUSHMETRICS_PORT'], 'STATSD_PORT');
  t.deepEqual(established.perSecondStore.target?.address, {
    kind: 'tcp',
    host: 'localhost',
    port: 6380,
  });
});

test('a name of cloud IAM may have a product only in one of its words', (t) => {
  const others = {
    KVSTORE_CLOUDIAM_CACHE_NAME: 'cart',
    REDIS_AWS_IAM_USER_ID: 'me',
    REDIS_CLOUDIAM_REGION: 'eu-west-1',
    KVSTORE_TLS: 'true',
    DEBUG_HOST: '127.0.0.1',
  };
  for (const name of ['REDIS_CLOUDIAM_AUTH', 'KVSTORE_AWS_IAM_AUTH']) {
    const result = parse({ ...others, [name]: 'true' });
    if (!result.ok) return t.fail(result.problems.join('\n'));
    t.deepEqual(result.warnings, []);
    t.like(result.settings.store.cloudIam, { enabled: true, region: 'eu-west-1' });
    t.false(result.settings.perSecondStore.cloudIam.enabled);
  }
  const second = settingsOf({ REDIS_PERSECOND_CLOUDIAM_USER_ID: 'you' }).perSecondStore;
  t.is(second.cloudIam.userId, 'you');
});

const values: [string, Environment, (settings: WorkerSettings) => unknown, unknown][] = [
  ['an empty backend type', { BACKEND_TYPE: '' }, (s) => s.counting.backend, 'redis'],
  ['the memory backend', { BACKEND_TYPE: 'memory' }, (s) => s.counting.backend, 'memory'],
  ['a week day', { WEEK_RATE_LIMIT_RESET_DAY: 'sUNDAY' }, (s) => s.limits.weekResetDay, 0],
  ['JSON logs', { LOG_FORMAT: 'Json' }, (s) => s.log.format, 'json'],
  ['other logs', { LOG_FORMAT: 'logfmt' }, (s) => s.log.format, 'text'],
  ['a log level', { LOG_LEVEL: 'WARN' }, (s) => s.log.level, 'warning'],
  ['a log level', { LOG_LEVEL: 'Debug' }, (s) => s.log.level, 'debug'],
  ['an endless age', { GRPC_MAX_CONNECTION_AGE: '0' }, (s) => s.grpc.maxConnectionAgeMs, undefined],
  ['an age', { GRPC_MAX_CONNECTION_AGE: '10m' }, (s) => s.grpc.maxConnectionAgeMs, 600_000],
  [
    'an endless grace',
    { GRPC_MAX_CONNECTION_AGE_GRACE: '0s' },
    (s) => s.grpc.maxConnectionAgeGraceMs,
    undefined,
  ],
  [
    'no jitter',
    { EXPIRATION_JITTER_MAX_SECONDS: '-5' },
    (s) => s.counting.expirationJitterSeconds,
    0,
  ],
  ['a pool word', { REDIS_POOL_ON_EMPTY_BEHAVIOR: 'Wait' }, (s) => s.store.poolOnEmpty, 'wait'],
  [
    'WAIT for an empty one',
    { REDIS_POOL_ON_EMPTY_BEHAVIOR: '' },
    (s) => s.store.poolOnEmpty,
    'wait',
  ],
  ['a store type', { REDIS_TYPE: 'SINGLE' }, (s) => s.store.type, 'single'],
  [
    'a unix socket by its path',
    { REDIS_URL: '/run/r.sock' },
    (s) => s.store.target?.address,
    { kind: 'unix', path: '/run/r.sock' },
  ],
  [
    'a password',
    { REDIS_AUTH: 'me:open' },
    (s) => s.store.target?.credentials,
    { username: 'me', password: 'open' },
  ],
  [
    'a password in the address before another',
    { REDIS_URL: 'redis://:sesame@h:1', REDIS_AUTH: 'me:open' },
    (s) => s.store.target?.credentials,
    { username: undefined, password: 'sesame' },
  ],
  [
    'nothing for the second store from the first',
    { REDIS_AUTH: 'open', REDIS_PERSECOND: 'true', REDIS_PERSECOND_URL: 'h:1' },
    (s) => s.perSecondStore.target?.credentials,
    undefined,
  ],
  [
    'no second store when it is off',
    { REDIS_PERSECOND_URL: 'h:1' },
    (s) => s.perSecondStore.target,
    undefined,
  ],
  ['pushing beside nothing', {}, (s) => s.stats.push.enabled, true],
  ['pushing not', { USE_STATSD: 'false' }, (s) => s.stats.push.enabled, false],
  ['pulling only', { USE_PROMETHEUS: 'true' }, (s) => s.stats.push.enabled, false],
  ['tags only', { USE_DOG_STATSD: 'true' }, (s) => s.stats.push.enabled, false],
  [
    'pulling and pushing',
    { USE_PROMETHEUS: 'true', USE_STATSD: 'true' },
    (s) => s.stats.push.enabled,
    true,
  ],
  ['the usual pull address', { PROMETHEUS_ADDR: '' }, (s) => s.stats.pull.address, ':9090'],
  ['the usual pull path', { PROMETHEUS_PATH: '' }, (s) => s.stats.pull.path, '/metrics'],
  ['seconds', { MEMCACHE_SRV_REFRESH: '30' }, (s) => s.memcached.srvRefreshMs, 30_000],
  ['a port for a link', { GRPC_PORT: 'tcp://10.0.0.1:80' }, (s) => s.grpc.port, 8081],
];
for (const [what, environment, choose, value] of values) {
  test(`${JSON.stringify(environment)} gives ${what}`, (t) => {
    t.deepEqual(choose(settingsOf(environment)), value);
  });
}

test('the authority of clients is named to who sets what Envoy Gateway sets', (t) => {
  const result = parse({
    GRPC_SERVER_USE_TLS: 'true',
    GRPC_SERVER_TLS_CERT: '/certs/tls.crt',
    GRPC_SERVER_TLS_KEY: '/certs/tls.key',
    GRPC_SERVER_TLS_CA_CERT: '/certs/ca.crt',
    DEBUG_HOST: '127.0.0.1',
  });
  t.true(
    result.warnings.includes(
      'GRPC_SERVER_TLS_CA_CERT is not a setting and is ignored: did you mean GRPC_CLIENT_TLS_CACERT?',
    ),
  );
});

test('a warning about a name that other programs use suggests the setting of the same family', (t) => {
  const meant = {
    PULLMETRICS_PORT: 'PULLMETRICS_ADDR',
    PROMETHEUS_PORT: 'PROMETHEUS_ADDR',
    REDIS_PASSWORD: 'REDIS_AUTH',
    REDIS_USERNAME: 'REDIS_AUTH',
    REDIS_HOST: 'REDIS_URL',
    REDIS_PORT: 'REDIS_URL',
    REDIS_SSL: 'REDIS_TLS',
    KVSTORE_PASSWORD: 'KVSTORE_AUTH',
    REDIS_PERSECOND_PASSWORD: 'REDIS_PERSECOND_AUTH',
    REDIS_SENTINEL_PASSWORD: 'REDIS_SENTINEL_AUTH',
    MEMCACHE_HOST: 'MEMCACHE_HOST_PORT',
  };
  const { warnings } = parse(Object.fromEntries(Object.keys(meant).map((name) => [name, 'x'])));
  for (const [name, own] of Object.entries(meant)) {
    const text = `${name} is not a setting and is ignored: did you mean ${own}?`;
    t.true(warnings.includes(text), warnings.join('\n'));
  }
});

test('warnings are told beside problems', (t) => {
  const result = parse({
    SHADOW_MODE: 'maybe',
    SHADOW_MOD: 'true',
    DEBUG_HOST: '127.0.0.1',
  });
  t.false(result.ok);
  t.deepEqual(result.warnings, [
    'SHADOW_MOD is not a setting and is ignored: did you mean SHADOW_MODE?',
  ]);
});

test('the settings cannot be changed', (t) => {
  const settings = settingsOf({ EXTRA_TAGS: 'a:b' });
  const seen: string[] = [];
  const visit = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return;
    if (!Object.isFrozen(value)) seen.push(path);
    for (const [key, inner] of Object.entries(value)) visit(inner, `${path}.${key}`);
  };
  visit(settings, 'settings');
  t.deepEqual(seen, []);
});

test('the dump shows values in force and where they came from, but no secret', (t) => {
  const result = parse({
    REDIS_URL: 'redis://me:open-sesame@h:1',
    KVSTORE_PERSECOND_AUTH: 'open-sesame',
    REDIS_SENTINEL_AUTH: 'open-sesame',
    CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: 'authorization:open-sesame',
    USE_PULLMETRICS: 'true',
    LocalCacheSizeInBytes: '0x10',
  });
  if (!result.ok) return t.fail();
  const row = (name: string) => result.dump.find((one) => one.name === name);
  t.like(row('KVSTORE_URL'), { value: 'redis://*****@h:1', from: 'REDIS_URL' });
  t.like(row('KVSTORE_PERSECOND_AUTH'), { value: '*****', from: 'KVSTORE_PERSECOND_AUTH' });
  t.like(row('USE_PUSHMETRICS'), { value: 'false', from: 'default' });
  t.like(row('LOCAL_CACHE_SIZE_IN_BYTES'), { value: '16', from: 'LocalCacheSizeInBytes' });
  t.like(row('STATS_FLUSH_INTERVAL'), { value: '10s', from: 'default' });
  t.is(result.dump.length, toRows(workerTable).length);
  t.false(JSON.stringify([result.dump, result.warnings]).includes('sesame'));
});

test('files of TLS with a management server are looked for when they are used', (t) => {
  const files = (environment: Record<string, string>) => {
    const result = parse({
      CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true',
      CONFIG_GRPC_XDS_SERVER_TLS_CACERT: '/tls/ca.pem',
      CONFIG_GRPC_XDS_CLIENT_TLS_CERT: '/tls/cert.pem',
      ...environment,
    });
    return result.ok ? result.tlsFiles.map(({ path }) => path) : undefined;
  };
  t.deepEqual(files({}), []);
  const xds = { CONFIG_TYPE: 'GRPC_XDS_SOTW' };
  t.deepEqual(files(xds), ['/tls/ca.pem']);
  t.deepEqual(files({ ...xds, CONFIG_GRPC_XDS_CLIENT_TLS_KEY: '/tls/key.pem' }), [
    '/tls/ca.pem',
    '/tls/cert.pem',
    '/tls/key.pem',
  ]);
  t.deepEqual(files({ ...xds, CONFIG_GRPC_XDS_SERVER_USE_TLS: 'false' }), []);
});

test('the files of TLS with a memory cache are looked at when it is in use', (t) => {
  const files = (environment: Environment) => {
    const result = parse({
      BACKEND_TYPE: 'memcache',
      MEMCACHE_TLS: 'true',
      MEMCACHE_TLS_CACERT: '/tls/ca.pem',
      MEMCACHE_TLS_CLIENT_CERT: '/tls/cert.pem',
      ...environment,
    });
    return result.ok ? result.tlsFiles.map(({ path }) => path) : undefined;
  };
  t.deepEqual(files({}), ['/tls/ca.pem']);
  t.deepEqual(files({ MEMCACHE_TLS_CLIENT_KEY: '/tls/key.pem' }), [
    '/tls/ca.pem',
    '/tls/cert.pem',
    '/tls/key.pem',
  ]);
  t.deepEqual(files({ MEMCACHE_TLS: 'false' }), []);
  t.deepEqual(files({ BACKEND_TYPE: 'redis' }), []);
});

test('files of TLS that cannot be read are told with setting and path', async (t) => {
  const tls = {
    GRPC_SERVER_USE_TLS: 'true',
    GRPC_SERVER_TLS_CERT: '/tls/none.pem',
    GRPC_SERVER_TLS_KEY: '/tls/key.pem',
    GRPC_CLIENT_TLS_CACERT: '/tls/locked.pem',
  };
  const read = async (path: string) => {
    if (path === '/tls/key.pem') return 'key';
    throw new Error(path === '/tls/none.pem' ? 'ENOENT: no such file' : 'EACCES: not allowed');
  };
  const result = parse(tls);
  if (!result.ok) return t.fail();
  t.deepEqual(await findTlsFileProblems(result.tlsFiles, read), [
    'GRPC_SERVER_TLS_CERT="/tls/none.pem": the file cannot be read (ENOENT: no such file); name a PEM file that this process may read',
    'GRPC_CLIENT_TLS_CACERT="/tls/locked.pem": the file cannot be read (EACCES: not allowed); name a PEM file that this process may read',
  ]);
});

test('the HTTP and the debug port share the files of TLS, which are looked for when either is on', (t) => {
  const files = (environment: Environment) => {
    const result = parse({
      HTTP_SERVER_TLS_CERT: '/tls/cert.pem',
      HTTP_SERVER_TLS_KEY: '/tls/key.pem',
      ...environment,
    });
    return result.ok ? result.tlsFiles.map(({ path }) => path) : undefined;
  };
  t.deepEqual(files({ HTTP_SERVER_USE_TLS: 'true' }), ['/tls/cert.pem', '/tls/key.pem']);
  t.deepEqual(files({ DEBUG_SERVER_USE_TLS: 'true' }), ['/tls/cert.pem', '/tls/key.pem']);
  t.deepEqual(files({}), []);
});

test('a token file that is missing or empty ends the start, where rules come from a management server', async (t) => {
  const problemsOf = async (path: string, source: string) => {
    const result = parse({ CONFIG_TYPE: source, CONFIG_GRPC_XDS_TOKEN_FILE: path });
    return result.ok ? findTokenFileProblems(result.tokenFiles) : result.problems;
  };
  t.deepEqual(await problemsOf('/dev/null', 'GRPC_XDS_SOTW'), [
    'CONFIG_GRPC_XDS_TOKEN_FILE="/dev/null": the file is empty; name a file with the token and nothing else',
  ]);
  t.deepEqual(await problemsOf('/tls/none', 'GRPC_XDS_SOTW'), [
    'CONFIG_GRPC_XDS_TOKEN_FILE="/tls/none": the file cannot be read (ENOENT: no such file or directory, stat \'/tls/none\'); name a file with the token and nothing else',
  ]);
  t.deepEqual(await problemsOf('/tls/none', 'FILE'), []);
});

test('files of TLS that is off are not looked at', (t) => {
  const result = parse({ GRPC_SERVER_TLS_CERT: '/tls/none.pem' });
  if (!result.ok) return t.fail();
  t.deepEqual(result.tlsFiles, []);
});

test('the help names every setting', (t) => {
  const help = describeWorkerSettings();
  for (const { setting } of toRows(workerTable)) {
    for (const name of setting.names) t.regex(help, new RegExp(`^  .*\\b${name}(,|$)`, 'm'));
  }
});
