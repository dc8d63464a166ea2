import { createServer } from 'node:net';
import { Writable } from 'node:stream';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { createLineOutput } from '../../shared/line-output.ts';
import { eventually } from '../../test/support/eventually.ts';
import { freePort } from '../../test/support/free-port.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import type { StatsdReceiver } from '../../test/support/statsd-receiver.ts';
import { startStatsdReceiver } from '../../test/support/statsd-receiver.ts';
import type { StatisticsOptions } from './statistics.ts';
import { Statistics } from './statistics.ts';

function setUp(t: ExecutionContext, options: Partial<StatisticsOptions>) {
  const clock = createManualClock();
  const log = createRecordedLog();
  const statistics = new Statistics({
    options: {
      push: undefined,
      tagged: undefined,
      pull: undefined,
      lines: undefined,
      flushIntervalMs: 10_000,
      extraTags: {},
      runtimeNamesMax: 10,
      ...options,
    },
    log,
    clock,
  });
  t.teardown(async () => {
    const stopping = statistics.stop(1);
    clock.advance(1);
    await stopping;
  });
  return { clock, log, statistics, metrics: statistics.metrics };
}

async function startReceiver(t: ExecutionContext): Promise<StatsdReceiver> {
  const receiver = await startStatsdReceiver(t);
  return receiver;
}

for (const protocol of ['tcp', 'tcp4', 'udp', 'udp4'] as const) {
  test(`counters, gauges and timers are pushed over ${protocol} with their tags`, async (t) => {
    const receiver = await startReceiver(t);
    const { statistics, metrics, clock } = setUp(t, {
      push: { protocol, host: '127.0.0.1', port: receiver.port },
      extraTags: { zone: 'b', env: 'test', host: 'x' },
      flushIntervalMs: 10,
    });
    await statistics.start();
    metrics.ruleStats('d.k', true).totalHits.add(4);
    metrics.gauge('g').set(1);
    metrics.timer('t').observe(3);
    const suffix = '.__env=test.__host=x.__zone=b';
    await eventually('the counter', () => {
      clock.advance(10);
      return receiver.totals.get(`ratelimit.service.rate_limit.d.k.total_hits${suffix}|c`) === 4;
    });
    t.true((receiver.totals.get(`g${suffix}|g`) ?? 0) > 0);
    t.is(receiver.totals.get(`t${suffix}|ms`), 1);
    t.is(receiver.totals.get('reserved_tag|c'), 1);
    t.true(receiver.totals.has(`ratelimit.node.uptime_seconds${suffix}|g`));
  });
}

test('all outputs can be on at the same time, and each reports everything', async (t) => {
  const pushed = await startReceiver(t);
  const tagged = await startReceiver(t);
  const pullPort = await freePort();
  const { statistics, metrics, clock } = setUp(t, {
    push: { protocol: 'tcp', host: '127.0.0.1', port: pushed.port },
    tagged: { host: '127.0.0.1', port: tagged.port, rewrites: [] },
    pull: {
      host: '127.0.0.1',
      port: pullPort,
      path: '/metrics',
      mapperFile: '',
      addressSetting: 'PULLMETRICS_ADDR',
      mapperSetting: 'PULLMETRICS_MAPPER_YAML',
      responseTimeInMs: false,
    },
    flushIntervalMs: 10,
  });
  await statistics.start();
  const name = 'ratelimit.service.rate_limit.d.k.total_hits|c';
  const { totalHits } = metrics.ruleStats('d.k', true);
  for (let i = 0; i < 5; i++) {
    totalHits.add(1);
    metrics.timer('ratelimit_server.Check.response_time').observe(1);
    clock.advance(10);
  }
  await eventually('all counts', () => {
    clock.advance(10);
    return pushed.totals.get(name) === 5 && tagged.totals.get(name) === 5;
  });
  const answer = await fetch(`http://127.0.0.1:${pullPort}/metrics`);
  const text = await answer.text();
  t.true(text.includes('ratelimit_service_rate_limit_total_hits{domain="d",key1="k"} 5\n'));
  t.true(text.includes('response_time_seconds_count{grpc_method="Check"} 5\n'));
  t.regex(text, /^ratelimit_node_uptime_seconds \d+$/m);
  t.is(pushed.totals.get('ratelimit_server.Check.response_time|ms'), 5);
  t.is(tagged.totals.get('ratelimit_server.Check.response_time|ms'), 5);
});

