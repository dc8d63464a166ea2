// The Helm chart: rendered and linted by Helm's own library, read by Kubernetes' own, strictly, and held against
// its pod security standard "restricted" (test/setup/go-tools/chart-check); what it sets is held against what
// the programs know and need. How the control planes find each other: helm-chart-peers.test.ts; its alerts:
// helm-chart-alerts.test.ts; what it says after the installation, and its probes: test/e2e/helm-chart.test.ts.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { parseAllDocuments } from 'yaml';
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
    networkPolicy: {
      enabled: true,
      adminCallers: [{ namespaceSelector: { matchLabels: { team: 'edge' } } }],
      scrapers: [{ namespaceSelector: {} }],
    },
  },
  'as in production': {
    fullnameOverride: 'edge',
    revisionHistoryLimit: 3,
    image: { repository: 'registry.example/ratelane', digest: `sha256:${'0a'.repeat(32)}` },
    worker: {
      settings: { KVSTORE_URL: 'redis.example:6379', PULLMETRICS_ADDR: ':9191' },
      settingsSecret: 'worker-secrets',
      tlsSecret: 'worker-tls',
      tlsCa: true,
      xdsTlsSecret: 'worker-xds-tls',
      podLabels: { team: 'edge', 'app.kubernetes.io/component': 'no' },
      priorityClassName: 'system-cluster-critical',
    },
    controlPlane: {
      git: { url: 'https://git.example/rules.git', secret: 'rules-git', webhook: true },
      rollout: 'canary=10%,hold=60s',
      peersTokenSecret: 'fleet-token',
      adminTokensSecret: 'admin-tokens',
      xdsTokensSecret: 'xds-tokens',
      xdsTlsSecret: 'plane-xds-tls',
      adminTlsSecret: 'plane-tls',
      adminTlsCa: true,
      podLabels: { team: 'edge' },
      priorityClassName: 'high',
      ingress: {
        enabled: true,
        className: 'nginx',
        annotations: { 'nginx.ingress.kubernetes.io/backend-protocol': 'HTTPS' },
        hosts: ['limits.example', 'limits.internal'],
        paths: ['/console', '/webhooks'],
        tlsSecret: 'limits-tls',
      },
    },
    serviceMonitor: { enabled: true },
    prometheusRule: { enabled: true },
    dashboard: { enabled: true, annotations: { grafana_folder: 'Edge' } },
    networkPolicy: {
      enabled: true,
      callers: [{ podSelector: { matchLabels: { app: 'envoy' } } }],
      adminCallers: [{ namespaceSelector: { matchLabels: { name: 'ingress' } } }],
      scrapers: [{ namespaceSelector: { matchLabels: { name: 'monitoring' } } }],
    },
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
      if (kind === 'Pod') checkPod(t, { spec });
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
        for (const port of spec.ports ?? []) {
          t.true(portNames(chosen[0]).has(port.targetPort), named);
        }
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
      for (const rule of kind === 'Ingress' ? spec.rules : []) {
        for (const { backend } of rule.http.paths) {
          const service = manifests.find(
            (other) => other.kind === 'Service' && other.metadata.name === backend.service.name,
          );
          const ports = service.spec.ports.map((port: Manifest) => port.name);
          t.true(ports.includes(backend.service.port.name), named);
        }
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
      const servers = environmentOf(worker)['CONFIG_GRPC_XDS_SERVER_URL']?.split(',') ?? [];
      t.is(new Set(servers).size, 2, 'another one can be asked at once');
      for (const server of servers) {
        const [, name, port] = /^([\w-]+)(?:\.limits\.svc)?:(\d+)$/.exec(server) ?? [];
        const service = manifests.find(
          ({ kind, metadata }) => kind === 'Service' && metadata.name === name,
        );
        t.true(
          service?.spec.ports.some((each: Manifest) => String(each.port) === port),
          server,
        );
      }
      const parsed = parseControlPlaneSettings(environmentOf(plane));
      t.deepEqual(parsed.ok ? [] : parsed.problems, []);
    }
  });
}

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
  t.true(alerts.length > 10);
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

