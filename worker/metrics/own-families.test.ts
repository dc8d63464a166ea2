import test from 'ava';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createStatisticsMerge } from '../processes/statistics-merge.ts';
import { createStatisticsReporter } from '../processes/statistics-report.ts';
import { createDefaultMapping } from './default-mapping.ts';
import { toExposition } from './exposition.ts';
import { parseMapping } from './mapping-file.ts';
import type { Mapping } from './metric-mapping.ts';
import { createPullSeries } from './pull-series.ts';
import { createRegistry, type MetricsRegistry, maxStoreServers } from './registry.ts';

const newRegistry = () => createRegistry({ runtimeNamesMax: 10, log: createRecordedLog() });

async function expose(
  registry: MetricsRegistry,
  mapping: Mapping = createDefaultMapping(false),
): Promise<string> {
  const log = createRecordedLog();
  const tags = { zone: 'a' };
  const series = createPullSeries({ registry, mapping, tags, clock: createManualClock(), log });
  await series.refresh();
  series.append(1000);
  return [...toExposition(series.families.values(), 'text', () => 0, 1000)].join('');
}

const dropAll = parseMapping(
  'mappings: [{match: ., match_type: regex, action: drop, name: dropped}]',
  'mapping.yaml',
).mapping;

test('the process metrics are those of Prometheus clients, even if a mapping drops everything else', async (t) => {
  const text = await expose(newRegistry(), dropAll);
  const value = (name: string) =>
    Number(new RegExp(`^${name}\\{zone="a"\\} (\\S+)$`, 'm').exec(text)?.[1]);
  t.true(value('process_cpu_seconds_total') > 0);
  t.true(value('process_cpu_user_seconds_total') > 0);
  t.true(value('process_cpu_system_seconds_total') >= 0);
  t.true(value('process_resident_memory_bytes') > 1e7);
  t.true(value('process_virtual_memory_bytes') > value('process_resident_memory_bytes'));
  t.true(value('process_open_fds') > 2);
  t.true(value('process_max_fds') >= value('process_open_fds'));
  t.true(Number.isInteger(value('process_start_time_seconds')));
  t.regex(text, /^# TYPE process_cpu_seconds_total counter$/m);
});

test('durations below a millisecond are distinguished, from the first reading on', async (t) => {
  const registry = newRegistry();
  const buckets = async () => {
    const lines = (await expose(registry)).split('\n');
    return lines
      .filter((line) => line.startsWith('ratelimit_decision_duration_seconds_bucket'))
      .map((line) => /le="(.*)"} (.*)/.exec(line)?.slice(1).map(Number));
  };
  t.deepEqual((await buckets())[0], [0.00005, 0]);
  registry.decisionDuration.observe(0.00004);
  registry.decisionDuration.observe(0.00007);
  registry.decisionDuration.observe(2);
  const after = await buckets();
  t.deepEqual(after.slice(0, 3), [
    [0.00005, 1],
    [0.0001, 2],
    [0.00025, 2],
  ]);
  t.deepEqual(after.at(-1), [Number.NaN, 3]);
  t.regex(await expose(registry), /^ratelimit_decision_duration_seconds_count\{zone="a"\} 3$/m);
});

test('servers of the store have their own series up to a bound, and further ones share one', async (t) => {
  const registry = newRegistry();
  for (let server = 0; server < 150; server++) {
    registry.storeCallDuration(`10.0.0.${server}:6379`).observe(0.002);
  }
  registry.storeCallDuration('10.0.0.0:6379').observe(0.3);
  const lines = (await expose(registry)).split('\n');
  const counts = lines.filter((line) =>
    line.startsWith('ratelimit_store_call_duration_seconds_count'),
  );
  t.is(counts.length, maxStoreServers + 1);
  const countOf = (server: string) =>
    counts.find((line) => line.includes(`{zone="a",server="${server}"}`))?.split(' ')[1];
  t.is(countOf('10.0.0.0:6379'), '2');
  t.is(countOf('10.0.0.99:6379'), '1');
  t.is(countOf('others'), '50');
});

test('the observations of several processes are added up', (t) => {
  const [full, part] = [newRegistry(), newRegistry()];
  const merged = createStatisticsMerge(full).addProcess();
  const reporter = createStatisticsReporter(part);
  for (let round = 0; round < 2; round++) {
    part.decisionDuration.observe(0.001);
    part.storeCallDuration('redis:6379').observe(0.06);
    for (const report of reporter.receive()) merged.receive(report);
  }
  t.like(full.decisionDuration, { count: 2, sum: 0.002 });
  t.is(full.storeCallDuration('redis:6379').count, 2);
  t.is(full.storeCallDuration('redis:6379').sum, 0.12);
});

test('counters of our own exist from the start, with their descriptions', async (t) => {
  const registry = newRegistry();
  registry.counter('ratelimit.grpc.cx_refused');
  registry.counter('ratelimit.service.config_load_error');
  registry.counter('ratelimit.service.no_match.shop.eu');
  registry.gauge('ratelimit.node.uptime_seconds').set(3);
  const text = await expose(registry);
  t.regex(text, /^# HELP ratelimit_grpc_cx_refused gRPC connections that were closed because/m);
  t.regex(text, /^ratelimit_grpc_cx_refused\{zone="a"\} 0$/m);
  t.regex(text, /^# HELP ratelimit_service_no_match Descriptors that match no rule/m);
  t.regex(text, /^ratelimit_service_no_match\{zone="a",domain="shop.eu"\} 0$/m);
  t.regex(text, /^# HELP ratelimit_node_uptime_seconds Time since the start$/m);
  t.notRegex(text, /config_load_error/, "the reference's are there when they have counted");
});
