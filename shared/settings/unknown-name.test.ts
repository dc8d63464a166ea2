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

/** `NAME` or `NAME=VALUE`. */
testLines(test, new URL('unknown-name.txt', import.meta.url), (given) => {
  const pairs = given.split(' ').map((word) => word.split('='));
  return (
    warn(Object.fromEntries(pairs.map(([name, value = '6379']) => [name, value]))).join('; ') ||
    'no warning'
  );
});

test('a name that other programs are known to set is reported with its meaning', (t) => {
  const usual = { REDIS_TIMEOUTS: 'REDIS_URL' };
  t.deepEqual(warnUnknownNames({ REDIS_TIMEOUTS: 'x' }, known, ['REDIS_'], usual), [
    'REDIS_TIMEOUTS is not a setting and is ignored: did you mean REDIS_URL?',
  ]);
});

test('known names are not reported', (t) => {
  t.deepEqual(warn(Object.fromEntries([...known].map((name) => [name, 'x']))), []);
});
