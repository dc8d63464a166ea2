import test from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import { parseWorkerSettings } from '../../settings.ts';
import { toRedisStoreOptions } from './redis-options.ts';

testLines(test, new URL('remedies.txt', import.meta.url), (given) => {
  const [settings = '', failure = ''] = given.split('; ');
  const pairs = settings.split(' ').map((pair) => pair.split(/=(.*)/, 2));
  const result = parseWorkerSettings(Object.fromEntries(pairs));
  if (!result.ok) return result.problems.join();
  const which = settings.includes('PERSECOND=true') ? 'perSecondStore' : 'store';
  const { pool } = toRedisStoreOptions(result.settings, which, systemClock);
  return pool.describeRemedy(failure) ?? 'nothing';
});
