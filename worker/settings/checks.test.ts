import test from 'ava';
import { parseWorkerSettings } from '../settings.ts';

type Environment = Record<string, string>;

/** Beside what is enough to start without a warning. */
function parse(environment: Environment) {
  return parseWorkerSettings({
    REDIS_URL: 'localhost:6379',
    DEBUG_HOST: '127.0.0.1',
    ...environment,
  });
}

const storeForms =
  'write host:port such as localhost:6379, redis://user:password@host:port or the path of a unix socket';
const perSecondStore = { REDIS_PERSECOND: 'true', REDIS_PERSECOND_URL: 'localhost:6380' };
const refused: [Environment, string[]][] = [
  [
    { BACKEND_TYPE: 'disk' },
    ['BACKEND_TYPE="disk": unknown value; write one of kvstore, redis, memstore, memcache, memory'],
  ],
  [
    { BACKEND_TYPE: 'memory', WORKER_PROCESSES: '2' },
    [
      'WORKER_PROCESSES="2" cannot be together with BACKEND_TYPE="memory": each process would count by itself; write 1, or choose a store that the processes share',
    ],
  ],
  [
    { WORKER_PROCESSES: '65' },
    ['WORKER_PROCESSES="65": out of range; write a whole number from 1 to 64 such as 1'],
  ],
  [
    { BACKEND_TYPE: 'Redis' },
    [
      'BACKEND_TYPE="Redis": unknown value, did you mean redis?; write one of kvstore, redis, memstore, memcache, memory',
    ],
  ],
  [{ REDIS_URL: 'localhost' }, [`REDIS_URL="localhost": the port is missing; ${storeForms}`]],
  [
    { REDIS_SOCKET_TYPE: 'unix' },
    [`REDIS_URL="localhost:6379": this is not the path of a unix socket; ${storeForms}`],
  ],
  [{ REDIS_SOCKET_TYPE: 'udp' }, ['REDIS_SOCKET_TYPE="udp": unknown value; write tcp or unix']],
  [
    { REDIS_TYPE: 'ring' },
    ['REDIS_TYPE="ring": unknown value; write one of single, sentinel, cluster'],
  ],
  [
    { REDIS_TYPE: 'sentinel', REDIS_URL: 'main,ada:sesame@a:1' },
    [
      'REDIS_URL="*****": address 1: credentials have a setting of their own; write the password, or user:password, in REDIS_AUTH',
    ],
  ],
  [
    { REDIS_URL: 'a:1,b:2' },
    [
      'REDIS_URL="a:1,b:2": this is a list of addresses; write REDIS_TYPE=cluster, or =sentinel with the name of the master before the addresses',
    ],
  ],
  [
    { REDIS_URL: 'cache.example:6380,password=sesame,ssl=True' },
    [
      'REDIS_URL="cache.example:6380,*****": after the address come options, which have settings of their own; write the password, or user:password, in REDIS_AUTH',
    ],
  ],
  [
    { REDIS_TYPE: 'sentinel', REDIS_URL: 'only-master' },
    [
      'REDIS_URL="*****": sentinels need the name of the master and at least one address; write such as mymaster,sentinel-1:26379,sentinel-2:26379',
    ],
  ],
  [
    { REDIS_TYPE: 'sentinel', REDIS_URL: 'main,a:1,b' },
    [
      'REDIS_URL="main,a:1,*****": address 2: the port is missing; write such as mymaster,sentinel-1:26379,sentinel-2:26379',
    ],
  ],
  [
    { KVSTORE_TYPE: 'cluster', REDIS_URL: 'a:1,b:x' },
    [
      'REDIS_URL="a:1,*****": address 2: the port is not a number from 1 to 65535; write such as node-1:6379,node-2:6379',
    ],
  ],
  [
    { REDIS_PERSECOND: 'true' },
    [
      'KVSTORE_PERSECOND_URL/REDIS_PERSECOND_URL is not set: REDIS_PERSECOND="true" needs the address of a second store such as localhost:6380',
    ],
  ],
  [
    { REDIS_AUTH: 'open', KVSTORE_AUTH_FILE: '/run/auth' },
    ['REDIS_AUTH and KVSTORE_AUTH_FILE are both given; remove one of them'],
  ],
  [
    { ...perSecondStore, REDIS_PERSECOND_AUTH: 'open', REDIS_PERSECOND_AUTH_FILE: '/run/auth' },
    ['REDIS_PERSECOND_AUTH and REDIS_PERSECOND_AUTH_FILE are both given; remove one of them'],
  ],
  [
    { KVSTORE_URL: 'localhost:6380' },
    [
      'KVSTORE_URL and REDIS_URL are two names of one setting with different values; remove one of them',
    ],
  ],
  [
    { REDIS_TIMEOUT: '0' },
    ['REDIS_TIMEOUT="0": out of range; write a duration from 1ms to 480h such as 10s'],
  ],
  [
    { REDIS_POOL_SIZE: '0' },
    ['REDIS_POOL_SIZE="0": out of range; write a whole number from 1 to 10000 such as 10'],
  ],
  [
    { REDIS_CLUSTER_PIPELINE_PARALLELISM: '-1' },
    [
      'REDIS_CLUSTER_PIPELINE_PARALLELISM="-1": out of range; write a whole number of at least 0 such as 1',
    ],
  ],
  [
    { REDIS_PIPELINE_WINDOW: '150' },
    [
      'REDIS_PIPELINE_WINDOW="150": the unit is missing (one of ns, us, ms, s, m, h); write a duration from 0s to 480h such as 150us',
    ],
  ],
  [
    { REDIS_POOL_ON_EMPTY_BEHAVIOR: 'PANIC' },
    ['REDIS_POOL_ON_EMPTY_BEHAVIOR="PANIC": unknown value; write one of CREATE, ERROR, WAIT'],
  ],
  [
    { CONFIG_TYPE: 'CARRIER_PIGEON' },
    ['CONFIG_TYPE="CARRIER_PIGEON": unknown value; write FILE or GRPC_XDS_SOTW'],
  ],
  [
    { CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: '' },
    [
      'CONFIG_GRPC_XDS_SERVER_URL="": empty; write the address of the server such as localhost:18000',
    ],
  ],
  [
    {
      CONFIG_TYPE: 'GRPC_XDS_SOTW',
      CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: 'Authorization:Bearer sesame',
      CONFIG_GRPC_XDS_TOKEN_FILE: '/run/token',
    },
    [
      'CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS and CONFIG_GRPC_XDS_TOKEN_FILE both give the header authorization; remove one of them',
    ],
  ],
  [
    { CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: 'http://a:1,ada:sesame@b:1,c:d,' },
    [
      'CONFIG_GRPC_XDS_SERVER_URL="*****": address 1: it begins with a scheme such as http://, address 2: it has a user, or parameters, address 3: the port is not a number from 1 to 65535, address 4: empty; write the address of the server such as localhost:18000',
    ],
  ],
  [
    {
      CONFIG_TYPE: 'GRPC_XDS_SOTW',
      CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: 'x-ok:1,x zone:sesame,x-token:ses\tame,x-bin:\t',
    },
    [
      'CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS="*****": the name of header 2 has other characters than letters, digits, ".", "-" and "_"',
      'CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS="*****": the value of header 3 has characters that no header can have; leave them out',
    ],
  ],
  [
    { LOG_LEVEL: 'chatty' },
    [
      'LOG_LEVEL="chatty": unknown value; write one of panic, fatal, error, warn, warning, info, debug, trace',
    ],
  ],
  [{ SHADOW_MODE: 'maybe' }, ['SHADOW_MODE="maybe": not a boolean; write true or false']],
  [
    { GRPC_PORT: 'eighty' },
    ['GRPC_PORT="eighty": not a whole number; write a port from 0 to 65535 such as 8081'],
  ],
  [
    { STATS_FLUSH_INTERVAL: '10' },
    [
      'STATS_FLUSH_INTERVAL="10": the unit is missing (one of ns, us, ms, s, m, h); write a duration from 1ms to 480h such as 10s',
    ],
  ],
  [
    { STATS_FLUSH_INTERVAL: '0s' },
    ['STATS_FLUSH_INTERVAL="0s": out of range; write a duration from 1ms to 480h such as 10s'],
  ],
  [
    { NEAR_LIMIT_RATIO: '-0.1' },
    ['NEAR_LIMIT_RATIO="-0.1": out of range; write a number of at least 0 such as 0.8'],
  ],
  [
    { LocalCacheSizeInBytes: '-1' },
    ['LocalCacheSizeInBytes="-1": out of range; write a whole number of at least 0 such as 0'],
  ],
  ...['', 'Blursday'].map((word): [Environment, string[]] => [
    { WEEK_RATE_LIMIT_RESET_DAY: word },
    [
      `WEEK_RATE_LIMIT_RESET_DAY="${word}": ${word === '' ? 'empty' : 'unknown value, did you mean Thursday?'}; write one of Sunday, Monday, Tuesday, Wednesday, Thursday, Friday, Saturday`,
    ],
  ]),
  [{ TRACING_ENABLED: '1' }, ['TRACING_ENABLED="1": unknown value; write true or false']],
  [{ TRACING_EXPORTER_PROTOCOL: '' }, ['TRACING_EXPORTER_PROTOCOL="": empty; write http or grpc']],
  [
    { GRPC_SERVER_USE_TLS: 'true' },
    [
      'GRPC_SERVER_TLS_CERT is not set: GRPC_SERVER_USE_TLS="true" needs the path of a file',
      'GRPC_SERVER_TLS_KEY is not set: GRPC_SERVER_USE_TLS="true" needs the path of a file',
    ],
  ],
  [
    {
      GRPC_SERVER_USE_TLS: 'true',
      GRPC_SERVER_TLS_CERT: '/tls/cert.pem',
      GRPC_SERVER_TLS_KEY: '/tls/key.pem',
      GRPC_CLIENT_TLS_SAN: 'proxy',
    },
    [
      'GRPC_CLIENT_TLS_CACERT is not set: GRPC_CLIENT_TLS_SAN="proxy" needs the authority of client certificates',
    ],
  ],
  [
    {
      GRPC_SERVER_USE_TLS: 'true',
      GRPC_SERVER_TLS_CERT: '/tls/cert.pem',
      GRPC_SERVER_TLS_KEY: '/tls/private/key.pem',
    },
    [
      'GRPC_SERVER_TLS_CERT="/tls/cert.pem" and GRPC_SERVER_TLS_KEY="/tls/private/key.pem": certFile and keyFile must be in the same directory; move one of the files',
    ],
  ],
  [
    { HTTP_SERVER_USE_TLS: 'true', DEBUG_SERVER_USE_TLS: 'true' },
    [
      'HTTP_SERVER_TLS_CERT is not set: HTTP_SERVER_USE_TLS="true" needs the path of a file',
      'HTTP_SERVER_TLS_KEY is not set: HTTP_SERVER_USE_TLS="true" needs the path of a file',
    ],
  ],
  [
    { DEBUG_SERVER_USE_TLS: 'true', HTTP_SERVER_TLS_CERT: '/tls/cert.pem' },
    ['HTTP_SERVER_TLS_KEY is not set: DEBUG_SERVER_USE_TLS="true" needs the path of a file'],
  ],
  [
    { PORT: '6070', GRPC_PORT: '6070' },
    [
      'PORT and GRPC_PORT are both 6070: each listener needs a port of its own',
      'PORT and DEBUG_PORT are both 6070: each listener needs a port of its own',
      'GRPC_PORT and DEBUG_PORT are both 6070: each listener needs a port of its own',
    ],
  ],
  [
    { HOST: '127.0.0.1', PORT: '6070' },
    ['PORT and DEBUG_PORT are both 6070: each listener needs a port of its own'],
  ],
  [
    { USE_PULLMETRICS: 'true', PROMETHEUS_ADDR: '127.0.0.1:8081' },
    ['GRPC_PORT and PROMETHEUS_ADDR are both 8081: each listener needs a port of its own'],
  ],
  [
    { LIMIT_RESPONSE_HEADERS_ENABLED: 'true', LIMIT_RESET_HEADER: '' },
    ['LIMIT_RESET_HEADER="": not the name of a header; write a name such as RateLimit-Reset'],
  ],
  [
    { LIMIT_PER_UNIT_HEADERS_ENABLED: 'true', LIMIT_LIMIT_HEADER: 'a b' },
    ['LIMIT_LIMIT_HEADER="a b": not the name of a header; write a name such as RateLimit-Limit'],
  ],
  [
    { LIMIT_REQUEST_HEADERS_ENABLED: 'true', LIMIT_REQUEST_REMAINING_HEADER: 'x:' },
    [
      'LIMIT_REQUEST_REMAINING_HEADER="x:": not the name of a header; write a name such as RateLimit-Remaining',
    ],
  ],
  [
    { BACKEND_TYPE: 'memcache', MEMCACHE_HOST_PORT: 'a:1', MEMSTORE_SRV: '_memcache._tcp.x' },
    ['MEMCACHE_HOST_PORT and MEMSTORE_SRV are both given; remove one of them'],
  ],
  [
    { BACKEND_TYPE: 'memcache', MEMCACHE_SRV: 'cache.example.com' },
    [
      'MEMCACHE_SRV="cache.example.com": not the name of an SRV record; write such as _memcache._tcp.cache.example.com',
    ],
  ],
  [
    { BACKEND_TYPE: 'memcache', MEMCACHE_HOST_PORT: 'a:1,b,:3' },
    [
      'MEMCACHE_HOST_PORT="a:1,*****": address 2: the port is missing; write a comma-separated list such as cache-1:11211,cache-2:11211',
      'MEMCACHE_HOST_PORT="a:1,*****": address 3: the host is missing; write a comma-separated list such as cache-1:11211,cache-2:11211',
    ],
  ],
  [
    { USE_PROMETHEUS: 'true', PROMETHEUS_ADDR: '9090', PROMETHEUS_PATH: 'metrics' },
    [
      'PROMETHEUS_ADDR="9090": the port is missing; write host:port or :port such as :9090',
      'PROMETHEUS_PATH="metrics": the path does not begin with /; write a path such as /metrics',
    ],
  ],
  [
    { RECORD_DECISIONS: '/var/decisions', RECORD_DECISIONS_HASHED_KEYS: 'user' },
    [
      'RECORD_DECISIONS_HASH_SECRET is not set: RECORD_DECISIONS_HASHED_KEYS="user" needs a secret, such as the output of openssl rand -hex 32',
    ],
  ],
  [
    { USE_DOG_STATSD: 'true', USE_DOG_STATSD_MOGRIFIERS: 'LOST' },
    [
      'TAGGED_MOGRIFIER_LOST_PATTERN/DOG_STATSD_MOGRIFIER_LOST_PATTERN is not set: USE_DOG_STATSD_MOGRIFIERS lists "LOST"',
      'TAGGED_MOGRIFIER_LOST_NAME/DOG_STATSD_MOGRIFIER_LOST_NAME is not set: USE_DOG_STATSD_MOGRIFIERS lists "LOST"',
    ],
  ],
  [
    { SHADOW_MODE: 'maybe', GRPC_PORT: '', REDIS_URL: 'x' },
    [
      'GRPC_PORT="": empty; write a port from 0 to 65535 such as 8081',
      'SHADOW_MODE="maybe": not a boolean; write true or false',
      `REDIS_URL="*****": the port is missing; ${storeForms}`,
    ],
  ],
];
for (const [environment, problems] of refused) {
  test(`the start fails with ${JSON.stringify(environment)}`, (t) => {
    const result = parse(environment);
    t.deepEqual(result.ok ? [] : result.problems, problems);
  });
}

