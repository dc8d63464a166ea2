// Tests statistics under hostile requests: a huge number of names, with every output enabled.
import { createServer } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import { Statistics } from '../../../worker/metrics/statistics.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { listenFor } from '../../support/listen.ts';
import { createRecordedLog } from '../../support/recorded-log.ts';
import { startStatsdReceiver } from '../../support/statsd-receiver.ts';

const defaultNamesMax = 25_000;
const names = 1_000_000;
const mostBytes = 64 * 1024 * 1024;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function usedBytes(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

test('a million names from requests take bounded memory, and the fold counter reports it', async (t) => {
  const silentPort = await listenFor(t, createServer());
  const tagged = await startStatsdReceiver(t);
  const pullPort = await freePort();
  const log = createRecordedLog();
  const statistics = new Statistics({
    options: {
      push: { protocol: 'tcp', host: '127.0.0.1', port: silentPort },
      tagged: {
        host: '127.0.0.1',
        port: tagged.port,
        rewrites: [{ pattern: /^(.*)\.([^.]+)$/, metricName: '$2', tags: { of: '$1' } }],
      },
      pull: {
        host: '127.0.0.1',
        port: pullPort,
        path: '/metrics',
        mapperFile: '',
        addressSetting: 'PULLMETRICS_ADDR',
        mapperSetting: 'PULLMETRICS_MAPPER_YAML',
        responseTimeInMs: false,
      },
      lines: undefined,
      flushIntervalMs: 200,
      extraTags: {},
      runtimeNamesMax: defaultNamesMax,
    },
    log,
    clock: systemClock,
  });
  t.teardown(() => statistics.stop(100));
  await statistics.start();
  const { metrics } = statistics;

  /** The number of pulled series of total hits, and their sum. */
  const pullTotal = async () => {
    const answer = await fetch(`http://127.0.0.1:${pullPort}/metrics`);
    const pattern = /^ratelimit_service_rate_limit_total_hits\{.*\} (\d+)$/gm;
    const values = [...(await answer.text()).matchAll(pattern)].map(([, value]) => Number(value));
    return { count: values.length, sum: values.reduce((sum, value) => sum + value, 0) };
  };

  await pullTotal();
  const before = usedBytes();
  for (let i = 0; i < names; i++) {
    const stats = metrics.ruleStats(`shop.user_${i}`, false);
    stats.totalHits.add(1);
    stats.withinLimit.add(1);
    if (i % 1000 === 0) await nextTurn();
  }
  t.deepEqual(await pullTotal(), { count: defaultNamesMax + 1, sum: names });
  // The queue to the outputs has its own bound, and is emptied by the next flushes.
  await eventually(`less than ${mostBytes} bytes more`, () => usedBytes() - before < mostBytes);
  const folded = metrics.snapshot().get('ratelimit.service.folded_metric_names');
  t.is(folded, names - defaultNamesMax);
  t.is(log.lines.filter((line) => line.includes('RUNTIME_METRIC_NAMES_MAX')).length, 1);

  metrics.ruleStats('shop.of_a_rule', true).totalHits.add(1);
  t.is(metrics.snapshot().get('ratelimit.service.rate_limit.shop.of_a_rule.total_hits'), 1);
  t.is(metrics.snapshot().get('ratelimit.service.folded_metric_names'), folded);
});
