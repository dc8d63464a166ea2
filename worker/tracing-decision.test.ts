import test from 'ava';
import type { Unit } from '../shared/rules/unit.ts';
import type { SpanAttributes, SpanParent } from '../shared/tracing.ts';
import type { Hit } from './counters/store.ts';
import { createDecisionSpans } from './tracing-decision.ts';

type Options = Parameters<typeof createDecisionSpans>[0];

const hitOf = (unit: Unit): Hit => ({
  key: unit,
  mapKey: unit,
  hits: 1,
  exactHits: undefined,
  refund: false,
  limit: 5,
  windowSeconds: 60,
  unit,
  descriptorIndex: 0,
  after: 0,
  limiter: undefined,
  lease: undefined,
  resetSeconds: -1,
  closedSeconds: -1,
  windowLeftMs: -1,
});

function describeStoreCall(options: Options, units: readonly Unit[]) {
  const started: [string, string, SpanAttributes | undefined][] = [];
  const parent: SpanParent = {
    startSpan(scope, name, attributes) {
      started.push([scope, name, attributes]);
      return { set: () => {}, end: () => {} };
    },
  };
  createDecisionSpans(options).startStoreCall(parent, units.map(hitOf));
  return started;
}

test('a call of the key-value store tells how many counters each of the two stores has', (t) => {
  const units = ['second', 'minute', 'second'] as const;
  t.deepEqual(describeStoreCall({ backend: 'redis', hasPerSecondStore: true }, units), [
    [
      'redis.fixedCacheImpl',
      'Redis Pipeline Execution',
      { 'pipeline length': 1, 'perSecondPipeline length': 2 },
    ],
  ]);
  t.deepEqual(describeStoreCall({ backend: 'redis', hasPerSecondStore: false }, units), [
    [
      'redis.fixedCacheImpl',
      'Redis Pipeline Execution',
      { 'pipeline length': 3, 'perSecondPipeline length': 0 },
    ],
  ]);
});

test('a call of the memory cache tells how many keys it gets', (t) => {
  const options = { backend: 'memcached', hasPerSecondStore: false } as const;
  t.deepEqual(describeStoreCall(options, ['hour', 'day']), [
    ['memcached.cacheImpl', 'Memcached Fetch Execution', { 'keysToGet length': 2 }],
  ]);
});

test('counters of this process are no call', (t) => {
  t.deepEqual(describeStoreCall({ backend: 'memory', hasPerSecondStore: false }, ['hour']), []);
});
