import test from 'ava';
import { eventually } from '../../test/support/eventually.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createJsonFormat } from './json-format.ts';
import type { LineFormat } from './line-sink.ts';
import { createLineSink } from './line-sink.ts';
import { createRegistry } from './registry.ts';
import { createStatsdFormat } from './statsd-format.ts';

function setUp(format: LineFormat = createStatsdFormat({})) {
  const registry = createRegistry({ runtimeNamesMax: 0, log: createRecordedLog() });
  let text = '';
  const transport = {
    ready: true,
    send(lines: string) {
      text += lines;
    },
    close: async () => {},
  };
  const sink = createLineSink({ registry, format, transport });
  const drain = () => {
    const lines = text.split('\n').slice(0, -1);
    text = '';
    return lines;
  };
  return { registry, transport, sink, drain };
}

test('a counter is sent as its increase, and not without an increase', (t) => {
  const { registry, sink, drain } = setUp();
  const counter = registry.counter('a.b');
  counter.add(2);
  sink.flush();
  t.deepEqual(drain(), ['a.b:2|c']);
  sink.flush();
  t.deepEqual(drain(), []);
  counter.add(3);
  sink.flush();
  t.deepEqual(drain(), ['a.b:3|c']);
});

test('gauges are sent with every flush', (t) => {
  const { registry, sink, drain } = setUp();
  registry.gauge('g').set(7);
  sink.flush();
  sink.flush();
  t.deepEqual(drain(), ['g:7|g', 'g:7|g']);
});

test('a gauge below 0 is set to its value, not lowered by it', (t) => {
  const { registry, sink, drain } = setUp();
  registry.gauge('g').set(-300);
  sink.flush();
  t.deepEqual(drain(), ['g:0|g', 'g:-300|g']);
});

test('a whole number of any size is written without an exponent', (t) => {
  const { registry, sink, drain } = setUp();
  registry.counter('c').add(2 ** 70);
  registry.gauge('g').set(12.9);
  sink.flush();
  t.deepEqual(drain(), ['c:1180591620717411303424|c', 'g:12|g']);
});

test('each observation of a timer is a line, whole milliseconds without a fraction', (t) => {
  const { registry, sink, drain } = setUp();
  const timer = registry.timer('t');
  for (const ms of [0, 3, 3, 2.5, 5000]) timer.observe(ms);
  sink.flushTimers();
  t.deepEqual(drain().sort(), ['t:0|ms', 't:2.500000|ms', 't:3|ms', 't:3|ms', 't:5000|ms']);
  sink.flushTimers();
  t.deepEqual(drain(), []);
});

test('hits counted while no receiver accepted them are sent later in one line', (t) => {
  const { registry, transport, sink, drain } = setUp();
  const counter = registry.counter('c');
  transport.ready = false;
  counter.add(1);
  sink.flush();
  registry.timer('t').observe(4);
  sink.flushTimers();
  counter.add(1);
  sink.flush();
  t.deepEqual(drain(), []);
  transport.ready = true;
  sink.flush();
  sink.flushTimers();
  t.deepEqual(drain(), ['c:2|c', 't:4|ms']);
});

test('a transport that fills up during a flush gets the rest at the next one', (t) => {
  const { registry, transport, sink } = setUp();
  const received = new Map<string, number>();
  for (let i = 0; i < 10_000; i++) registry.counter(`counter.number.${i}`).add(1);
  let sends = 0;
  transport.send = (lines) => {
    for (const line of lines.trim().split('\n')) {
      const [name = '', value = ''] = line.split(/[:|]/);
      received.set(name, (received.get(name) ?? 0) + Number(value));
    }
    sends++;
    transport.ready = false;
  };
  for (let flushes = 0; received.size < 10_000 && flushes < 100; flushes++) {
    transport.ready = true;
    sink.flush();
  }
  t.true(sends > 1);
  t.is(received.size, 10_000);
  t.true([...received.values()].every((value) => value === 1));
});

test('a flush of very many counters is sent in pieces, and its rest before the end', async (t) => {
  const { registry, sink, drain } = setUp();
  for (let i = 0; i < 30_000; i++) registry.counter(`counter.number.${i}`).add(1);
  sink.flush();
  const first = drain().length;
  t.true(first > 100 && first < 5000, `${first} lines at once`);
  let received = first;
  await eventually('some more', () => {
    received += drain().length;
    return received > first;
  });
  // This counter was already passed: it is sent in the next flush.
  registry.counter('counter.number.0').add(1);
  sink.flush();
  await sink.close(0);
  t.is(received + drain().length, 30_001);
});

test('tags follow every name except that of the counter of reserved tags', (t) => {
  const { registry, sink, drain } = setUp(createStatsdFormat({ env: 'prod' }));
  registry.counter('c').add(1);
  registry.counter('reserved_tag').add(1);
  registry.gauge('g').set(1);
  registry.timer('t').observe(1);
  sink.flush();
  sink.flushTimers();
  t.deepEqual(drain(), [
    'c.__env=prod:1|c',
    'reserved_tag:1|c',
    'g.__env=prod:1|g',
    't.__env=prod:1|ms',
  ]);
});

test("a counter's own tags are among those of every metric, in the order of the keys", (t) => {
  const common = { env: 'prod', a: 'x' };
  const formats = [createStatsdFormat(common), createJsonFormat(common, () => 0)];
  for (const format of formats) {
    const { registry, sink, drain } = setUp(format);
    registry.counter('calls', { code: 'success' }).add(2);
    sink.flush();
    const [line = ''] = drain();
    t.true(line.includes('calls.__a=x.__code=success.__env=prod'), line);
  }
});

test('observations that cannot be sent at once are dropped and counted', (t) => {
  const { registry, sink, drain } = setUp();
  const timer = registry.timer('some.timer.with.a.name');
  for (let i = 0; i < 300_000; i++) timer.observe(1);
  sink.flushTimers();
  const sent = drain().length;
  const dropped = registry.counter('ratelimit.node.dropped_metric_lines').value;
  t.true(dropped > 0);
  t.is(sent + dropped, 300_000);
});

test('distinct observations are bounded while no receiver accepts them', (t) => {
  const { registry, transport, sink, drain } = setUp();
  transport.ready = false;
  const timer = registry.timer('t');
  for (let i = 0; i < 10_000; i++) timer.observe(i + 0.5);
  transport.ready = true;
  sink.flushTimers();
  const sent = drain().length;
  t.is(sent, 4096);
  t.is(registry.counter('ratelimit.node.dropped_metric_lines').value, 10_000 - sent);
});

test('JSON lines name the metric, its type and its value', (t) => {
  const { registry, sink, drain } = setUp(createJsonFormat({}, () => 1_795_221_309_955.253));
  registry.counter('c').add(2);
  registry.gauge('g').set(3);
  registry.timer('t"').observe(0);
  sink.flush();
  sink.flushTimers();
  const start = '{"level":"debug","ts":1795221309.955253,"logger":"gostats.loggingsink"';
  t.deepEqual(drain(), [
    `${start},"msg":"flushing counter","json":{"name":"c","type":"counter","value":"2.000000"}}`,
    `${start},"msg":"flushing gauge","json":{"name":"g","type":"gauge","value":"3.000000"}}`,
    `${start},"msg":"flushing all stats","json":{"name":"","type":"all stats","value":"0.000000"}}`,
    `${start},"msg":"flushing timer","json":{"name":"t\\"","type":"timer","value":"0.000000"}}`,
  ]);
});
