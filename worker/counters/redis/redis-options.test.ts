import test from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import { parseWorkerSettings } from '../../settings.ts';
import { toRedisStoreOptions } from './redis-options.ts';

test('credentials of the address have precedence over a file', (t) => {
  const optionsOf = (url: string) => {
    const result = parseWorkerSettings({
      KVSTORE_SOCKET_TYPE: 'tcp',
      KVSTORE_URL: url,
      KVSTORE_AUTH_FILE: '/run/secrets/store',
      RUNTIME_ROOT: '/',
    });
    if (!result.ok) throw new Error(result.problems.join('\n'));
    return toRedisStoreOptions(result.settings, 'store', systemClock);
  };
  t.is(optionsOf('redis://me:secret@localhost:6379').readCredentials, undefined);
  t.truthy(optionsOf('localhost:6379').readCredentials);
});
