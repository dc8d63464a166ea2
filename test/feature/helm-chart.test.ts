// The Helm chart: rendered and linted by Helm's own library and read by Kubernetes' own, strictly
// (test/setup/go-tools/chart-check); what it sets is held against what the programs know and need. How the
// control planes find each other: helm-chart-peers.test.ts.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { parse, parseAllDocuments } from 'yaml';
import { parseControlPlaneSettings } from '../../control-plane/settings.ts';
import { parseWorkerSettings } from '../../worker/settings.ts';
import { testWith } from '../support/installed-tool.ts';
import {
  chartFolder as chart,
  environmentOf,
  isPartOf,
  type Manifest,
  readManifests,
  renderChart as render,
} from '../support/rendered-chart.ts';

const project = join(import.meta.dirname, '..', '..');
/** After SIGTERM, as worker/docs/failures.md says. */
const workerStopSeconds = 15;
const testChart = testWith(test, 'chart-check');

/** What a pod may be given besides. */
const extras = {
  extraVolumes: [{ name: 'certs', secret: { secretName: 'certs' } }],
  extraVolumeMounts: [{ name: 'certs', mountPath: '/certs', readOnly: true }],
  extraEnv: [{ name: 'TZ', value: 'UTC' }],
  extraEnvFrom: [{ configMapRef: { name: 'common' } }],
  affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } },
  topologySpreadConstraints: [
    {
      maxSkew: 1,
      topologyKey: 'kubernetes.io/hostname',
      whenUnsatisfiable: 'DoNotSchedule',
      labelSelector: { matchLabels: { app: 'a' } },
    },
  ],
};

/** Of the shapes that a chart may take, those that differ most. */
const shapes = {
  'as it comes': {},
  'with Git, tokens, metrics and a network policy': {
    image: { repository: 'registry.example/ratelane', tag: 'abc', pullSecrets: [{ name: 'pull' }] },
    worker: {
      settings: { KVSTORE_URL: 'redis:6379', KVSTORE_TLS: true, HTTP_SERVER_USE_TLS: false },
      settingsSecret: 'worker-secrets',
      preStopSeconds: 20,
      annotations: { 'example.org/team': 'edge' },
      nodeSelector: { pool: 'edge' },
      tolerations: [{ key: 'edge', operator: 'Exists' }],
    },
    controlPlane: {
      git: {
        url: 'https://git.example/rules.git',
        ref: 'main',
        path: 'rules',
        secret: 'rules-git',
        webhook: true,
      },
      adminTokensSecret: 'admin-tokens',
      settings: { RATELANE_GIT_POLL: '10s' },
    },
    serviceMonitor: {
      enabled: true,
      labels: { release: 'prometheus' },
      tokenSecret: { name: 'a' },
    },
    networkPolicy: { enabled: true, scrapers: [{ namespaceSelector: {} }] },
  },
  'with TLS, tokens and what a cluster asks for besides': {
    nameOverride: 'limits',
    serviceAccount: { create: true, annotations: { 'example.org/role': 'limits' } },
    redis: { enabled: true },
    worker: {
      tlsSecret: 'worker-tls',
      xdsTlsSecret: 'worker-xds-tls',
      settingsSecret: 'worker-secrets',
      ...extras,
    },
    controlPlane: {
      adminTokensSecret: 'admin-tokens',
      xdsTokensSecret: 'xds-tokens',
      xdsTlsSecret: 'plane-tls',
      adminTlsSecret: 'plane-tls',
      ...extras,
    },
    serviceMonitor: { enabled: true, tokenSecret: { name: 'a' } },
    prometheusRule: { enabled: true, runbookUrl: 'https://wiki.example/ratelane/' },
  },
  'without a control plane and without autoscaling': {
    controlPlane: { enabled: false },
    worker: { autoscaling: { enabled: false }, replicas: 2 },
    networkPolicy: { enabled: true, callers: [{ podSelector: { matchLabels: { app: 'envoy' } } }] },
  },
};

