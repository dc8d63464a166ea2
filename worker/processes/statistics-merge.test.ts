import test from 'ava';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { addToEach } from '../../test/support/stub-metrics.ts';
import { createRegistry, type MetricsRegistry } from '../metrics/registry.ts';
import { createStatisticsMerge } from './statistics-merge.ts';
import { createStatisticsReporter, type StatisticsReport } from './statistics-report.ts';

const ruleRoot = 'ratelimit.service.rate_limit';

/** A primary, and processes that report to it on command. */
function setUp(runtimeNamesMax = 100) {
  const log = createRecordedLog();
  const primary = createRegistry({ runtimeNamesMax, log });
  const merge = createStatisticsMerge(primary);
  const addProcess = () => {
    const metrics = createRegistry({ runtimeNamesMax, log: createRecordedLog() });
    const reporter = createStatisticsReporter(metrics);
    const reported = merge.addProcess();
    const report = () => {
      const parts = [...reporter.receive()];
      for (const part of parts) reported.receive(structuredClone(part));
      return parts;
    };
    return { metrics, report, end: () => reported.end() };
  };
  return { log, primary, addProcess };
}

function shown(metrics: MetricsRegistry, name: string) {
  return metrics.snapshot().get(name);
}

test('counters of all processes and of the primary add up, each increase once', (t) => {
  const { primary, addProcess } = setUp();
  const [one, other] = [addProcess(), addProcess()];
  primary.counter('c').add(1);
  one.metrics.counter('c').add(10);
  other.metrics.counter('before').add(5);
  other.metrics.counter('c').add(100);
  for (const process of [one, other, one, other]) process.report();
  t.is(shown(primary, 'c'), 111);
  one.metrics.counter('c').add(1_000);
  for (const process of [one, other]) process.report();
  t.is(shown(primary, 'c'), 1_111);
  t.is(shown(primary, 'before'), 5);
});

test('a counter that has counted nothing exists nevertheless', (t) => {
  const { primary, addProcess } = setUp();
  const process = addProcess();
  process.metrics.counter('none');
  process.report();
  t.is(shown(primary, 'none'), 0);
});

test("a counter's own tags are known in the primary", (t) => {
  const { primary, addProcess } = setUp();
  const process = addProcess();
  process.metrics.counter('c', { code: 'x' }).add(1);
  process.report();
  t.is(shown(primary, 'c.__code=x'), 1);
  const tagged = primary.counters.map((counter) => counter.tagged).filter(Boolean);
  t.deepEqual(tagged, [{ name: 'c', tags: { code: 'x' } }]);
});

test('all counters of rules and domains are equal in the primary', (t) => {
  const { primary, addProcess } = setUp();
  const process = addProcess();
  const stats = process.metrics.ruleStats('d.k_1.2', true);
  addToEach(stats);
  process.metrics.unknownDomain('nowhere:1').add(8);
  process.report();
  const own = [...process.metrics.snapshot()].filter(([name]) => name.startsWith(ruleRoot));
  t.is(own.length, 8);
  t.deepEqual(
    own,
    [...primary.snapshot()].filter(([name]) => name.startsWith(ruleRoot)),
  );
});

test('the bound on names made from requests is for the whole worker, and names of rules do not count', (t) => {
  const { log, primary, addProcess } = setUp(3);
  const [one, other] = [addProcess(), addProcess()];
  for (const [process, keys] of [
    [one, ['d.a', 'd.b']],
    [other, ['d.b', 'd.c', 'd.e']],
  ] as const) {
    for (const key of keys) process.metrics.ruleStats(key, false).totalHits.add(1);
    for (let rule = 0; rule < 10; rule++) {
      process.metrics.ruleStats(`d.rule${rule}`, true).totalHits.add(1);
    }
    process.report();
  }
  t.deepEqual(
    ['d.a', 'd.b', 'd.c', 'd.e', '_folded_.runtime_keys'].map((key) =>
      shown(primary, `${ruleRoot}.${key}.total_hits`),
    ),
    [1, 2, 1, undefined, 1],
  );
  t.is(shown(primary, `${ruleRoot}.d.rule9.total_hits`), 2);
  t.is(shown(primary, 'ratelimit.service.folded_metric_names'), 1);
  t.is(log.lines.length, 1);
});

