import test from 'ava';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { addToEach } from '../../test/support/stub-metrics.ts';
import { createRegistry } from './registry.ts';

function setUp(runtimeNamesMax = 2) {
  const log = createRecordedLog();
  return { log, metrics: createRegistry({ runtimeNamesMax, log }) };
}

test('the same name has the same handle', (t) => {
  const { metrics } = setUp();
  t.is(metrics.counter('a'), metrics.counter('a'));
  t.is(metrics.gauge('a'), metrics.gauge('a'));
  t.is(metrics.timer('a'), metrics.timer('a'));
  t.is(metrics.counter('a:b'), metrics.counter('a|b'), 'equal once cleaned');
});

test('a snapshot has counters and gauges, sorted by name', (t) => {
  const { metrics } = setUp();
  metrics.gauge('b').set(2);
  metrics.counter('c').add(3);
  metrics.counter('c').add(4);
  metrics.counter('a').add(1);
  t.deepEqual(
    [...metrics.snapshot()].filter(([name]) => name.length === 1),
    [
      ['a', 1],
      ['b', 2],
      ['c', 7],
    ],
  );
});

test('gauges are set before each reading', (t) => {
  const { metrics } = setUp();
  let readings = 0;
  metrics.beforeReading(() => metrics.gauge('readings').set(++readings));
  t.is(metrics.snapshot().get('readings'), 1);
  metrics.prepareReading();
  t.is(metrics.snapshot().get('readings'), 3);
});

test('the names of the counters of a rule begin with its metric key', (t) => {
  const { metrics } = setUp();
  const stats = metrics.ruleStats('d.k_1.2.3.4', true);
  addToEach(stats);
  const prefix = 'ratelimit.service.rate_limit.d.k_1_2_3_4.';
  const values = [...metrics.snapshot()]
    .filter(([name]) => name.startsWith(prefix))
    .map(([name, value]) => `${name.slice(prefix.length)}=${value}`);
  t.deepEqual(values, [
    'near_limit=3',
    'over_limit=2',
    'over_limit_with_local_cache=5',
    'shadow_mode=6',
    'total_hits=1',
    'total_negative_hits=7',
    'within_limit=4',
  ]);
});

test('a rule’s counter exists from its first use on, and stays the same', (t) => {
  const { metrics } = setUp();
  const before = metrics.counters.length;
  const stats = metrics.ruleStats('d.k', true);
  t.is(metrics.counters.length, before);
  t.is(stats.totalHits, stats.totalHits);
  t.is(metrics.ruleStats('d.k', true), stats);
  t.is(metrics.counters.length, before + 1);
});

// Proof of migrating.md: Metric names made from requests are bounded; what does not fit shares one name
test('runtime names beyond the bound share one folded name, which is logged once', (t) => {
  const { metrics, log } = setUp(2);
  metrics.ruleStats('d.k_1', false).totalHits.add(1);
  metrics.ruleStats('d.k_2', false).totalHits.add(1);
  metrics.ruleStats('d.k_3', false).totalHits.add(1);
  metrics.ruleStats('d.k_4', false).totalHits.add(1);
  metrics.ruleStats('d.k_1', false).totalHits.add(1);
  const root = 'ratelimit.service.rate_limit';
  t.is(metrics.snapshot().get(`${root}.d.k_1.total_hits`), 2);
  t.is(metrics.snapshot().get(`${root}.d.k_3.total_hits`), undefined);
  t.is(metrics.snapshot().get(`${root}._folded_.runtime_keys.total_hits`), 2);
  t.is(metrics.snapshot().get('ratelimit.service.folded_metric_names'), 2);
  t.is(log.lines.length, 1);
  t.regex(log.lines[0] ?? '', /^warning Statistics: .*RUNTIME_METRIC_NAMES_MAX/);
});

test('folded hits of a rule with a list of limits are counted once under the folded name', (t) => {
  const registry = createRegistry({ runtimeNamesMax: 0, log: createRecordedLog() });
  registry.ruleStats('d.k_a', false).totalHits.add(1);
  registry.ruleStats('d.k_a.minute', false, 'minute').totalHits.add(1);
  const folded = 'ratelimit.service.rate_limit._folded_.runtime_keys';
  t.is(registry.snapshot().get(`${folded}.total_hits`), 1);
  t.is(registry.snapshot().get(`${folded}.minute.total_hits`), 1);
});

// Proof of SECURITY.md: fills `RUNTIME_METRIC_NAMES_MAX` statistics; rules as written keep theirs
test('names of static rules are never folded', (t) => {
  const { metrics } = setUp(0);
  metrics.ruleStats('d.k', true).totalHits.add(1);
  t.is(metrics.snapshot().get('ratelimit.service.rate_limit.d.k.total_hits'), 1);
  t.is(metrics.ruleStats('d.k', false), metrics.ruleStats('d.k', true), 'also as a runtime key');
  t.is(metrics.snapshot().get('ratelimit.service.folded_metric_names'), 0);
});

test('a name of the maximum length of a request is folded', (t) => {
  const { metrics } = setUp(10);
  metrics.ruleStats(`d.k_${'x'.repeat(100_000)}`, false).totalHits.add(1);
  t.is(metrics.snapshot().get('ratelimit.service.rate_limit._folded_.runtime_keys.total_hits'), 1);
});

test('unknown domains are counted by name, within the same bound', (t) => {
  const { metrics } = setUp(1);
  metrics.unknownDomain('x').add(2);
  metrics.unknownDomain('y').add(3);
  metrics.unknownDomain('x').add(2);
  t.is(metrics.snapshot().get('ratelimit.service.rate_limit.x.domain_not_found'), 4);
  t.is(metrics.snapshot().get('ratelimit.service.rate_limit._folded_.domain_not_found'), 3);
});

test('a listener receives existing and later timers', (t) => {
  const { metrics } = setUp();
  const received: string[] = [];
  metrics.timer('early');
  metrics.listenToTimers((name) => (ms) => received.push(`${name} ${ms}`));
  metrics.timer('early').observe(1);
  metrics.timer('late').observe(2);
  t.deepEqual(received, ['early 1', 'late 2']);
});
