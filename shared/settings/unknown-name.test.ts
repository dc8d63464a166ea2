import test from 'ava';
import { testLines } from '../../test/support/reviewed-lines.ts';
import { warnUnknownNames } from './unknown-name.ts';

const known = new Set([
  'HOST',
  'PORT',
  'LOG_LEVEL',
  'REDIS_URL',
  'REDIS_TLS',
  'REDIS_AUTH',
  'REDIS_TIMEOUT',
  'LOCAL_CACHE_SIZE_IN_BYTES',
  'EXPIRATION_JITTER_MAX_SECONDS',
]);

function warn(environment: Record<string, string>): string[] {
  return warnUnknownNames(environment, known, ['REDIS_']);
}

testLines(test, new URL('unknown-name.txt', import.meta.url), (name) =>
  warn({ [name]: '6379' }).join('; '),
);

test('variables of other programs are left alone', (t) => {
  const others = {
    PATH: '/bin',
    HOME: '/root',
    HOSTNAME: 'pod-1',
    HOSTS: 'x',
    PORTS: 'x',
    POST: 'x',
    TERM: 'xterm',
    PWD: '/',
    LANG: 'C',
    NODE_ENV: 'production',
    NODE_OPTIONS: '',
    npm_config_loglevel: 'warn',
    npm_config_log_level: 'warn',
    OTEL_LOG_LEVEL: 'info',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://x',
    OTEL_SEMCONV_STABILITY_OPT_IN: 'http/dup',
    KUBERNETES_SERVICE_HOST: '10.0.0.1',
    KUBERNETES_PORT_443_TCP_ADDR: '10.0.0.1',
    REDIS_SERVICE_HOST: '10.0.0.1',
    REDIS_SERVICE_PORT: '6379',
    REDIS_SERVICE_PORT_CLIENT: '6379',
    REDIS_PORT: 'tcp://10.0.0.1:6379',
    REDIS_PORT_6379_TCP: 'tcp://10.0.0.1:6379',
    REDIS_PORT_6379_TCP_PROTO: 'tcp',
    REDIS_URL_SERVICE_HOST: '10.0.0.1',
    GRPC_VERBOSITY: 'debug',
    GRPC_TRACE: 'all',
    LOG_FILE: 'x',
    [`REDIS_${'X'.repeat(200)}`]: 'x',
  };
  t.deepEqual(warn(others), []);
});

test('a name that others are known to set is reported with what they mean', (t) => {
  const usual = { REDIS_TIMEOUTS: 'REDIS_URL' };
  t.deepEqual(warnUnknownNames({ REDIS_TIMEOUTS: 'x' }, known, ['REDIS_'], usual), [
    'REDIS_TIMEOUTS is not a setting and is ignored: did you mean REDIS_URL?',
  ]);
});

test('known names are not reported', (t) => {
  t.deepEqual(warn(Object.fromEntries([...known].map((name) => [name, 'x']))), []);
});
