// How the control planes of the Helm chart find and know each other, and how the commands in a pod reach them.
import test, { type ExecutionContext } from 'ava';
import { parseControlPlaneSettings } from '../../../control-plane/settings.ts';
import { testWith } from '../../support/installed-tool.ts';
import {
  environmentOf,
  isPartOf,
  type Manifest,
  readManifests,
  readNotes,
  renderChart,
} from '../../support/rendered-chart.ts';

const testChart = testWith(test, 'chart-check');
const peersName = 'sample-ratelane-control-plane-peers';
const peersHost = `${peersName}.limits.svc`;

for (const replicas of [1, 2]) {
  testChart(`control planes are peers without any value (replicas: ${replicas})`, async (t) => {
    const chart = await render(t, replicas === 2 ? {} : { controlPlane: { replicas } });
    t.is(chart.find('Deployment', 'sample-ratelane-control-plane').spec.replicas, replicas);
    t.like(environmentOf(chart.plane), {
      RATELANE_PEERS: `dns:${peersHost}:18001`,
      RATELANE_PEERS_TOKEN_FILE: '/run/secrets/peers/token',
      // What other pods can reach.
      RATELANE_ADMIN_ADDRESS: ':18001',
    });
    const parsed = parseControlPlaneSettings(environmentOf(chart.plane));
    t.deepEqual(parsed.ok ? [] : parsed.problems, []);
    t.deepEqual(parsed.ok && parsed.settings.peers?.sources, [
      { kind: 'dns', host: peersHost, port: 18_001 },
    ]);
    t.is(mountedSecret(chart.plane, '/run/secrets/peers'), peersName);
  });
}

testChart('the name of the peers has the addresses of the control planes alone', async (t) => {
  const chart = await render(t, { redis: { enabled: true } });
  const { spec, metadata } = chart.find('Service', peersName);
  t.is(metadata.namespace ?? 'limits', 'limits');
  t.is(spec.clusterIP, 'None');
  // One that starts asks those that run, and they it.
  t.true(spec.publishNotReadyAddresses);
  t.deepEqual(spec.ports, [{ name: 'admin', port: 18_001, targetPort: 'admin' }]);
  const chosen = chart.manifests
    .filter(({ kind }) => kind === 'Deployment')
    .filter((each) => isPartOf(spec.selector, each.spec.template.metadata.labels));
  t.deepEqual(
    chosen.map((each) => each.metadata.name),
    ['sample-ratelane-control-plane'],
  );
});

testChart('the token that was made first stays', async (t) => {
  const first = (await render(t, {})).find('Secret', peersName);
  t.deepEqual(Object.keys(first.data), ['token']);
  t.regex(Buffer.from(first.data.token, 'base64').toString(), /^[A-Za-z0-9]{40}$/);
  const installed = { ...first, metadata: { ...first.metadata, namespace: 'limits' } };
  const upgraded = (await render(t, {}, installed)).find('Secret', peersName);
  t.is(upgraded.data.token, first.data.token);
  const elsewhere = { ...first, metadata: { ...first.metadata, namespace: 'others' } };
  for (const existing of [elsewhere, { ...installed, data: { token: '' } }]) {
    const { data } = (await render(t, {}, existing)).find('Secret', peersName);
    t.is(Buffer.from(data.token, 'base64').length, 40);
    t.not(data.token, first.data.token);
  }
});

testChart('a Secret of your own for the peers is used instead of one that is made', async (t) => {
  const chart = await render(t, {
    controlPlane: { peersTokenSecret: 'fleet-token', adminTokensSecret: 'admin-tokens' },
  });
  t.deepEqual(
    chart.manifests.filter(({ kind }) => kind === 'Secret'),
    [],
  );
  t.is(mountedSecret(chart.plane, '/run/secrets/peers'), 'fleet-token');
  t.is(mountedSecret(chart.plane, '/run/secrets/admin'), 'admin-tokens');
  t.is(environmentOf(chart.plane)['RATELANE_ADMIN_TOKENS_FILE'], '/run/secrets/admin/tokens');
});

testChart('commands in the pod of a control plane reach it with the token of peers', async (t) => {
  const plain = await render(t, {});
  const environment = environmentOf(plain.plane);
  t.is(environment['RATELANE_ADMIN_TOKEN_FILE'], '/run/secrets/peers/token');
  t.is(environment['RATELANE_ADMIN_URL'], undefined, 'the default is right');
  t.false('RATELANE_PEERS_CA' in environment);
  t.regex(plain.notes, /ratelane control-plane status$/m);

  const adminTlsSecret = 'plane-tls';
  const tls = await render(t, { controlPlane: { adminTlsSecret } });
  t.is(environmentOf(tls.plane)['RATELANE_ADMIN_URL'], `https://${peersHost}:18001`);
  t.false('RATELANE_PEERS_CA' in environmentOf(tls.plane));
  t.regex(tls.notes, /ratelane control-plane status$/m);

  const ownCa = await render(t, { controlPlane: { adminTlsSecret, adminTlsCa: true } });
  t.is(environmentOf(ownCa.plane)['RATELANE_PEERS_CA'], '/run/secrets/admin-tls/ca.crt');
  t.is(mountedSecret(ownCa.plane, '/run/secrets/admin-tls'), adminTlsSecret);
  t.regex(ownCa.notes, /status --ca \/run\/secrets\/admin-tls\/ca\.crt$/m);
});

