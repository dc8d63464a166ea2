// The rules between the settings of the key-value stores.
import test from 'ava';
import { parseWorkerSettings } from '../settings.ts';

type Environment = Record<string, string>;

const parse = (environment: Environment) =>
  parseWorkerSettings({ REDIS_URL: 'localhost:6379', ...environment });

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
  [{ BACKEND_TYPE: 'memcache', MEMCACHE_HOST_PORT: 'h:1', KVSTORE_TLS_CACERT: '/tls/ca.pem' }, []],
];
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
