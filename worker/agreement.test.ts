import test from 'ava';
import { toAgreement } from './agreement.ts';
import { parseWorkerSettings } from './settings.ts';

type Environment = Record<string, string>;

const redis: Environment = { KVSTORE_URL: 'store:6379' };
const memcached: Environment = { BACKEND_TYPE: 'memstore', MEMSTORE_HOST_PORT: 'a:1,b:2' };

function agreementOf(environment: Environment) {
  const result = parseWorkerSettings(environment);
  if (!result.ok) throw new Error(result.problems.join('\n'));
  return toAgreement(result.settings);
}

const stable: [string, Environment, string, string[]][] = [
  [
    'a key-value store',
    redis,
    'a2286b82',
    [
      'backend: redis',
      'database: 0',
      'limits per second: in the same store',
      'keys above 1,024 bytes: hashed',
      'cache key prefix: ""',
      'weeks begin on: Thursday',
      'months: 30 days',
      'descriptors beside one that is over its limit: counted',
    ],
  ],
  [
    'memory caches, and everything else as it is not by default',
    {
      ...memcached,
      CACHE_KEY_PREFIX: 'edge ',
      WEEK_RATE_LIMIT_RESET_DAY: 'monday',
      USE_CALENDAR_MONTH_RATE_LIMIT: 'true',
    },
    '7cebed14',
    [
      'backend: memcached',
      'nodes: a:1, b:2',
      'cache key prefix: "edge "',
      'weeks begin on: Monday',
      'months: of the calendar',
      'descriptors beside one that is over its limit: counted',
    ],
  ],
  [
    'counters inside the process',
    { BACKEND_TYPE: 'memory', STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true' },
    'c311158c',
    [
      'backend: memory',
      'cache key prefix: ""',
      'weeks begin on: Thursday',
      'months: 30 days',
      'descriptors beside one that is over its limit: not counted',
    ],
  ],
];
for (const [name, environment, hash, parts] of stable) {
  test(`${name}: the hash is the same in every release`, (t) => {
    t.deepEqual(agreementOf(environment), { hash, number: Number(`0x${hash}`), parts });
  });
}

const perSecond = { ...redis, KVSTORE_PERSECOND: 'true', KVSTORE_PERSECOND_URL: 'fast:6379' };
const srv = { BACKEND_TYPE: 'memstore', MEMSTORE_SRV: '_memcache._tcp.one.example' };
const different: [string, Environment, Environment][] = [
  ['the backend', redis, { BACKEND_TYPE: 'memory' }],
  ['the database', redis, { KVSTORE_URL: 'redis://store:6379/1' }],
  ['where limits per second are counted', redis, perSecond],
  [
    'the database of limits per second',
    perSecond,
    { ...perSecond, KVSTORE_PERSECOND_URL: 'redis://fast:6379/1' },
  ],
  ['long keys', redis, { ...redis, REDIS_LONG_KEYS: 'whole' }],
  ['keys that nodes do not take', memcached, { ...memcached, MEMCACHE_LONG_KEYS: 'hash' }],
  ['a node', memcached, { ...memcached, MEMSTORE_HOST_PORT: 'a:1,b:3' }],
  ['the order of nodes', memcached, { ...memcached, MEMSTORE_HOST_PORT: 'b:2,a:1' }],
  ['a further node', memcached, { ...memcached, MEMSTORE_HOST_PORT: 'a:1,b:2,b:2' }],
  ['no node', memcached, { BACKEND_TYPE: 'memstore' }],
  ['a record of nodes', memcached, srv],
  ['the name of the record', srv, { ...srv, MEMSTORE_SRV: '_memcache._tcp.two.example' }],
  ['the prefix', redis, { ...redis, CACHE_KEY_PREFIX: 'x' }],
  ['the day of weeks', redis, { ...redis, WEEK_RATE_LIMIT_RESET_DAY: 'Sunday' }],
  ['months', redis, { ...redis, USE_CALENDAR_MONTH_RATE_LIMIT: 'true' }],
  ['whether others count', redis, { ...redis, STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true' }],
];
for (const [name, one, other] of different) {
  test(`workers differ in ${name}`, (t) => {
    t.not(agreementOf(one).hash, agreementOf(other).hash);
  });
}

const same: [string, Environment, Environment][] = [
  ['the ways to one store', redis, { KVSTORE_URL: 'rediss://:sesame@localhost:7000' }],
  [
    'the old and the new names of settings',
    memcached,
    { BACKEND_TYPE: 'memcache', MEMCACHE_HOST_PORT: 'A:1,b:2' },
  ],
  ['how often a record is read', srv, { ...srv, MEMSTORE_SRV_REFRESH: '30s' }],
  [
    'what has no effect with memory caches',
    memcached,
    { ...memcached, STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true', KVSTORE_URL: 'h:1' },
  ],
  [
    'what changes no counter',
    redis,
    {
      ...redis,
      EXPIRATION_JITTER_MAX_SECONDS: '0',
      NEAR_LIMIT_RATIO: '0.5',
      LOCAL_CACHE_SIZE_IN_BYTES: '1000000',
      MERGE_DOMAIN_CONFIG: 'true',
      SHADOW_MODE: 'true',
      QUOTA_MODE: 'true',
      KVSTORE_TIMEOUT: '1s',
      KVSTORE_POOL_SIZE: '2',
      PORT: '1',
      LIMIT_RESPONSE_HEADERS_ENABLED: 'true',
    },
  ],
];
for (const [name, one, other] of same) {
  test(`workers may differ in ${name}`, (t) => {
    t.deepEqual(agreementOf(one), agreementOf(other));
  });
}