const fine: Environment[] = [
  { BACKEND_TYPE: 'memory', REDIS_URL: '', REDIS_TLS: 'true', REDIS_TYPE: 'cluster' },
  { BACKEND_TYPE: 'memcache', REDIS_URL: '', REDIS_TLS: 'true' },
  { BACKEND_TYPE: 'memstore', MEMSTORE_SRV: '_memcache._tcp.cache.example.com', REDIS_URL: '' },
  { REDIS_PERSECOND_TLS: 'true', REDIS_PERSECOND_TYPE: 'cluster' },
  { REDIS_PERSECOND_AUTH: 'open', REDIS_PERSECOND_AUTH_FILE: '/run/auth' },
  { BACKEND_TYPE: 'memcache', REDIS_AUTH: 'open', KVSTORE_AUTH_FILE: '/run/auth' },
  { GRPC_UDS: '/run/grpc.sock', GRPC_PORT: '8080' },
  { HOST: '127.0.0.1', DEBUG_HOST: '127.0.0.2', PORT: '6070' },
  { PORT: '0', GRPC_PORT: '0', DEBUG_PORT: '0' },
  { LIMIT_RESET_HEADER: '' },
  { USE_STATSD: 'true', USE_DOG_STATSD: 'true', USE_PROMETHEUS: 'true' },
  { PROMETHEUS_ADDR: '9090', PROMETHEUS_PATH: 'metrics' },
  { DISABLE_STATS: 'true', USE_PROMETHEUS: 'true', PROMETHEUS_ADDR: '9090' },
  { DISABLE_STATS: 'true', USE_PROMETHEUS: 'true', PROMETHEUS_ADDR: ':8081' },
  { USE_DOG_STATSD_MOGRIFIERS: 'LOST' },
  { DISABLE_STATS: 'true', USE_DOG_STATSD: 'true', USE_DOG_STATSD_MOGRIFIERS: 'LOST' },
  { MEMCACHE_SRV: 'cache.example.com', MEMCACHE_HOST_PORT: 'a,b' },
  { MEMCACHE_MAX_IDLE_CONNS: '-1' },
  { GRPC_CLIENT_TLS_SAN: 'proxy' },
  {
    GRPC_SERVER_USE_TLS: 'true',
    GRPC_SERVER_TLS_CERT: 'tls/cert.pem',
    GRPC_SERVER_TLS_KEY: './tls//key.pem',
  },
  { GRPC_SERVER_TLS_CERT: '/tls/cert.pem', GRPC_SERVER_TLS_KEY: '/tls/private/key.pem' },
];
for (const environment of fine) {
  test(`the start does not fail with ${JSON.stringify(environment)}`, (t) => {
    const result = parse(environment);
    t.deepEqual(result.ok ? [] : result.problems, []);
  });
}

