// Tests that all surfaces agree on how often a rule was hit and how often it was over its limit, for every kind of
// rule.
import test from 'ava';
import { createControlPlaneInProcess } from '../../support/control-plane-in-process.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { createRulesFolder } from '../../support/rules-folder.ts';
import { startStatsdReceiver } from '../../support/statsd-receiver.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

const limit = '{unit: year, requests_per_unit: 5}';
const list = `rate_limits: [${limit}, {unit: day, unit_multiplier: 30, requests_per_unit: 7}]`;
const until = new Date(Date.now() + 86_400_000).toISOString();
/** `changing`: the limit that is raised while it is counted. */
const lasting = (changing: number) => `domain: d
descriptors:
  - {key: start, rate_limit: ${limit}}
  - {key: plain, rate_limit: ${limit}}
  - {key: shadow, shadow_mode: true, rate_limit: ${limit}}
  - {key: free, rate_limit: {unlimited: true}}
  - {key: list, ${list}}
  - {key: named, value_to_metric: true, ${list}}
  - {key: timed, until: ${until}, rate_limit: ${limit}}
  - {key: quota, quota_mode: true, rate_limit: ${limit}}
  - {key: leased, rate_limit: {unit: year, requests_per_unit: 5, lease: {share: 50%, for: 10s}}}
  - {key: replaced, rate_limit: {unit: year, requests_per_unit: 5, name: base}}
  - {key: replacing, rate_limit: {unit: year, requests_per_unit: 5, replaces: [{name: base}]}}
  - {key: changing, rate_limit: {unit: year, requests_per_unit: ${changing}}}
  - {key: path, value: /x/*, share_threshold: true, rate_limit: ${limit}}
  - {key: begins, value: v*, rate_limit: ${limit}}
  - {key: detailed, detailed_metric: true, rate_limit: ${limit}}
  - {key: several, rate_limit: ${limit}}
  - {key: sliding, rate_limit: {unit: day, requests_per_unit: 5, algorithm: sliding_window}}
  - {key: bucket, rate_limit: {unit: year, requests_per_unit: 5, algorithm: token_bucket}}
  - key: a
    descriptors:
      - key: b
        descriptors:
          - {key: c, ${list}}
`;
const gone = `  - {key: gone, rate_limit: ${limit}}\n`;
const hits = 8;
const over = 3;

type Entries = readonly (readonly [key: string, value: string])[];

interface Expected {
  readonly entries: Entries;
  /** Another descriptor of the same requests. */
  readonly beside?: Entries;
  /** Hits of each request. */
  readonly addend?: number;
  /** How many requests are sent, and how many of them after the change of the rules. */
  readonly sent: number;
  readonly sentLater?: number;
  readonly metricKey: string;
  /** Labels of a pulled metric, after the domain. */
  readonly labels: string;
  /** The name in the control plane; default: the metric key. */
  readonly rule?: string;
  readonly hits: number;
  readonly over: number;
  /** For a list: by the window of each limit, how often it was over. */
  readonly limits?: Readonly<Record<string, number>>;
}

const oneKey = (key: string, more: Partial<Expected> = {}): Expected => ({
  entries: [[key, 'v']],
  metricKey: `d.${key}`,
  labels: `key1="${key}"`,
  sent: hits,
  hits,
  over,
  ...more,
});
const limits = { year: over, '30_day': 1 };

const rules: readonly Expected[] = [
  ...['plain', 'shadow', 'gone', 'timed', 'quota', 'leased'].map((key) => oneKey(key)),
  oneKey('list', { limits }),
  oneKey('named', { metricKey: 'd.named_v', labels: 'key1="named_v"', rule: 'd.named', limits }),
  // Not counted.
  oneKey('free', { hits: 0, over: 0 }),
  oneKey('replaced', { sent: 0, hits: 0, over: 0 }),
  oneKey('replacing', { beside: [['replaced', 'v']] }),
  oneKey('begins', { metricKey: 'd.begins_v*', labels: 'key1="begins_v*"' }),
  oneKey('detailed', {
    metricKey: 'd.detailed_v',
    labels: 'key1="detailed_v"',
    rule: 'd.detailed',
  }),
  // One request with all hits, of which 5 are within the limit.
  oneKey('several', { sent: 1, addend: hits }),
  oneKey('sliding'),
  oneKey('bucket'),
  // The sixth is over the limit of 5, and the last one over the limit of 7.
  oneKey('changing', { sent: 6, sentLater: 2, over: 2 }),
  {
    ...oneKey('path', { metricKey: 'd.path_/x/', labels: 'key1="path_/x/"', rule: 'd.path_/x/*' }),
    entries: [['path', '/x/1']],
  },
  {
    ...oneKey('a.b.c', { labels: 'key1="a",key2="b"', limits }),
    entries: [
      ['a', 'v'],
      ['b', 'v'],
      ['c', 'v'],
    ],
  },
];

type Figures = ReturnType<typeof toFigures>;

