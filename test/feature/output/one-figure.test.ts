// How often was a rule hit, and how often was it over its limit? Every surface has the same answer, whatever the rule is.
import test from 'ava';
import { createControlPlaneProcess } from '../../support/control-plane-process.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { createRulesFolder } from '../../support/rules-folder.ts';
import { startStatsdReceiver } from '../../support/statsd-receiver.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

const limit = '{unit: year, requests_per_unit: 5}';
const lasting = `domain: d
descriptors:
  - {key: start, rate_limit: ${limit}}
  - {key: plain, rate_limit: ${limit}}
  - {key: shadow, shadow_mode: true, rate_limit: ${limit}}
  - {key: free, rate_limit: {unlimited: true}}
  - key: list
    rate_limits: [${limit}, {unit: day, unit_multiplier: 30, requests_per_unit: 7}]
  - {key: path, value: /x/*, share_threshold: true, rate_limit: ${limit}}
  - key: a
    descriptors:
      - key: b
        descriptors:
          - {key: c, rate_limits: [${limit}, {unit: day, unit_multiplier: 30, requests_per_unit: 7}]}
`;
const gone = `  - {key: gone, rate_limit: ${limit}}\n`;
const hits = 8;
const over = 3;

interface Expected {
  readonly entries: readonly (readonly [key: string, value: string])[];
  readonly metricKey: string;
  /** Of a pulled metric, after the domain. */
  readonly labels: string;
  /** In the control plane; default: the metric key. */
  readonly rule?: string;
  readonly hits: number;
  readonly over: number;
}

const oneKey = (key: string, hits: number, over: number): Expected => ({
  entries: [[key, 'v']],
  metricKey: `d.${key}`,
  labels: `key1="${key}"`,
  hits,
  over,
});

const rules: readonly Expected[] = [
  ...['plain', 'shadow', 'list', 'gone'].map((key) => oneKey(key, hits, over)),
  // Nothing is counted for it.
  oneKey('free', 0, 0),
  {
    entries: [['path', '/x/1']],
    metricKey: 'd.path_/x/',
    labels: 'key1="path_/x/"',
    rule: 'd.path_/x/*',
    hits,
    over,
  },
  {
    entries: [
      ['a', 'v'],
      ['b', 'v'],
      ['c', 'v'],
    ],
    metricKey: 'd.a.b.c',
    labels: 'key1="a",key2="b"',
    hits,
    over,
  },
];

interface Figures {
  readonly hits: number;
  readonly over: number;
}

