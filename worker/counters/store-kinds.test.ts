import test from 'ava';
import type { Unit } from '../../shared/rules/unit.ts';
import type { Environment } from '../../shared/settings/setting.ts';
import { createHit } from '../../test/support/counting.ts';
import { parseWorkerSettings } from '../settings.ts';
import { storeKinds } from './store-kinds.ts';

const redis = { KVSTORE_URL: 'store:6379' };
const perSecond = { REDIS_PERSECOND: 'true', REDIS_PERSECOND_URL: 'second:6379' };

const hitOf = (unit: Unit) => createHit({ key: unit, unit });

function describeStoreCall(environment: Environment, units: readonly Unit[]) {
  const read = parseWorkerSettings(environment);
  if (!read.ok) throw new Error(read.problems.join('\n'));
  const { settings } = read;
  const kind = storeKinds[settings.counting.backend];
  return kind.describeCall(units.map(hitOf), settings);
}

test('a call of the key-value store has the number of counters of each of the two stores', (t) => {
  const units = ['second', 'minute', 'second'] as const;
  t.deepEqual(describeStoreCall({ ...redis, ...perSecond }, units), {
    scope: 'redis.fixedCacheImpl',
    name: 'Redis Pipeline Execution',
    attributes: { 'pipeline length': 1, 'perSecondPipeline length': 2 },
  });
  t.deepEqual(describeStoreCall(redis, units), {
    scope: 'redis.fixedCacheImpl',
    name: 'Redis Pipeline Execution',
    attributes: { 'pipeline length': 3, 'perSecondPipeline length': 0 },
  });
});

test('a call of the memory cache has the number of keys', (t) => {
  t.deepEqual(describeStoreCall({ BACKEND_TYPE: 'memcache' }, ['hour', 'day']), {
    scope: 'memcached.cacheImpl',
    name: 'Memcached Fetch Execution',
    attributes: { 'keysToGet length': 2 },
  });
});

test('counting in this process is not a call', (t) => {
  t.is(describeStoreCall({ BACKEND_TYPE: 'memory' }, ['hour']), undefined);
});
