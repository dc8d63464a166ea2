// Tests the alerts and the dashboard of compose/observability: checked by Prometheus' own tool, fed with the conditions
// of each alert, and compared with the metrics of real programs.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import test, { type ExecutionContext } from 'ava';
import { parse } from 'yaml';
import { caCertificate, serverCertificate } from '../../contract/grpc-transport-certificates.ts';
import { alertCauses, calmSeries, type PromtoolSeries } from '../../support/alert-causes.ts';
import { createControlPlaneInProcess } from '../../support/control-plane-in-process.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { runTool, testWith } from '../../support/installed-tool.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { createRulesFolder, ruleText } from '../../support/rules-folder.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';
import { createCaller } from '../../support/worker-caller.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

const project = join(import.meta.dirname, '..', '..', '..');
const folder = join(project, 'compose', 'observability');
const read = (path: string) => readFileSync(join(folder, path), 'utf8');
const startMs = 60_000;

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<'summary' | 'description' | 'runbook', string>>;
}

const groups: readonly { readonly rules: readonly Alert[] }[] = parse(read('alerts.yaml')).groups;
const alerts = groups.flatMap(({ rules }) => rules);
const dashboard = JSON.parse(read('grafana/dashboards/ratelane.json'));
/** With every job, as Grafana sends them. */
const expressions: string[] = dashboard.panels.flatMap((panel: { targets: { expr: string }[] }) =>
  panel.targets.map(({ expr }) => expr.replaceAll('$job', '.*')),
);

const uptime = 'ratelimit_node_uptime_seconds';
/** Alerts for a single event: the counter, which appears once it has counted, and the minutes for which they fire. */
const singleEvents: readonly (readonly [alert: string, counter: string, minutes: number])[] = [
  ['RatelaneAnsweredWithoutStore', 'ratelimit_failure_mode_deny', 5],
  ['RatelaneRulesRefused', 'ratelimit_service_config_load_error', 10],
  ['RatelaneProcessReplaced', 'ratelimit_processes_replaced', 15],
  ['RatelaneMetricNamesFolded', 'ratelimit_service_folded_metric_names', 60],
];

testWith(test, 'promtool')('Prometheus takes its configuration and the alerts', async (t) => {
  const { code, output } = await runTool('promtool', [
    'check',
    'config',
    join(folder, 'prometheus.yaml'),
  ]);
  t.is(code, 0, output);
  t.true(output.includes(`SUCCESS: ${alerts.length} rules found`), output);
});

/** A time in minutes, and the alerts that fire then. */
type Firing = readonly [minute: number, alerts: readonly string[]];

function unit(series: PromtoolSeries, ...times: readonly Firing[]) {
  return {
    interval: '1m',
    input_series: toInput(series),
    promql_expr_test: times.map(([minute, fires]) => ({
      expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
      eval_time: `${minute}m`,
      exp_samples: fires.map((alertname) => ({ labels: `{alertname="${alertname}"}`, value: 1 })),
    })),
  };
}

function toInput(series: PromtoolSeries) {
  return Object.entries(series).map(([name, values]) => ({ series: name, values }));
}

async function testRules(t: ExecutionContext, tests: readonly object[]): Promise<void> {
  const directory = createTemporaryFolder(t);
  const file = join(directory, 'alerts.test.json');
  const alertsFile = join(folder, 'alerts.yaml');
  writeFileSync(
    file,
    JSON.stringify({ rule_files: [alertsFile], evaluation_interval: '1m', tests }),
  );
  const { code, output } = await runTool('promtool', ['test', 'rules', file]);
  t.is(code, 0, output);
}

testWith(test, 'promtool')('each alert fires for what it is for, and none without', async (t) => {
  t.deepEqual(Object.keys(alertCauses).sort(), alerts.map(({ alert }) => alert).sort());
  await testRules(t, [
    ...Object.entries(alertCauses).map(([alert, series]) => unit(series, [50, [alert]])),
    unit(calmSeries, [50, []]),
    unit({ ...calmSeries, [uptime]: '7200+60x60' }, [50, []]),
  ]);
});