testChart('what a cluster asks for in production arrives', async (t) => {
  const { code, output } = await render(t, shapes['as in production']);
  t.is(code, 0, output);
  const manifests = readManifests(output);
  const find = (kind: string, name: string) =>
    manifests.find((each) => each.kind === kind && each.metadata.name === name);
  const [worker, plane] = ['edge-worker', 'edge-control-plane'].map((name) => {
    const { spec } = find('Deployment', name);
    t.is(spec.revisionHistoryLimit, 3);
    t.is(
      spec.template.spec.containers[0].image,
      `registry.example/ratelane@sha256:${'0a'.repeat(32)}`,
    );
    t.is(spec.template.metadata.labels.team, 'edge');
    t.is(find('PodDisruptionBudget', name).spec.unhealthyPodEvictionPolicy, 'AlwaysAllow');
    return spec.template;
  });
  t.is(worker.metadata.labels['app.kubernetes.io/component'], 'worker', 'Services find it by that');
  t.is(worker.spec.priorityClassName, 'system-cluster-critical');
  t.is(plane.spec.priorityClassName, 'high');
  t.is(
    worker.spec.containers[0].ports.find(({ name }: Manifest) => name === 'metrics').containerPort,
    9191,
  );
  const { spec: ingress } = find('Ingress', 'edge-control-plane');
  t.is(ingress.ingressClassName, 'nginx');
  t.deepEqual(ingress.tls, [
    { secretName: 'limits-tls', hosts: ['limits.example', 'limits.internal'] },
  ]);
  t.deepEqual(
    ingress.rules.map(({ host, http }: Manifest) => [
      host,
      http.paths.map(({ path }: Manifest) => path),
    ]),
    [
      ['limits.example', ['/console', '/webhooks']],
      ['limits.internal', ['/console', '/webhooks']],
    ],
  );
  const dashboard = find('ConfigMap', 'edge-dashboard');
  t.is(dashboard.metadata.labels.grafana_dashboard, '1');
  t.deepEqual(dashboard.metadata.annotations, { grafana_folder: 'Edge' });
  t.is(JSON.parse(dashboard.data['ratelane.json']).uid, 'ratelane');
  t.like(find('ServiceMonitor', 'edge-control-plane').spec.endpoints[0], {
    scheme: 'https',
    authorization: { credentials: { name: 'fleet-token', key: 'token' } },
    tlsConfig: {
      serverName: 'edge-control-plane-peers.limits.svc',
      ca: { secret: { name: 'plane-tls', key: 'ca.crt' } },
    },
  });
});

testChart('a Secret of settings that has changed starts the workers anew', async (t) => {
  const values = { worker: { settingsSecret: 'worker-secrets', annotations: { team: 'edge' } } };
  const template = async (resourceVersion?: string) => {
    const { code, output } = await render(t, values, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'worker-secrets', namespace: 'limits', resourceVersion },
      data: { KVSTORE_AUTH: 'c2VjcmV0' },
    });
    t.is(code, 0, output);
    return readManifests(output).find(
      ({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'sample-ratelane-worker',
    ).spec.template;
  };
  const [before, same, after] = [await template('7'), await template('7'), await template('8')];
  t.deepEqual(same, before);
  t.notDeepEqual(after, before);
  t.is(after.metadata.annotations.team, 'edge');
  // Neither the settings nor a hash of them, which guesses could be held against.
  t.deepEqual(
    { ...after, metadata: { ...after.metadata, annotations: undefined } },
    { ...before, metadata: { ...before.metadata, annotations: undefined } },
  );
  t.deepEqual(Object.values(after.metadata.annotations).sort(), ['8', 'edge']);
});

/** Values that contradict each other, and what is told. */
const contradictions: readonly (readonly [told: RegExp, values: object])[] = [
  [/worker\.autoscaling: min is above max/, { worker: { autoscaling: { min: 5, max: 2 } } }],
  [/metrics port is switched off/, { worker: { settings: { USE_PULLMETRICS: false } } }],
  [/metrics port is switched off/, { worker: { settings: { DISABLE_STATS: 'true' } } }],
  [/redis\.enabled: /, { redis: { enabled: true }, worker: { settings: { KVSTORE_URL: 'a:1' } } }],
  [/controlPlane\.git\.ref: .*git\.url/, { controlPlane: { git: { ref: 'main' } } }],
  [/controlPlane\.git\.secret: .*git\.url/, { controlPlane: { git: { secret: 'a' } } }],
  [/controlPlane\.rollout: .*git\.url/, { controlPlane: { rollout: 'canary=10%' } }],
  [
    /controlPlane\.git\.webhook: .*git\.secret/,
    { controlPlane: { git: { url: 'https://git.example/a', webhook: true } } },
  ],
  [/controlPlane\.adminTlsCa: .*adminTlsSecret/, { controlPlane: { adminTlsCa: true } }],
  [/worker\.tlsCa: .*worker\.tlsSecret/, { worker: { tlsCa: true } }],
  [/controlPlane\.xdsTlsSecret: .*worker\.xdsTlsSecret/, { controlPlane: { xdsTlsSecret: 'a' } }],
  [/worker\.xdsTlsSecret: .*controlPlane\.xdsTlsSecret/, { worker: { xdsTlsSecret: 'a' } }],
  [
    /controlPlane\.xdsTokensSecret: .*worker\.xdsTokenSecret/,
    { controlPlane: { xdsTokensSecret: 'a' } },
  ],
  [
    /RATELANE_ADMIN_ADDRESS: .*take it out/,
    { controlPlane: { settings: { RATELANE_ADMIN_ADDRESS: '127.0.0.1:18001' } } },
  ],
  [
    /RATELANE_XDS_ADDRESS: .*at port 18000/,
    { controlPlane: { settings: { RATELANE_XDS_ADDRESS: '0.0.0.0:9000' } } },
  ],
  [/ingress\.hosts: /, { controlPlane: { ingress: { enabled: true } } }],
  [
    /networkPolicy\.adminCallers: controlPlane\.ingress/,
    {
      controlPlane: { ingress: { enabled: true, hosts: ['a'] } },
      networkPolicy: { enabled: true },
    },
  ],
  [
    /networkPolicy\.adminCallers: controlPlane\.git\.webhook/,
    {
      controlPlane: { git: { url: 'https://git.example/a', secret: 'a', webhook: true } },
      networkPolicy: { enabled: true },
    },
  ],
  [
    /networkPolicy\.scrapers: /,
    { serviceMonitor: { enabled: true }, networkPolicy: { enabled: true } },
  ],
  [/prometheusRule\.enabled: .*serviceMonitor/, { prometheusRule: { enabled: true } }],
];