test('timers are sent each second, counters only at the flush', async (t) => {
  const receiver = await startReceiver(t);
  const { statistics, metrics, clock } = setUp(t, {
    push: { protocol: 'udp', host: '127.0.0.1', port: receiver.port },
  });
  await statistics.start();
  metrics.counter('c').add(1);
  // Nine seconds of tries before the first flush: the socket opens during one of them.
  for (let second = 1; second < 10 && !receiver.totals.has('t|ms'); second++) {
    metrics.timer('t').observe(1);
    const tries = eventually('a timer', () => receiver.totals.has('t|ms'), 500);
    clock.advance(1000);
    await tries.catch(() => {});
  }
  t.true(receiver.totals.has('t|ms'));
  t.false(receiver.totals.has('c|c'));
  await eventually('the counter', () => {
    clock.advance(1000);
    return receiver.totals.get('c|c') === 1;
  });
});

// Proof of migrating.md: Counts survive an outage of the metrics receiver
test('an outage of the receiver loses no counts', async (t) => {
  const receiver = await startReceiver(t);
  const { port } = receiver;
  await receiver.close();
  const { statistics, metrics, clock, log } = setUp(t, {
    push: { protocol: 'tcp', host: '127.0.0.1', port },
    flushIntervalMs: 100,
  });
  await statistics.start();
  await eventually('a warning', () => log.lines.some((line) => line.includes('do not reach')));
  for (let i = 0; i < 20; i++) {
    metrics.counter('c').add(1);
    clock.advance(100);
  }
  const totals = new Map<string, number>();
  const server = createServer((socket) => {
    socket.setEncoding('utf8').on('data', (text: string) => {
      for (const [, value] of text.matchAll(/^c:(\d+)\|c$/gm))
        totals.set('c', (totals.get('c') ?? 0) + Number(value));
    });
    t.teardown(() => socket.destroy());
  }).listen(port, '127.0.0.1');
  t.teardown(() => server.close());
  await eventually('all counts', () => {
    clock.advance(100);
    return totals.get('c') === 20;
  });
  await eventually('the end of the outage is logged', () => {
    clock.advance(100);
    return log.lines.some((line) =>
      /^notice Statistics reach 127.0.0.1:\d+ \(tcp\) again$/.test(line),
    );
  });
  t.is(totals.get('c'), 20);
});

test('the last counts are sent at the stop', async (t) => {
  const receiver = await startReceiver(t);
  const { statistics, metrics, clock } = setUp(t, {
    push: { protocol: 'tcp', host: '127.0.0.1', port: receiver.port },
    flushIntervalMs: 10,
  });
  await statistics.start();
  metrics.counter('first').add(1);
  await eventually('a connection', () => {
    clock.advance(10);
    return receiver.totals.has('first|c');
  });
  metrics.counter('last').add(5);
  metrics.timer('t').observe(1);
  await statistics.stop(5000);
  await statistics.stop(5000);
  await eventually('the last counts', () => receiver.totals.get('last|c') === 5);
  t.is(receiver.totals.get('t|ms'), 1);
  t.is(clock.pending, 0);
});

// Proof of migrating.md: Metric outputs are independent; the last resort is standard output
test('without another output, JSON lines go to the given output', async (t) => {
  const written: string[] = [];
  const lines = createLineOutput(
    new Writable({
      write(chunk, _encoding, done) {
        written.push(...String(chunk).trim().split('\n'));
        done();
      },
    }),
  );
  const { statistics, metrics, clock } = setUp(t, { lines, flushIntervalMs: 100 });
  await statistics.start();
  metrics.ruleStats('d.k', true).totalHits.add(1);
  clock.advance(100);
  const parsed = written.map((line) => JSON.parse(line));
  t.true(
    parsed.some(
      ({ msg, json }) =>
        msg === 'flushing counter' &&
        json.name === 'ratelimit.service.rate_limit.d.k.total_hits' &&
        json.value === '1.000000',
    ),
  );
  t.is(parsed.at(-1)?.msg, 'flushing all stats');
});

test('with every output off, values can still be read', async (t) => {
  const { statistics, metrics, clock } = setUp(t, {});
  await statistics.start();
  metrics.counter('c').add(1);
  t.is(clock.pending, 0);
  const snapshot = metrics.snapshot();
  t.is(snapshot.get('c'), 1);
  t.true((snapshot.get('ratelimit.node.rss_bytes') ?? 0) > 1_000_000);
  t.true(snapshot.has('ratelimit.node.event_loop_delay_p99_us'));
});