test('each observation of a timer is output once, equal ones together', (t) => {
  const { primary, addProcess } = setUp();
  const observed: [ms: number, times: number][] = [];
  primary.listenToTimers(() => (ms, times) => observed.push([ms, times]));
  const [one, other] = [addProcess(), addProcess()];
  for (const ms of [1, 1, 2.5]) one.metrics.timer('t').observe(ms);
  one.report();
  one.metrics.timer('t').observe(7);
  other.metrics.timer('t').observe(2_000);
  for (const process of [one, other]) process.report();
  t.deepEqual(observed, [
    [1, 2],
    [2.5, 1],
    [7, 1],
    [2_000, 1],
  ]);
});

test('amounts are summed, times and delays show the worst, and both end with their process', (t) => {
  const { primary, addProcess } = setUp();
  const [one, other] = [addProcess(), addProcess()];
  const rows: readonly [name: string, own: number, one: number, other: number, shown: number][] = [
    ['ratelimit.node.rss_bytes', 1, 10, 100, 111],
    ['ratelimit.redis_pool.cx_active', 0, 10, 10, 20],
    ['ratelimit.localcache.entryCount', 0, 3, 4, 7],
    ['ratelimit.localcache.averageAccessTime', 0, 1_700_000_000, 1_700_000_009, 1_700_000_009],
    ['ratelimit.node.uptime_seconds', 50, 40, 10, 50],
    ['ratelimit.node.event_loop_busy_percent', 3, 40, 99, 99],
    ['ratelimit.node.event_loop_delay_p99_us', 3, 40, 9, 40],
    ['ratelimit.store.clock_offset_ms', 0, 3, -8, -8],
    ['ratelimit.xds.connected', 1, 0, 0, 1],
    ['certs.num_values', 0, 2, 2, 2],
    [
      'ratelimit.certificate.grpc.not_after_timestamp_seconds',
      0,
      1_900_000_000,
      1_800_000_000,
      1_800_000_000,
    ],
    ['ratelimit.certificate.grpc.renewal_refused', 0, 0, 1, 1],
  ];
  for (const [name, ...values] of rows) {
    [primary, one.metrics, other.metrics].forEach((metrics, index) => {
      metrics.gauge(name).set(values[index] ?? 0);
    });
  }
  for (const process of [one, other]) process.report();
  for (const [name, , , , expected] of rows) t.is(shown(primary, name), expected, name);
  other.end();
  t.is(shown(primary, 'ratelimit.node.rss_bytes'), 11);
  t.is(shown(primary, 'ratelimit.store.clock_offset_ms'), 3);
  const expiry = 'ratelimit.certificate.grpc.not_after_timestamp_seconds';
  t.is(shown(primary, expiry), 1_900_000_000);
});

test('gauges are set before each report, as before each reading', (t) => {
  const { primary, addProcess } = setUp();
  const process = addProcess();
  process.metrics.beforeReading(() => process.metrics.gauge('g').set(5));
  process.report();
  t.is(shown(primary, 'g'), 5);
});

test('many counters are sent in parts of bounded size, and all arrive', (t) => {
  const { primary, addProcess } = setUp(100_000);
  const process = addProcess();
  for (let key = 0; key < 12_000; key++) {
    process.metrics.ruleStats(`d.${key}`, false).totalHits.add(1);
  }
  const sizeOf = ({ newCounters, indexes }: StatisticsReport) =>
    Math.max(newCounters.length * 20, indexes.length);
  const first = process.report();
  t.true(first.every((part) => sizeOf(part) <= 10_000));
  for (let key = 0; key < 12_000; key++) {
    process.metrics.ruleStats(`d.${key}`, false).totalHits.add(1);
  }
  t.deepEqual(
    process.report().map(({ indexes }) => indexes.length),
    [10_000, 2_000],
  );
  const hits = [...primary.snapshot()].filter(([name]) => name.startsWith(`${ruleRoot}.d.`));
  t.is(hits.length, 12_000);
  t.true(hits.every(([, value]) => value === 2));
});