for (const [told, values] of contradictions) {
  testChart(`refused with what to write instead: ${JSON.stringify(values)}`, async (t) => {
    const { code, output } = await render(t, values);
    t.is(code, 1);
    t.regex(output, told);
  });
}

testChart('all contradictions are told at once', async (t) => {
  const { code, output } = await render(t, {
    worker: { tlsCa: true },
    controlPlane: { adminTlsCa: true, rollout: 'canary=10%' },
  });
  t.is(code, 1);
  for (const place of ['worker.tlsCa', 'controlPlane.adminTlsCa', 'controlPlane.rollout']) {
    t.true(output.includes(`\n${place}: `), output);
  }
});

test('each value has its type in the schema, and nothing else is in there', (t) => {
  const read = (file: string) =>
    parseAllDocuments(readFileSync(join(chart, file), 'utf8'))[0]?.toJS();
  /** Maps whose keys are the user's. */
  const open = new Set(['rules', 'worker.settings', 'worker.resources', 'controlPlane.resources']);
  const compare = (place: string, value: Manifest, schema: Manifest) => {
    const isMap = typeof value === 'object' && value !== null && !Array.isArray(value);
    if (!isMap || schema.properties === undefined) {
      t.truthy(schema.type ?? schema.enum ?? schema.anyOf, `${place} has a type`);
      if (isMap && Object.keys(value).length > 0 && !open.has(place)) {
        t.truthy(schema.additionalProperties, place);
      }
      return;
    }
    t.is(schema.additionalProperties, false, place);
    t.deepEqual(Object.keys(schema.properties).sort(), Object.keys(value).sort(), place);
    for (const [name, child] of Object.entries(value)) {
      compare(place === '' ? name : `${place}.${name}`, child, schema.properties[name]);
    }
  };
  const { global, ...properties } = read('values.schema.json').properties;
  t.deepEqual(global, { type: 'object' }, 'what Helm hands to every chart');
  compare('', read('values.yaml'), { properties, additionalProperties: false });
});

testChart('values that the chart does not know are refused with their place', async (t) => {
  const { code, output } = await render(t, { worker: { replica: 3, settings: { lower: 'case' } } });
  t.is(code, 1);
  t.regex(output, /replica/);
  t.regex(output, /lower/);
});

testChart('a pod that the standard "restricted" forbids is found', async (t) => {
  const { code, output } = await render(t, {
    worker: { extraVolumes: [{ name: 'host', hostPath: { path: '/' } }] },
  });
  t.is(code, 1);
  t.regex(output, /worker\.yaml.*pod security restricted.*hostPath/s);
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
    const names = new Set((container.ports ?? []).map((port: Manifest) => port.name));
    const { startupProbe, livenessProbe, readinessProbe } = container;
    for (const probe of [startupProbe, livenessProbe, readinessProbe]) {
      if (probe === undefined) continue;
      // The machine asks by itself: no process is started for it.
      const { port } = probe.httpGet ?? probe.tcpSocket;
      t.true(names.has(port), `${port} is a port`);
    }
  }
  for (const constraint of spec.topologySpreadConstraints ?? []) {
    t.truthy(constraint.labelSelector.matchLabels);
  }
}

function portNames(pod: Manifest): Set<string> {
  return new Set(pod.spec.containers[0].ports.map((port: Manifest) => port.name));
}