for (const [title, values] of Object.entries(shapes)) {
  testChart(`the chart ${title} gives manifests that fit together`, async (t) => {
    const { code, output } = await render(t, values);
    t.is(code, 0, output);
    const manifests = readManifests(output);
    const pods = new Map<string, Manifest>();
    for (const { kind, metadata, spec } of manifests) {
      if (kind === 'Deployment') pods.set(metadata.name, spec.template);
      if (kind === 'Deployment') t.like(spec.template.metadata.labels, spec.selector.matchLabels);
    }
    for (const pod of pods.values()) checkPod(t, pod);
    for (const { kind, metadata, spec } of manifests) {
      const named = `${kind} ${metadata.name}`;
      const selector = {
        Service: spec?.selector,
        PodDisruptionBudget: spec?.selector?.matchLabels,
      };
      const wanted = selector[kind as keyof typeof selector];
      if (wanted !== undefined) {
        const chosen = [...pods.values()].filter((pod) => isPartOf(wanted, pod.metadata.labels));
        t.is(chosen.length, 1, `${named} chooses one Deployment`);
        for (const port of spec.ports ?? [])
          t.true(portNames(chosen[0]).has(port.targetPort), named);
      }
      if (kind === 'HorizontalPodAutoscaler') t.true(pods.has(spec.scaleTargetRef.name));
      if (kind === 'ServiceMonitor') {
        const services = manifests.filter(
          (other) =>
            other.kind === 'Service' && isPartOf(spec.selector.matchLabels, other.metadata.labels),
        );
        t.is(services.length, 1, named);
        const ports = services[0].spec.ports.map((port: Manifest) => port.name);
        for (const endpoint of spec.endpoints) t.true(ports.includes(endpoint.port), named);
      }
    }
    const kinds = manifests.map((manifest) => manifest.kind);
    t.is(kinds.includes('HorizontalPodAutoscaler'), !title.includes('without autoscaling'));
    const worker = [...pods].find(([name]) => name.endsWith('-worker'))?.[1];
    const settings = parseWorkerSettings(environmentOf(worker));
    t.deepEqual(settings.ok ? [] : settings.problems, []);
    t.deepEqual(settings.warnings, []);
    const grace = worker.spec.terminationGracePeriodSeconds;
    const [, waited] = worker.spec.containers[0].lifecycle.preStop.exec.command;
    t.true(grace >= Number(waited) + workerStopSeconds, `${grace} s are enough to stop in`);
    const plane = [...pods].find(([name]) => name.endsWith('-control-plane'))?.[1];
    t.is(plane === undefined, title.includes('without a control plane'));
    if (plane !== undefined) {
      const server = environmentOf(worker)['CONFIG_GRPC_XDS_SERVER_URL']?.split(':')[0];
      t.true(
        manifests.some(({ kind, metadata }) => kind === 'Service' && metadata.name === server),
      );
      const parsed = parseControlPlaneSettings(environmentOf(plane));
      t.deepEqual(parsed.ok ? [] : parsed.problems, []);
    }
  });
}

test('the alerts of the chart are those of the composition', (t) => {
  const alerts = readFileSync(join(project, 'compose/observability/alerts.yaml'), 'utf8');
  t.is(readFileSync(join(chart, 'files/alerts.yaml'), 'utf8'), alerts, 'npm run docs');
});

testChart('what a pod may be given besides, accounts, alerts and a Redis arrive', async (t) => {
  const { code, output } = await render(
    t,
    shapes['with TLS, tokens and what a cluster asks for besides'],
  );
  t.is(code, 0, output);
  const manifests = readManifests(output);
  const find = (kind: string, name: string) =>
    manifests.find((each) => each.kind === kind && each.metadata.name === name);
  for (const program of ['worker', 'control-plane']) {
    const { spec } = find('Deployment', `sample-limits-${program}`).spec.template;
    const [container] = spec.containers;
    t.is(spec.serviceAccountName, 'sample-limits');
    t.deepEqual(spec.affinity, extras.affinity);
    t.deepEqual(spec.topologySpreadConstraints, extras.topologySpreadConstraints);
    t.deepEqual(spec.volumes.at(-1), extras.extraVolumes[0]);
    t.deepEqual(container.volumeMounts.at(-1), extras.extraVolumeMounts[0]);
    t.deepEqual(container.env.at(-1), extras.extraEnv[0]);
    t.deepEqual(container.envFrom.at(-1), extras.extraEnvFrom[0]);
    t.truthy(find('PodDisruptionBudget', `sample-limits-${program}`));
  }
  t.truthy(find('ServiceAccount', 'sample-limits'));
  const worker = find('Deployment', 'sample-limits-worker').spec.template;
  t.is(environmentOf(worker)['KVSTORE_URL'], 'sample-limits-redis:6379');
  t.truthy(find('Service', 'sample-limits-redis'));
  const alerts = find('PrometheusRule', 'sample-limits').spec.groups.flatMap(
    (group: Manifest) => group.rules,
  );
  const written = parse(readFileSync(join(project, 'compose/observability/alerts.yaml'), 'utf8'));
  t.deepEqual(
    alerts.map((rule: Manifest) => rule.expr.replace('(ratelane|sample-limits)', 'ratelane')),
    written.groups.flatMap((group: Manifest) => group.rules).map((rule: Manifest) => rule.expr),
  );
  // The job of a pod that a ServiceMonitor finds is its Service's name.
  const jobs = alerts.flatMap(({ expr }: Manifest) => /up\{job=~"(.*)"\}/.exec(expr)?.[1] ?? []);
  t.is(jobs.length, 2);
  for (const program of ['worker', 'control-plane']) {
    const own = jobs.filter((job: string) => RegExp(`^${job}$`).test(`sample-limits-${program}`));
    t.is(own.length, 1, program);
  }
  for (const { annotations } of alerts) {
    t.is(annotations.runbook_url, `https://wiki.example/ratelane/${annotations.runbook}`);
  }
});