testWith(test, 'promtool')("the first event of a worker's life alerts, for a while", async (t) => {
  t.deepEqual(
    singleEvents.map(([alert]) => alert).sort(),
    alerts
      .filter(({ expr }) => /(increase|rate)\([^)]*\)+ > 0(?!\.)/.test(expr))
      .map(({ alert }) => alert)
      .sort(),
  );
  await testRules(
    t,
    singleEvents.flatMap(([alert, counter, minutes]) => [
      // Two hours after the start of the worker, at minute 70.
      unit(
        { [uptime]: '7200+60x160', [counter]: '_x70 1x90' },
        [69, []],
        [73, [alert]],
        [69 + minutes, [alert]],
        [71 + minutes, []],
      ),
      // At its start.
      unit({ [uptime]: '_x70 0+60x90', [counter]: '_x70 1x90' }, [73, [alert]], [72 + minutes, []]),
      // Four minutes later, without an end in between.
      unit(
        { [uptime]: '_x70 30+60x90', [counter]: '_x74 1x90' },
        [71 + minutes, [alert]],
        [73 + minutes, [alert]],
        [75 + minutes, []],
      ),
      // After a restart, at the address where the previous process had also counted one.
      unit(
        { [uptime]: '7200+60x65 stale 0+60x90', [counter]: '1x65 stale _x4 1x90' },
        [65, []],
        [74, [alert]],
      ),
    ]),
  );
});

testWith(test, 'promtool')('no event: a failed scrape, or a Prometheus that is new', async (t) => {
  await testRules(
    t,
    singleEvents.flatMap(([, counter, minutes]) => {
      const after = [70, 71, 73, 69 + minutes, 71 + minutes].map((at): Firing => [at, []]);
      return [
        unit({ [uptime]: '7200+60x68 stale 11400+60x90', [counter]: '1x68 stale 1x90' }, ...after),
        unit({ [uptime]: '_x70 7200+60x90', [counter]: '_x70 1x90' }, ...after),
        unit(
          { [uptime]: '7200+60x30 stale _x38 11400+60x90', [counter]: '1x30 stale _x38 1x90' },
          ...after,
        ),
      ];
    }),
  );
});

testWith(test, 'promtool')(
  'the dashboard shows the first load and the first refusal',
  async (t) => {
    const loads = expressions.filter((expr) => expr.includes('config_load'));
    t.is(loads.length, 2);
    const at = (expr: string, minute: number, value: number) => ({
      expr: expr.replaceAll('$__rate_interval', '4m'),
      eval_time: `${minute}m`,
      exp_samples: [{ labels: '{}', value }],
    });
    const input_series = toInput({
      ratelimit_service_config_load_success: '_x30 2x30',
      ratelimit_service_config_load_error: '_x30 2x30',
      // Both for a worker whose scrape failed.
      'ratelimit_service_config_load_success{instance="b"}': '7x29 stale 7x30',
      'ratelimit_service_config_load_error{instance="b"}': '7x29 stale 7x30',
    });
    const promql_expr_test = loads.flatMap((expr) => [
      at(expr, 28, 0),
      at(expr, 31, 2),
      at(expr, 33, 2),
      at(expr, 34, 0),
      at(expr, 50, 0),
    ]);
    await testRules(t, [{ interval: '1m', input_series, promql_expr_test }]);
  },
);

testWith(test, 'promtool')("the dashboard's expressions can be read", async (t) => {
  const directory = createTemporaryFolder(t);
  const rules = expressions.map((expr, index) => ({
    record: `panel:expression_${index}`,
    expr: expr.replaceAll('$__rate_interval', '5m'),
  }));
  const file = join(directory, 'rules.json');
  writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
  const { code, output } = await runTool('promtool', ['check', 'rules', file]);
  t.is(code, 0, output);
});

test('each alert describes the problem and links to its section', (t) => {
  for (const { alert, labels, annotations } of alerts) {
    t.true(['critical', 'warning', 'info'].includes(labels.severity), alert);
    t.truthy(annotations.summary, alert);
    t.truthy(annotations.description, alert);
    t.is(annotations.runbook, `worker/docs/alerts.md#${alert.toLowerCase()}`);
  }
});

test('Grafana finds its dashboard and its data source at their paths', (t) => {
  const [source] = parse(read('grafana/datasources/prometheus.yaml')).datasources;
  const [provider] = parse(read('grafana/dashboards/dashboards.yaml')).providers;
  const compose = parse(readFileSync(join(project, 'compose', 'observability.yaml'), 'utf8'));
  const mounts: string[] = compose.services.grafana.volumes;
  t.true(mounts.some((mount) => provider.options.path.startsWith(mount.split(':')[1])));
  const ids = dashboard.panels.map((panel: { id: number }) => panel.id);
  t.is(new Set(ids).size, ids.length);
  t.is(source.type, 'prometheus');
  t.true(source.isDefault, 'it is what the variable is at first');
});

test("the dashboard's data source and its job are variables", (t) => {
  const names = dashboard.templating.list.map(({ name }: { name: string }) => name);
  t.deepEqual(names, ['datasource', 'job']);
  for (const { title, datasource, targets } of dashboard.panels) {
    t.regex(datasource.uid, /^\$\{datasource\}$/, title);
    for (const { expr } of targets) {
      for (const [, labels = ''] of expr.matchAll(/\b(?:ratelimit|ratelane)_\w+(\{[^}]*\})?/g))
        t.true(labels.includes('job=~"$job"'), expr);
    }
  }
});