const warned: [Environment, string[]][] = [
  [{ REDIS_PIPELINE_LIMIT: '8' }, ['REDIS_PIPELINE_LIMIT="8" is deprecated: it has no effect']],
  [
    { CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_TLS_SAN: 'xds.example' },
    [
      'CONFIG_GRPC_XDS_SERVER_TLS_SAN="xds.example" has no effect without CONFIG_GRPC_XDS_SERVER_USE_TLS=true: the connection is not encrypted',
    ],
  ],
  [
    {
      CONFIG_TYPE: 'GRPC_XDS_SOTW',
      CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true',
      CONFIG_GRPC_XDS_CLIENT_TLS_CERT: '/tls/cert.pem',
    },
    [
      'CONFIG_GRPC_XDS_CLIENT_TLS_CERT="/tls/cert.pem" has no effect without CONFIG_GRPC_XDS_CLIENT_TLS_KEY',
    ],
  ],
  [
    { SHADOW_MODE: 'true' },
    ['SHADOW_MODE="true": nobody is ever refused, whatever the limits say'],
  ],
  [{ SHADOW_MODE: 'false' }, []],
  [
    { NEAR_LIMIT_RATIO: '80' },
    ['NEAR_LIMIT_RATIO="80" is above 1: no hits count as near their limit'],
  ],
  [{ NEAR_LIMIT_RATIO: '1' }, []],
  [{ LOG_FORMAT: 'xml' }, ['LOG_FORMAT="xml" is taken as text; the other format is json']],
  [
    { GRPC_CLIENT_TLS_CACERT: '/tls/ca.pem' },
    [
      'GRPC_CLIENT_TLS_CACERT="/tls/ca.pem" has no effect without GRPC_SERVER_USE_TLS=true: clients are not checked',
    ],
  ],
  [
    { GRPC_CLIENT_TLS_SAN: 'proxy' },
    [
      'GRPC_CLIENT_TLS_SAN="proxy" has no effect without GRPC_SERVER_USE_TLS=true: clients are not checked',
    ],
  ],
  [
    { BACKEND_TYPE: 'memcache', STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true' },
    [
      'MEMSTORE_HOST_PORT/MEMCACHE_HOST_PORT and MEMSTORE_SRV/MEMCACHE_SRV are not set: BACKEND_TYPE="memcache" counts nothing without a node, so that nothing is limited',
      'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT="true" has no effect with BACKEND_TYPE="memcache"',
    ],
  ],
  [
    {
      BACKEND_TYPE: 'memstore',
      MEMSTORE_HOST_PORT: 'localhost:11211',
      MEMSTORE_TLS: 'true',
      MEMSTORE_TLS_CLIENT_KEY: '/tls/key.pem',
    },
    [
      'MEMSTORE_TLS_CLIENT_KEY="/tls/key.pem" has no effect without MEMSTORE_TLS_CLIENT_CERT/MEMCACHE_TLS_CLIENT_CERT',
    ],
  ],
  [
    { REDIS_URL: 'redis://:open@h:1', REDIS_AUTH: 'sesame' },
    ['REDIS_AUTH="*****" has no effect: REDIS_URL holds credentials'],
  ],
  [
    { REDIS_TIMOUT: '5s', KVSTORE_URI: 'x', RUNTIME_DIR: 'x' },
    [
      'REDIS_TIMOUT is not a setting and is ignored: did you mean REDIS_TIMEOUT?',
      'KVSTORE_URI is not a setting and is ignored: did you mean KVSTORE_URL?',
      'RUNTIME_DIR is not a setting and is ignored; --help lists all settings',
    ],
  ],
  [
    { TAGGED_MOGRIFIER_A_PATTERN: 'x' },
    ['TAGGED_MOGRIFIER_A_PATTERN is not a setting and is ignored; --help lists all settings'],
  ],
  [{ LOG_FORMAT: 'JSON', REDIS_POOL_SIZE: '10', TRACING_ENABLED: 'false' }, []],
];
for (const [environment, warnings] of warned) {
  test(`the start warns ${warnings.length} times of ${JSON.stringify(environment)}`, (t) => {
    const result = parse(environment);
    t.true(result.ok);
    t.deepEqual(result.warnings, warnings);
  });
}

test('a debug port that everybody can reach is told, unless somebody has chosen its address or TLS', (t) => {
  const warningsOf = (environment: Environment) =>
    parseWorkerSettings({ REDIS_URL: 'localhost:6379', ...environment }).warnings;
  t.deepEqual(warningsOf({ DEBUG_PORT: '6071' }), [
    'DEBUG_HOST is not set: whoever reaches port 6071 can read rules, settings and profiles; write 127.0.0.1 to keep others out, or 0.0.0.0 to say that it is meant',
  ]);
  const tls = { HTTP_SERVER_TLS_CERT: '/tls/cert.pem', HTTP_SERVER_TLS_KEY: '/tls/key.pem' };
  t.deepEqual(warningsOf({ DEBUG_HOST: '0.0.0.0' }), []);
  t.deepEqual(warningsOf({ DEBUG_SERVER_USE_TLS: 'true', ...tls }), []);
});

test('variables that Kubernetes, npm and OpenTelemetry set are neither wrong nor warned of', (t) => {
  const services = [
    'REDIS',
    'KVSTORE',
    'STATSD',
    'GRPC',
    'DEBUG',
    'PROMETHEUS',
    'TRACING',
    'MEMCACHE',
  ];
  const links = services.flatMap((service) => [
    [`${service}_SERVICE_HOST`, '10.0.0.1'],
    [`${service}_SERVICE_PORT`, '80'],
    [`${service}_SERVICE_PORT_MAIN`, '80'],
    [`${service}_PORT`, 'tcp://10.0.0.1:80'],
    [`${service}_PORT_80_TCP`, 'tcp://10.0.0.1:80'],
    [`${service}_PORT_80_TCP_PROTO`, 'tcp'],
    [`${service}_PORT_80_TCP_PORT`, '80'],
    [`${service}_PORT_80_TCP_ADDR`, '10.0.0.1'],
  ]);
  const others = {
    PATH: '/bin',
    HOME: '/',
    HOSTNAME: 'pod',
    TERM: 'xterm',
    npm_config_loglevel: 'warn',
    npm_lifecycle_event: 'worker',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318',
    OTEL_SEMCONV_STABILITY_OPT: 'x',
    NODE_OPTIONS: '',
    GRPC_VERBOSITY: 'debug',
    LIMIT_CPU: '2',
  };
  const result = parse({ ...Object.fromEntries(links), ...others });
  t.true(result.ok);
  t.deepEqual(result.warnings, []);
});