testChart('settings that are numbers reach the programs as they were written', async (t) => {
  // Read from a file, where every number is a float64; from 1,000,000 on Go prints those as 1e+06.
  const written = {
    worker: {
      LOCAL_CACHE_SIZE_IN_BYTES: 10_485_760,
      EXPIRATION_JITTER_MAX_SECONDS: 1_000_000,
      GRPC_MAX_CONNECTIONS: 999_999,
      NEAR_LIMIT_RATIO: 0.8,
      ANY_FRACTION: 1_500_000.5,
    },
    'control-plane': {
      RATELANE_MAX_RESPONSE_BYTES: 8_388_608,
      ANY_FRACTION: 0.8,
    },
  };
  const { code, output } = await render(t, {
    worker: { settings: written.worker, preStopSeconds: 1_000_000 },
    controlPlane: { settings: written['control-plane'] },
  });
  t.is(code, 0, output);
  const pods = new Map<string, Manifest>(
    readManifests(output)
      .filter((manifest) => manifest.kind === 'Deployment')
      .map(({ metadata, spec }) => [metadata.name, spec.template]),
  );
  for (const [program, settings] of Object.entries(written)) {
    const environment = environmentOf(pods.get(`sample-ratelane-${program}`));
    const texts = Object.entries(settings).map(([name, number]) => [name, String(number)]);
    t.like(environment, Object.fromEntries(texts), program);
    const parse = program === 'worker' ? parseWorkerSettings : parseControlPlaneSettings;
    const parsed = parse(environment);
    t.deepEqual(parsed.ok ? [] : parsed.problems, [], program);
  }
  const { lifecycle } = pods.get('sample-ratelane-worker').spec.containers[0];
  t.deepEqual(lifecycle.preStop.exec.command, ['sleep', '1000000']);
});

testChart('values that the chart does not know are refused with their place', async (t) => {
  const { code, output } = await render(t, { worker: { replica: 3, settings: { lower: 'case' } } });
  t.is(code, 1);
  t.regex(output, /replica/);
  t.regex(output, /lower/);
});

testChart('a manifest that the API server would refuse is found', async (t) => {
  // What is given as it is reaches the pod: a field of another type.
  const { code, output } = await render(t, { worker: { resources: { limits: ['a'] } } });
  t.is(code, 1);
  t.regex(output, /worker\.yaml.*limits/s);
});

test('the chart has the version of the package', (t) => {
  const { version } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'));
  const [about] = parseAllDocuments(readFileSync(join(chart, 'Chart.yaml'), 'utf8'));
  t.like(about?.toJS(), { version, appVersion: version });
});

function checkPod(t: ExecutionContext, { spec }: Manifest): void {
  t.like(spec.securityContext, { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
  const volumes = new Set((spec.volumes ?? []).map((volume: Manifest) => volume.name));
  for (const container of spec.containers) {
    t.like(container.securityContext, {
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
    });
    t.truthy(container.resources.requests.memory);
    for (const mount of container.volumeMounts ?? []) t.true(volumes.has(mount.name), mount.name);
    const names = new Set(container.ports.map((port: Manifest) => port.name));
    for (const probe of [container.livenessProbe, container.readinessProbe]) {
      const port = (probe.httpGet ?? probe.tcpSocket)?.port;
      if (port !== undefined) t.true(names.has(port), `${port} is a port`);
    }
  }
  for (const constraint of spec.topologySpreadConstraints ?? []) {
    t.truthy(constraint.labelSelector.matchLabels);
  }
}

function portNames(pod: Manifest): Set<string> {
  return new Set(pod.spec.containers[0].ports.map((port: Manifest) => port.name));
}