for (const [title, values] of Object.entries({
  'as it comes': {},
  'with Secrets of your own': {
    nameOverride: 'limits',
    controlPlane: { peersTokenSecret: 'fleet-token', adminTokensSecret: 'admin-tokens' },
  },
  'without a control plane': { controlPlane: { enabled: false } },
})) {
  testChart(`what is told after installing the chart ${title} names what is there`, async (t) => {
    const chart = await render(t, values);
    const deployments = [...chart.notes.matchAll(/deployment\/([\w-]+)/g)];
    t.true(deployments.length >= 2);
    for (const [, name = ''] of deployments) t.truthy(chart.find('Deployment', name), name);
    const own = chart.manifests.filter(({ kind }) => kind === 'Secret');
    const existing = ['fleet-token', ...own.map(({ metadata }) => metadata.name)];
    for (const [, name = ''] of chart.notes.matchAll(/get secret ([\w-]+)/g)) {
      t.true(existing.includes(name), name);
    }
    t.is(chart.notes.includes('control-plane'), !title.startsWith('without'));
    t.is(chart.notes.includes('--token-file'), title.startsWith('with '), 'needs a write token');
  });
}

testChart('a network policy lets in control planes, and who is named', async (t) => {
  const adminCallers = [{ namespaceSelector: { matchLabels: { name: 'ingress' } } }];
  const scrapers = [{ namespaceSelector: { matchLabels: { name: 'monitoring' } } }];
  for (const given of [{}, { scrapers }, { adminCallers, scrapers }]) {
    const chart = await render(t, { networkPolicy: { enabled: true, ...given } });
    const { spec } = chart.find('NetworkPolicy', 'sample-ratelane-control-plane');
    const callers = spec.ingress
      .filter(({ ports }: Manifest) => ports.some(({ port }: Manifest) => port === 'admin'))
      .flatMap(({ from }: Manifest) => from);
    const [peers, tests, ...others] = callers;
    t.deepEqual(others, Object.values(given).flat());
    t.true(isPartOf(peers.podSelector.matchLabels, chart.plane.metadata.labels));
    const worker = chart.find('Deployment', 'sample-ratelane-worker').spec.template;
    t.false(isPartOf(peers.podSelector.matchLabels, worker.metadata.labels));
    // The pod of helm test asks both programs.
    const { labels } = chart.find('Pod', 'sample-ratelane-test').metadata;
    t.true(isPartOf(tests.podSelector.matchLabels, labels));
    const [grpc] = chart.find('NetworkPolicy', 'sample-ratelane-worker').spec.ingress;
    t.true(isPartOf(grpc.from.at(-1).podSelector.matchLabels, labels));
  }
});

testChart('a rollout is a value, and what peers are told by settings wins', async (t) => {
  const chart = await render(t, {
    controlPlane: {
      git: { url: 'https://git.example/rules.git' },
      rollout: 'canary=10%,hold=60s',
      adminTokensSecret: 'admin-tokens',
      settings: { RATELANE_PEERS: 'https://elsewhere:18001' },
    },
  });
  const parsed = parseControlPlaneSettings(environmentOf(chart.plane));
  t.deepEqual(parsed.ok ? [] : parsed.problems, []);
  t.truthy(parsed.ok && parsed.settings.rollout);
  t.deepEqual(parsed.ok && parsed.settings.peers?.sources, [
    { kind: 'url', url: new URL('https://elsewhere:18001') },
  ]);
  t.false('RATELANE_ROLLOUT' in environmentOf((await render(t, {})).plane));
});

interface RenderedChart {
  readonly manifests: readonly Manifest[];
  /** The pod of a control plane; undefined without any. */
  readonly plane: Manifest;
  readonly notes: string;
  find(kind: string, name: string): Manifest;
}

async function render(
  t: ExecutionContext,
  values: object,
  existing?: Manifest,
): Promise<RenderedChart> {
  const { code, output } = await renderChart(t, values, existing);
  t.is(code, 0, output);
  const manifests = readManifests(output);
  const planes = manifests
    .filter(({ kind }) => kind === 'Deployment')
    .filter(({ metadata }) => metadata.name.endsWith('-control-plane'));
  return {
    manifests,
    plane: planes[0]?.spec.template,
    notes: readNotes(output),
    find: (kind, name) =>
      manifests.find((each) => each.kind === kind && each.metadata.name === name),
  };
}

/** The Secret behind a folder of the pod. */
function mountedSecret({ spec }: Manifest, mountPath: string): string | undefined {
  const mounts: Manifest[] = spec.containers[0].volumeMounts;
  const mount = mounts.find((each) => each.mountPath === mountPath);
  return spec.volumes.find(({ name }: Manifest) => name === mount?.name)?.secret?.secretName;
}