test('all surfaces report the same number of hits of a rule', async (t) => {
  t.timeout(180_000);
  const folder = createRulesFolder(t, { 'd.yaml': lasting(5) + gone });
  const plane = await createControlPlaneInProcess(t, { flags: ['--config-dir', folder.path] });
  await plane.start();
  const statsd = await startStatsdReceiver(t);
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
  const decide = async (hitsAddend: number, ...all: readonly Entries[]) => {
    const descriptors = all.map((entries) => ({
      entries: entries.map(([key, value]) => ({ key, value })),
    }));
    const body = JSON.stringify({ domain: 'd', descriptors, hitsAddend });
    const url = `http://127.0.0.1:${worker.ports.http}/json`;
    const answer = await fetch(url, { method: 'POST', body });
    await answer.body?.cancel();
  };
  const readSeries = async () => {
    const { body } = await plane.fetch('/traffic/rules?domain=d');
    return body.rules as { rule: string; hits: number[]; overLimit: number[] }[];
  };
  await eventually('the rules', async () => (await worker.page('/rlconfig')).includes('d.gone'));
  await decide(1, [['start', 'v']]);
  await eventually('three slots of the chart', async () =>
    (await readSeries()).some(({ hits }) => hits.length >= 3),
  );
  const send = async ({ entries, beside, addend = 1 }: Expected, count: number) => {
    for (let left = count; left > 0; left--)
      await decide(addend, entries, ...(beside === undefined ? [] : [beside]));
  };
  for (const rule of rules) await send(rule, rule.sent);
  folder.replace('d.yaml', lasting(7));
  await eventually(
    'a rule is gone',
    async () => !(await worker.page('/rlconfig')).includes('gone'),
  );
  for (const rule of rules) await send(rule, rule.sentLater ?? 0);

  /** `window`: that of one limit of a list, on surfaces that distinguish them. */
  type Read = (rule: Expected, window?: string) => Promise<Figures> | Figures;
  const surfaces: Readonly<Record<string, Read>> = {
    // First, since it covers the last minute.
    'who is limited, by the admin API': async (rule, window) =>
      toFigures((await plane.fetch('/top')).body, rule, window),
    'who is limited, by the command': async (rule, window) =>
      toFigures(JSON.parse((await plane.run('top', '--json')).stdout), rule, window),
    async '/stats of the debug port'(rule, window) {
      const page = await worker.page('/stats');
      const read = (stat: string) => {
        const name = `ratelimit.service.rate_limit.${keyOf(rule, window)}.${stat}: `;
        const line = page.split('\n').find((each) => each.startsWith(name));
        return Number(line?.slice(name.length) ?? 0);
      };
      return { hits: read('total_hits'), over: read('over_limit') };
    },
    async Prometheus({ labels }, window) {
      const text = await (await fetch(`http://127.0.0.1:${pullPort}/metrics`)).text();
      const read = (stat: string) => {
        const start = `ratelimit_service_rate_limit_${stat}{domain="d",${labels}`;
        return text
          .split('\n')
          .filter((line) => line.startsWith(`${start}} `) || line.startsWith(`${start},`))
          .filter((line) => /limit="([^"]*)"/.exec(line)?.[1] === window)
          .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
      };
      return { hits: read('total_hits'), over: read('over_limit') };
    },
    statsd(rule, window) {
      const read = (stat: string) =>
        statsd.totals.get(`ratelimit.service.rate_limit.${keyOf(rule, window)}.${stat}|c`) ?? 0;
      return { hits: read('total_hits'), over: read('over_limit') };
    },
  };
  const readChart: Read = async ({ metricKey, rule = metricKey }) => {
    const seriesOfRule = (await readSeries()).filter((each) => each.rule === rule);
    // Hits per second, to two digits, in slots of five seconds.
    const sum = (values: readonly number[]) =>
      Math.round(values.reduce((all, each) => all + each * 5, 0));
    return {
      hits: sum(seriesOfRule.flatMap((each) => each.hits)),
      over: sum(seriesOfRule.flatMap((each) => each.overLimit)),
    };
  };
  const check = async (name: string, expected: Figures, read: () => ReturnType<Read>) => {
    let last: Figures | undefined;
    const isSo = async () => {
      last = await read();
      return last.hits === expected.hits && last.over === expected.over;
    };
    await eventually(name, isSo, 40_000).catch(() =>
      t.deepEqual(last, { hits: expected.hits, over: expected.over }, name),
    );
  };
  for (const [surface, read] of Object.entries(surfaces)) {
    for (const rule of rules) {
      await check(`${surface}: ${rule.metricKey}`, rule, () => read(rule));
      for (const [window, over] of Object.entries(rule.limits ?? {})) {
        const name = `${surface}: ${rule.metricKey}, ${window}`;
        await check(name, { hits: rule.hits, over }, () => read(rule, window));
      }
    }
  }
  for (const rule of rules) {
    await check(`the console's chart of the rule: ${rule.metricKey}`, rule, () => readChart(rule));
  }
  // A rule is one row, including its values and the limits of its list.
  const { body: top } = await plane.fetch('/top');
  const names = (top as Top).rules.map(({ rule }) => rule);
  const known = new Set(['d.start', ...rules.map(({ metricKey, rule = metricKey }) => rule)]);
  t.deepEqual(
    names.filter((name, at) => !known.has(name) || names.indexOf(name) !== at),
    [],
  );
});

function keyOf({ metricKey }: Expected, window: string | undefined): string {
  return window === undefined ? metricKey : `${metricKey}.${window}`;
}

interface Rates {
  readonly hitsPerSecond: number;
  readonly overLimitPerSecond: number;
}

interface Top {
  readonly rules: readonly (Rates & {
    readonly rule: string;
    readonly limits?: readonly (Rates & { readonly limit: string })[];
  })[];
}

/** Rates cover a time that the answer does not contain: it is derived from a rule with one limit, which was hit as
 * often. */
function toFigures(
  { rules: rates }: Top,
  { metricKey, rule = metricKey }: Expected,
  window: string | undefined,
) {
  const rateOf = (wanted: string) => rates.find((each) => each.rule === wanted);
  const full = rateOf(rule);
  const own = window === undefined ? full : full?.limits?.find(({ limit }) => limit === window);
  const unit = (rateOf('d.plain')?.hitsPerSecond ?? 0) / hits;
  return {
    hits: Math.round((own?.hitsPerSecond ?? 0) / unit),
    over: Math.round((own?.overLimitPerSecond ?? 0) / unit),
  };
}
