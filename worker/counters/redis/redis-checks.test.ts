// The rules between the settings of the key-value stores.
import test from 'ava';
import { parseWorkerSettings } from '../../settings.ts';

type Environment = Record<string, string>;

const parse = (environment: Environment) =>
  parseWorkerSettings({ REDIS_URL: 'localhost:6379', DEBUG_HOST: '127.0.0.1', ...environment });

const warned: [Environment, string[]][] = [
  [
    { KVSTORE_TLS_CACERT: '/tls/ca.pem' },
    [
      'KVSTORE_TLS_CACERT="/tls/ca.pem" has no effect without KVSTORE_TLS/REDIS_TLS=true: the connection is not encrypted',
    ],
  ],
  [
    { REDIS_TLS: 'true', REDIS_TLS_CLIENT_KEY: '/tls/key.pem' },
    [
      'REDIS_TLS_CLIENT_KEY="/tls/key.pem" has no effect without KVSTORE_TLS_CLIENT_CERT/REDIS_TLS_CLIENT_CERT',
    ],
  ],
  [
    { REDIS_SENTINEL_AUTH: 'open' },
    ['REDIS_SENTINEL_AUTH="*****" has no effect without KVSTORE_TYPE/REDIS_TYPE=sentinel'],
  ],
  [{ REDIS_TYPE: 'SENTINEL', REDIS_URL: 'main,h:1', REDIS_SENTINEL_AUTH: 'open' }, []],
  [{ REDIS_URL: 'rediss://h:1', KVSTORE_TLS_CACERT: '/tls/ca.pem' }, []],
  [
    {
      BACKEND_TYPE: 'memcache',
      MEMCACHE_HOST_PORT: 'h:1',
      MEMCACHE_LONG_KEYS: 'fail',
      KVSTORE_TLS_CACERT: '/tls/ca.pem',
    },
    [],
  ],
  [
    { BACKEND_TYPE: 'memcache', MEMCACHE_HOST_PORT: 'h:1' },
    [
      'MEMSTORE_LONG_KEYS/MEMCACHE_LONG_KEYS is not set: a request fails whose value makes a counter key longer than 250 bytes or has a blank, and Envoy lets it pass by default; write hash to count it, or fail where workers of the reference count in the same nodes',
    ],
  ],
];
const iam = {
  REDIS_AWS_IAM_AUTH: 'true',
  KVSTORE_CLOUDIAM_CACHE_NAME: 'orders',
  KVSTORE_CLOUDIAM_USER_ID: 'limits',
};
warned.push(
  [
    { ...iam, AWS_REGION: 'eu-west-1' },
    [
      'REDIS_AWS_IAM_AUTH="true": tokens travel unencrypted without KVSTORE_TLS/REDIS_TLS=true, unless something in between speaks TLS',
    ],
  ],
  [{ ...iam, KVSTORE_CLOUDIAM_REGION: 'eu-west-1', REDIS_TLS: 'true' }, []],
);
for (const [environment, warnings] of warned) {
  test(`the start warns ${warnings.length} times of ${JSON.stringify(environment)}`, (t) => {
    const result = parse(environment);
    t.true(result.ok);
    t.deepEqual(result.warnings, warnings);
  });
}

test('files of TLS with a store are looked for when a store uses TLS', (t) => {
  const files = (environment: Environment) => {
    const result = parse({
      KVSTORE_TLS_CACERT: '/tls/ca.pem',
      KVSTORE_TLS_CLIENT_CERT: '/tls/cert.pem',
      ...environment,
    });
    return result.ok ? result.tlsFiles.map(({ path }) => path) : undefined;
  };
  t.deepEqual(files({}), []);
  t.deepEqual(files({ KVSTORE_TLS: 'true' }), ['/tls/ca.pem']);
  t.deepEqual(files({ KVSTORE_URL: 'rediss://h:1', REDIS_URL: 'rediss://h:1' }), ['/tls/ca.pem']);
  const perSecond = { REDIS_PERSECOND_URL: 'h:1', REDIS_PERSECOND_TLS: 'true' };
  t.deepEqual(files(perSecond), []);
  t.deepEqual(files({ ...perSecond, REDIS_PERSECOND: 'true' }), ['/tls/ca.pem']);
  t.deepEqual(files({ KVSTORE_TLS: 'true', KVSTORE_TLS_CLIENT_KEY: '/tls/key.pem' }), [
    '/tls/ca.pem',
    '/tls/cert.pem',
    '/tls/key.pem',
  ]);
  t.deepEqual(files({ KVSTORE_TLS: 'true', BACKEND_TYPE: 'memory' }), []);
});

const refused: [Environment, string[]][] = [
  [
    { KVSTORE_CLOUDIAM_AUTH: 'true' },
    [
      'KVSTORE_CLOUDIAM_CACHE_NAME/REDIS_AWS_IAM_CACHE_NAME is not set: KVSTORE_CLOUDIAM_AUTH="true" needs the name of the serverless cache or the id of the replication group',
      'KVSTORE_CLOUDIAM_USER_ID/REDIS_AWS_IAM_USER_ID is not set: KVSTORE_CLOUDIAM_AUTH="true" needs the user to connect as',
    ],
  ],
  [
    { ...iam, AWS_DEFAULT_REGION: 'eu-west-1', KVSTORE_AUTH_FILE: '/run/auth' },
    ['REDIS_AWS_IAM_AUTH and KVSTORE_AUTH_FILE both say how to authenticate; remove one of them'],
  ],
  [
    { ...iam, AWS_REGION: 'eu-west-1', REDIS_URL: 'redis://:open@h:1' },
    ['REDIS_AWS_IAM_AUTH and REDIS_URL both say how to authenticate; remove one of them'],
  ],
];
for (const [environment, problems] of refused) {
  test(`the start fails with ${JSON.stringify(environment)}`, (t) => {
    const result = parse(environment);
    t.deepEqual(result.ok ? [] : result.problems, problems);
  });
}

test('the token settings of one store are not those of the other', (t) => {
  const result = parse({
    ...iam,
    AWS_REGION: 'eu-west-1',
    REDIS_PERSECOND: 'true',
    REDIS_PERSECOND_URL: 'h:1',
  });
  if (!result.ok) return t.fail();
  t.like(result.settings.store.cloudIam, { enabled: true, region: 'eu-west-1' });
  t.like(result.settings.perSecondStore.cloudIam, { enabled: false, cacheName: '', region: '' });
});