test('the collector has everything that its pipelines name, and the port that workers send to', (t) => {
  const config = parse(read('otel-collector.yaml'));
  for (const [name, pipeline] of Object.entries(config.service.pipelines)) {
    for (const [kind, used] of Object.entries(pipeline as Record<string, string[]>)) {
      for (const component of used) t.true(component in config[kind], `${name}: ${component}`);
    }
  }
  const compose = parse(readFileSync(join(project, 'compose', 'observability.yaml'), 'utf8'));
  const worker = compose.services['worker-1'].environment;
  const { port } = new URL(worker.OTEL_EXPORTER_OTLP_ENDPOINT);
  const { endpoint } = config.receivers.otlp.protocols[worker.TRACING_EXPORTER_PROTOCOL];
  t.is(endpoint.split(':')[1], port);
});

test('alerts and dashboard name existing metrics of workers and control plane', async (t) => {
  const redis = await startRedisServer(t);
  const rules = createRulesFolder(t, { 'shop.yaml': ruleText('shop', 1) });
  const tls = createTemporaryFolder(t);
  const [cert, key, ca] = ['tls.crt', 'tls.key', 'ca.crt'].map((file) => join(tls, file)) as [
    string,
    string,
    string,
  ];
  writeFileSync(cert, serverCertificate.cert);
  writeFileSync(key, serverCertificate.key);
  writeFileSync(ca, caCertificate);
  const plane = await createControlPlaneInProcess(t, {
    flags: ['--config-dir', rules.path, '--xds-tls-cert', cert, '--xds-tls-key', key],
  });
  await plane.start();
  const metricsPort = await freePort();
  const worker = await startWorkerProcess(t, {
    env: {
      KVSTORE_URL: redis.url,
      KVSTORE_PERSECOND: 'true',
      KVSTORE_PERSECOND_URL: redis.url,
      KVSTORE_FAILURE_MODE: 'allow',
      WORKER_PROCESSES: '2',
      CONFIG_TYPE: 'GRPC_XDS_SOTW',
      CONFIG_GRPC_XDS_SERVER_URL: plane.xdsAddress.replace('127.0.0.1', 'localhost'),
      CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true',
      CONFIG_GRPC_XDS_SERVER_TLS_CACERT: ca,
      GRPC_SERVER_USE_TLS: 'true',
      GRPC_SERVER_TLS_CERT: cert,
      GRPC_SERVER_TLS_KEY: key,
      DISABLE_STATS: 'false',
      USE_PULLMETRICS: 'true',
      PULLMETRICS_ADDR: `127.0.0.1:${metricsPort}`,
    },
  });
  const caller = createCaller(
    t,
    `localhost:${worker.ports.grpc}`,
    credentials.createSsl(Buffer.from(caCertificate)),
  );
  t.is(await caller.decide('shop', 'k', 'v'), 'OK');
  t.is(await caller.decide('shop', 'k', 'v'), 'OVER_LIMIT');
  t.is(await caller.decide('shop', 'none', 'v'), 'OK');
  t.regex(await caller.decide('', 'k', 'v'), /^failed/);

  const text = async (url: string) =>
    (await fetch(url, { signal: AbortSignal.timeout(startMs) })).text();
  const namesNow = async () => {
    // A counter is pulled once it has counted; the debug port has all of them, by their pushed names.
    const pulled = await text(`http://127.0.0.1:${metricsPort}/metrics`);
    const all = await text(`http://127.0.0.1:${worker.ports.debug}/stats`);
    const served = await text(`${plane.adminUrl}/metrics`);
    return new Set([
      'up',
      ...[...`${pulled}\n${served}`.matchAll(/^([a-z]\w*)(?=[{ ])/gm)].map(([name]) => name),
      ...[...all.matchAll(/^([^:\s]+): /gm)].map(([, name = '']) => name.replaceAll('.', '_')),
    ]);
  };
  const used = [...alerts.map(({ expr }) => expr), ...expressions].flatMap((expr) =>
    [...expr.matchAll(/\b(?:up|(?:ratelimit|ratelane)_\w+)\b/g)].map(([name]) => name),
  );
  t.true(used.length > alerts.length);
  let missing: string[] = [];
  await eventually(
    'every metric is there',
    async () => {
      const names = await namesNow();
      missing = used.filter((name) =>
        // The name is followed by a regular expression.
        name.endsWith('_') ? ![...names].some((other) => other.startsWith(name)) : !names.has(name),
      );
      return missing.length === 0;
    },
    startMs,
  ).catch(() => t.deepEqual(missing, []));
  t.pass();
});