test('the hits of a rule are the same number at every surface', async (t) => {
  t.timeout(180_000);
  const folder = createRulesFolder(t);
  folder.write('d.yaml', lasting + gone);
  const plane = await createControlPlaneProcess(t, { flags: ['--config-dir', folder.path] });
  await plane.start();
  const statsd = await startStatsdReceiver();
  t.teardown(() => statsd.close());
  const pullPort = await freePort();
  const worker = await startWorkerProcess(t, {
    env: {
      BACKEND_TYPE: 'memory',
      CONFIG_TYPE: 'GRPC_XDS_SOTW',
      CONFIG_GRPC_XDS_SERVER_URL: plane.xdsAddress,
      DISABLE_STATS: 'false',
      USE_STATSD: 'true',
      STATSD_HOST: '127.0.0.1',
      STATSD_PORT: `${statsd.port}`,
      STATS_FLUSH_INTERVAL: '200ms',
      USE_PROMETHEUS: 'true',
      PROMETHEUS_ADDR: `127.0.0.1:${pullPort}`,
    },
  });
  const decide = async (entries: Expected['entries']) => {
    const descriptors = [{ entries: entries.map(([key, value]) => ({ key, value })) }];
    const body = JSON.stringify({ domain: 'd', descriptors });
    const url = `http://127.0.0.1:${worker.ports.http}/json`;
    const answer = await fetch(url, { method: 'POST', body });
    await answer.body?.cancel();
  };
  const readSeries = async () => {
    const { body } = await plane.fetch('/traffic/rules?domain=d');
    return body.rules as { rule: string; hits: number[]; overLimit: number[] }[];
  };
  await eventually('the rules', async () => (await worker.page('/rlconfig')).includes('d.gone'));
  await decide([['start', 'v']]);
  await eventually('three slots of the chart', async () =>
    (await readSeries()).some(({ hits }) => hits.length >= 3),
  );
  for (const { entries } of rules) for (let left = hits; left > 0; left--) await decide(entries);
  folder.replace('d.yaml', lasting);
  await eventually(
    'a rule is gone',
    async () => !(await worker.page('/rlconfig')).includes('gone'),
  );

  const surfaces: Readonly<Record<string, (rule: Expected) => Promise<Figures> | Figures>> = {
    // First, as they are about the last minute.
    'who is limited, by the admin API': async (rule) =>
      toFigures((await plane.fetch('/top')).body, rule),
    'who is limited, by the command': async (rule) =>
      toFigures(JSON.parse((await plane.run('top', '--json')).stdout), rule),
    async '/stats of the debug port'({ metricKey }) {
      const page = await worker.page('/stats');
      const read = (stat: string) => {
        const name = `ratelimit.service.rate_limit.${metricKey}.${stat}: `;
        const line = page.split('\n').find((each) => each.startsWith(name));
        return Number(line?.slice(name.length) ?? 0);
      };
      return { hits: read('total_hits'), over: read('over_limit') };
    },
    async Prometheus({ labels }) {
      const text = await (await fetch(`http://127.0.0.1:${pullPort}/metrics`)).text();
      const read = (stat: string) => {
        const start = `ratelimit_service_rate_limit_${stat}{domain="d",${labels}`;
        return text
          .split('\n')
          .filter((line) => line.startsWith(`${start}} `) || line.startsWith(`${start},key`))
          .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
      };
      return { hits: read('total_hits'), over: read('over_limit') };
    },
    statsd({ metricKey }) {
      const read = (stat: string) =>
        statsd.totals.get(`ratelimit.service.rate_limit.${metricKey}.${stat}|c`) ?? 0;
      return { hits: read('total_hits'), over: read('over_limit') };
    },
    async "the console's chart of the rule"({ metricKey, rule = metricKey }) {
      const seriesOfRule = (await readSeries()).filter((each) => each.rule === rule);
      // Hits per second, to two digits, of slots of five seconds.
      const sum = (values: readonly number[]) =>
        Math.round(values.reduce((all, each) => all + each * 5, 0));
      return {
        hits: sum(seriesOfRule.flatMap((each) => each.hits)),
        over: sum(seriesOfRule.flatMap((each) => each.overLimit)),
      };
    },
  };
  for (const [surface, read] of Object.entries(surfaces)) {
    for (const rule of rules) {
      const expected = { hits: rule.hits, over: rule.over };
      const name = `${surface}: ${rule.metricKey}`;
      let last: Figures | undefined;
      const isSo = async () => {
        last = await read(rule);
        return last.hits === expected.hits && last.over === expected.over;
      };
      await eventually(name, isSo, 40_000).catch(() => t.deepEqual(last, expected, name));
    }
  }
  t.pass();
});

interface Top {
  readonly rules: readonly {
    readonly rule: string;
    readonly hitsPerSecond: number;
    readonly overLimitPerSecond: number;
  }[];
}

/** Rates are of a time that the answer does not have: a rule with one limit, which was hit as often, tells it. */
function toFigures({ rules: rates }: Top, { metricKey }: Expected): Figures {
  const rateOf = (wanted: string) => rates.find(({ rule }) => rule === wanted);
  const own = rateOf(metricKey);
  const unit = (rateOf('d.plain')?.hitsPerSecond ?? 0) / hits;
  return {
    hits: Math.round((own?.hitsPerSecond ?? 0) / unit),
    over: Math.round((own?.overLimitPerSecond ?? 0) / unit),
  };
}
