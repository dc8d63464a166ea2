// Tests settings of the worker's outputs, from the environment to the receivers.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { startOtlpReceiver } from '../../support/otlp-receiver.ts';
import { unowned } from '../../support/owner.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';
import { createWorkerCaller } from '../../support/worker-caller.ts';
import { startWorker } from '../../support/worker-in-process.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

/** Shorter than five flushes would take by default. */
const flushesTimeoutMs = 60_000;

const metricsPort = await freePort();
const traces = await startOtlpReceiver(unowned, 'http');
/** Only UDP: the default would have no receiver here. */
const pushed: string[] = [];
const receiver = createSocket('udp4', (message) => pushed.push(message.toString()));
receiver.bind(0, '127.0.0.1');
await once(receiver, 'listening');
const worker = await startWorkerProcess(unowned, {
  rules: {
    'd.yaml': [
      'domain: d',
      'descriptors:',
      '  - key: k',
      '    rate_limit: {unit: year, requests_per_unit: 1000}',
      '    detailed_metric: true',
    ].join('\n'),
  },
  env: {
    BACKEND_TYPE: 'memory',
    LOG_LEVEL: 'DEBUG',
    DISABLE_STATS: 'false',
    STATS_FLUSH_INTERVAL: '20ms',
    USE_PUSHMETRICS: 'true',
    PUSHMETRICS_HOST: '127.0.0.1',
    PUSHMETRICS_PORT: String(receiver.address().port),
    PUSHMETRICS_PROTOCOL: 'udp',
    RUNTIME_METRIC_NAMES_MAX: '3',
    USE_PULLMETRICS: 'true',
    PULLMETRICS_ADDR: `127.0.0.1:${metricsPort}`,
    PULLMETRICS_RESPONSE_TIME_AS_MILLISECONDS: 'true',
    TRACING_ENABLED: 'true',
    OTEL_EXPORTER_OTLP_ENDPOINT: traces.url,
    OTEL_BSP_SCHEDULE_DELAY: '20',
    TRACING_SERVICE_INSTANCE_ID: 'worker-7',
  },
});
const caller = createWorkerCaller(unowned, worker);
test.after.always(async () => {
  caller.close();
  await worker.stop();
  receiver.close();
  await traces.close();
});

test.serial(
  'PUSHMETRICS_PORT, PUSHMETRICS_PROTOCOL, STATS_FLUSH_INTERVAL: statistics are pushed to that port, at this interval',
  async (t) => {
    t.is(await caller.decide('d', 'k', 'pushed'), 'OK');
    await eventually('the hit', () =>
      pushed.join('\n').includes('ratelimit.service.rate_limit.d.k_pushed.total_hits:1|c'),
    );
    // By default they would be seconds apart.
    const before = pushed.length;
    await eventually('five more flushes', () => pushed.length >= before + 5, flushesTimeoutMs);
    t.pass();
  },
);

test.serial('PUSHMETRICS_HOST: that host is tried', async (t) => {
  // The broadcast address, to which no connection is possible.
  const broadcast = '255.255.255.255';
  const { log } = await startWorker(t, {
    env: { BACKEND_TYPE: 'memory', DISABLE_STATS: 'false', PUSHMETRICS_HOST: broadcast },
  });
  await eventually('the failure is logged', () =>
    log.lines.some((line) => /^warning Statistics do not reach .*255\.255/.test(line)),
  );
  t.pass();
});

test.serial('PULLMETRICS_RESPONSE_TIME_AS_MILLISECONDS: times are in milliseconds', async (t) => {
  const sum = async () => {
    const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    const line = /^ratelimit_service_response_time_seconds_sum\{.*\} (\S+)$/m;
    return Number(line.exec(text)?.[1]);
  };
  const before = await sum();
  let grown = 0;
  // Most decisions take less than a millisecond.
  await eventually('one that takes a millisecond', async () => {
    await caller.decide('d', 'k', 'timed');
    grown = (await sum()) - before;
    return grown > 0;
  });
  t.true(Number.isInteger(grown), `${grown}`);
});

test.serial('RUNTIME_METRIC_NAMES_MAX: further names share one', async (t) => {
  for (const value of ['a', 'b', 'c', 'e', 'f']) await caller.decide('d', 'k', value);
  const stats = await worker.page('/stats');
  t.regex(stats, /ratelimit\.service\.folded_metric_names: [1-9]/);
});

test.serial('TRACING_SERVICE_INSTANCE_ID: spans name the instance', async (t) => {
  await caller.decide('d', 'k', 'traced');
  await eventually('a span', () => traces.spans.length > 0);
  t.is(traces.spans[0]?.resource['service.instance.id'], 'worker-7');
});

test.serial('LOG_LEVEL: messages of that level are written', async (t) => {
  await caller.decide('d', 'k', 'logged');
  await eventually('a line', () => /level=debug msg=.*k=logged/.test(worker.output()));
  t.pass();
});

test.serial('PULLMETRICS_MAPPER_YAML: a mapping file replaces the default mapping', async (t) => {
  const mapping = String.raw`mappings:
  - match: ratelimit\.service\.rate_limit\.(?P<domain>[^.]+)\..*\.total_hits
    match_type: regex
    name: hits_total
    labels: {domain: $domain}
`;
  const file = join(createTemporaryFolder(t), 'mapping.yaml');
  writeFileSync(file, mapping);
  const port = await freePort();
  const mapped = await startWorker(t, {
    env: {
      BACKEND_TYPE: 'memory',
      DISABLE_STATS: 'false',
      USE_PULLMETRICS: 'true',
      PULLMETRICS_ADDR: `127.0.0.1:${port}`,
      PULLMETRICS_MAPPER_YAML: file,
      EXTRA_TAGS: 'zone:b',
    },
    rules:
      'domain: d\ndescriptors:\n  - {key: user, rate_limit: {unit: year, requests_per_unit: 5}}\n',
  });
  await mapped.decide('user=ada');
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  t.true(text.includes('\nhits_total{zone="b",domain="d"} 1\n'), text);
  t.true(text.includes('\nratelimit_service_rate_limit_d_user_within_limit{zone="b"} 1\n'), text);
});
