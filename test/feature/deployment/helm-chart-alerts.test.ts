// Tests the alerts of the Helm chart: each concerns only the programs of its own release, whatever its name.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { alertCauses, calmSeries, type PromtoolSeries } from '../../support/alert-causes.ts';
import { runTool, testWith } from '../../support/installed-tool.ts';
import {
  chartFolder,
  type Manifest,
  readManifests,
  renderChart,
} from '../../support/rendered-chart.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';

const testAlerts = testWith(test.serial, 'chart-check', 'promtool');
const observability = join(import.meta.dirname, '..', '..', '..', 'compose', 'observability');
const monitored = { serviceMonitor: { enabled: true }, prometheusRule: { enabled: true } };

/** The location of a release, as its ServiceMonitors report it to Prometheus. */
interface Folder {
  readonly release: string;
  readonly namespace: string;
}

test('the alerts and the dashboard of the chart are those of the composition', (t) => {
  for (const [copy, original] of [
    ['alerts.yaml', 'alerts.yaml'],
    ['dashboard.json', 'grafana/dashboards/ratelane.json'],
  ] as const) {
    const text = readFileSync(join(chartFolder, 'files', copy), 'utf8');
    t.is(text, readFileSync(join(observability, original), 'utf8'), `${copy}: npm run docs`);
  }
});

/** As few units as suffice to fire each alert: a held-back revision is not also reported as invalid, and a missing
 * program is not down. */
const apart = ['RatelaneRevisionInvalid', 'RatelaneWorkersGone', 'RatelaneControlPlanesGone'];
const rest = Object.entries(alertCauses).filter(([alert]) => !apart.includes(alert));
const together: [alerts: string[], series: PromtoolSeries][] = [
  ...apart.map((alert): [string[], PromtoolSeries] => [[alert], alertCauses[alert] ?? {}]),
  [rest.map(([alert]) => alert).sort(), Object.assign({}, ...rest.map(([, series]) => series))],
];

for (const [title, values, release] of [
  ['its own name', {}, 'sample-ratelane'],
  ['a nameOverride', { nameOverride: 'limits' }, 'sample-limits'],
  ['a fullnameOverride', { fullnameOverride: 'edge' }, 'edge'],
] as const) {
  testAlerts(`each alert of a release with ${title} fires only for its own programs`, async (t) => {
    const groups = await renderAlerts(t, { ...monitored, ...values });
    const here = { release, namespace: 'limits' };
    const alerts = groups.flatMap(({ rules }: Manifest) =>
      rules.map((rule: Manifest) => rule.alert),
    );
    t.deepEqual(alerts.sort(), Object.keys(alertCauses).sort());
    const everyCause: PromtoolSeries = Object.assign({}, ...Object.values(alertCauses));
    const others = [
      { ...here, namespace: 'others' },
      { ...here, release: `${release}-too` },
      { ...here, release: `not-${release}` },
    ];
    // Whether each has its own cause does not depend on a name.
    const causes: [alerts: string | string[], series: PromtoolSeries][] =
      title === 'its own name' ? Object.entries(alertCauses) : together;
    await runRules(t, groups, [
      ...causes.map(([alert, series]) => unit(at(here, series), [alert].flat())),
      // Programs of another release, beside ours without problems.
      ...others.map((there) => unit({ ...at(there, everyCause), ...at(here, calmSeries) }, [])),
    ]);
  });
}

testAlerts('without a control plane there is no alert about one', async (t) => {
  const groups = await renderAlerts(t, { ...monitored, controlPlane: { enabled: false } });
  t.deepEqual(
    groups.map(({ name }: Manifest) => name),
    ['ratelane-worker'],
  );
});

async function renderAlerts(t: ExecutionContext, values: object): Promise<Manifest[]> {
  const { code, output } = await renderChart(t, values);
  t.is(code, 0, output);
  const manifests = readManifests(output);
  return manifests.find(({ kind }) => kind === 'PrometheusRule').spec.groups;
}

/** The series with the jobs that the ServiceMonitors of a release set. */
function at({ release, namespace }: Folder, series: PromtoolSeries): PromtoolSeries {
  const named = Object.entries(series).map(([name, values]) => {
    const [, metric = '', given = ''] = /^(\w+)(?:\{(.*)\})?$/.exec(name) ?? [];
    const program = /control[-_]plane/.test(name) ? 'control-plane' : 'worker';
    const labels = [
      ...given.split(',').filter((label) => label !== '' && !label.startsWith('job=')),
      `job="${release}-${program}"`,
      `namespace="${namespace}"`,
    ];
    return [`${metric}{${labels.join(',')}}`, values];
  });
  return Object.fromEntries(named);
}

function unit(series: PromtoolSeries, fires: readonly string[]) {
  return {
    interval: '1m',
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    promql_expr_test: [
      {
        expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
        eval_time: '50m',
        exp_samples: fires.map((alertname) => ({ labels: `{alertname="${alertname}"}`, value: 1 })),
      },
    ],
  };
}

async function runRules(
  t: ExecutionContext,
  groups: readonly Manifest[],
  tests: readonly object[],
) {
  const folder = createTemporaryFolder(t);
  const [rulesFile, testFile] = [join(folder, 'rules.json'), join(folder, 'rules.test.json')];
  writeFileSync(rulesFile, JSON.stringify({ groups }));
  writeFileSync(
    testFile,
    JSON.stringify({ rule_files: [rulesFile], evaluation_interval: '1m', tests }),
  );
  const { code, output } = await runTool('promtool', ['test', 'rules', testFile]);
  t.is(code, 0, output);
}
