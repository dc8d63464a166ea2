// The Helm chart: rendered and linted by Helm's own library, read by Kubernetes' own, strictly, and held against
// its pod security standard "restricted" (test/setup/go-tools/chart-check); what it sets is held against what
// the programs know and need. How the control planes find each other: helm-chart-peers.test.ts; its alerts:
// helm-chart-alerts.test.ts; what it says after the installation, and its probes: test/e2e/helm-chart.test.ts.
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { parse, parseAllDocuments } from 'yaml';
import { parseControlPlaneSettings } from '../../../control-plane/settings.ts';
import { parseWorkerSettings } from '../../../worker/settings.ts';
import { runTool, testWith } from '../../support/installed-tool.ts';
import {
  chartFolder as chart,
  environmentOf,
  isPartOf,
  type Manifest,
  readManifests,
  readNotes,
  renderChart as render,
} from '../../support/rendered-chart.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';

const project = join(import.meta.dirname, '..', '..', '..');
/** After SIGTERM, as worker/docs/operating.md says. */
const workerStopSeconds = 15;
const testChart = testWith(test, 'chart-check');

/** What programs read from Secrets in place of a value. */
const secrets = { chat: { url: 'https://chat.example/hooks/its-secret' } };

const readFixture = (name: string): Manifest =>
  parse(readFileSync(new URL(`../../fixtures/chart/${name}.yaml`, import.meta.url), 'utf8'));
const shapes: Readonly<Record<string, Manifest>> = readFixture('shapes');

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
      const parsed = parseControlPlaneSettings(environmentOf(plane, secrets));
      t.deepEqual(parsed.ok ? [] : parsed.problems, []);
    }
  });
}

testChart('what a pod may be given besides, accounts, alerts and a Redis arrive', async (t) => {
  const values = shapes['with TLS, tokens and what a cluster asks for besides'];
  const { code, output } = await render(t, values);
  t.is(code, 0, output);
  const manifests = readManifests(output);
  const find = (kind: string, name: string) =>
    manifests.find((each) => each.kind === kind && each.metadata.name === name);
  for (const program of ['worker', 'control-plane']) {
    const { spec } = find('Deployment', `sample-limits-${program}`).spec.template;
    const [container] = spec.containers;
    t.is(spec.serviceAccountName, 'sample-limits');
    t.deepEqual(spec.affinity, values.worker.affinity);
    t.deepEqual(spec.topologySpreadConstraints, values.worker.topologySpreadConstraints);
    t.deepEqual(spec.volumes.at(-1), values.worker.extraVolumes[0]);
    t.deepEqual(container.volumeMounts.at(-1), values.worker.extraVolumeMounts[0]);
    t.deepEqual(container.env.at(-1), values.worker.extraEnv[0]);
    t.deepEqual(container.envFrom.at(-1), values.worker.extraEnvFrom[0]);
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

testChart(
  'who pushed a revision is told of it by what the Secrets say, shown nowhere',
  async (t) => {
    const { code, output } = await render(t, shapes['as in production']);
    t.is(code, 0, output);
    const plane = findPod(output, 'edge-control-plane');
    const parsed = parseControlPlaneSettings(environmentOf(plane, secrets));
    t.deepEqual(parsed.ok && parsed.settings.notify, {
      url: new URL(secrets.chat.url),
      secretFile: '/run/secrets/notify/secret',
      commitStatus: {
        url: new URL('https://git.example/api/v1/repos/acme/rules'),
        tokenFile: '/run/secrets/commit-status/token',
      },
      publicUrl: 'https://limits.example',
    });
    const mounted = mountedSecrets(plane);
    t.is(mounted.get('/run/secrets/notify'), 'notify');
    t.is(mounted.get('/run/secrets/commit-status'), 'status');
    t.is(mounted.get('/run/secrets/git-ca'), 'git-ca');
    for (const name of ['GIT_SSL_CAINFO', 'NODE_EXTRA_CA_CERTS']) {
      t.is(environmentOf(plane, secrets)[name], '/run/secrets/git-ca/ca.crt');
    }
    const notes = readNotes(output);
    t.regex(notes, /told by a signed call of the notification URL, and by a status of its commit/);

    const given = 'https://chat.example/hooks/its-secret';
    const plain = await render(t, { controlPlane: { notify: { url: given } } });
    t.is(
      environmentOf(findPod(plain.output, 'sample-ratelane-control-plane'))['RATELANE_NOTIFY_URL'],
      given,
    );
    t.regex(readNotes(plain.output), /told by an unsigned call of the notification URL\./);
    t.false(readNotes(plain.output).includes('its-secret'));
    t.false(readNotes((await render(t, {})).output).includes('What becomes of a revision'));
  },
);

testChart('that each worker counts by itself is told', async (t) => {
  const told = /^Each worker counts by itself/m;
  const settings = { BACKEND_TYPE: 'memory' };
  t.regex(readNotes((await render(t, { worker: { settings } })).output), told);
  t.notRegex(readNotes((await render(t, {})).output), told);
});

testChart('people are led to where they reach the console', async (t) => {
  const hosts = ['limits.example'];
  for (const [controlPlane, wanted] of [
    [{ ingress: { enabled: true, hosts } }, 'http://limits.example'],
    [{ ingress: { enabled: true, hosts, tlsSecret: 'tls' } }, 'https://limits.example'],
    [{ ingress: { enabled: true, hosts, paths: ['/webhooks'] } }, undefined],
    [{ ingress: { enabled: true, hosts: ['*.example'] } }, undefined],
    [{ ingress: { hosts } }, undefined],
    [
      { ingress: { enabled: true, hosts }, publicUrl: 'https://a.example/b/' },
      'https://a.example/b',
    ],
  ] as const) {
    const { code, output } = await render(t, { controlPlane });
    t.is(code, 0, output);
    const plane = findPod(output, 'sample-ratelane-control-plane');
    t.is(environmentOf(plane)['RATELANE_PUBLIC_URL'], wanted);
    const [, told] = /The console is at (\S+)\/console\//.exec(readNotes(output)) ?? [];
    t.is(told, wanted ?? 'http://localhost:18001');
  }
});

testChart('a repository over ssh is asked with the key and the hosts of a Secret', async (t) => {
  const { code, output } = await render(t, shapes['with Git over ssh']);
  t.is(code, 0, output);
  const plane = findPod(output, 'sample-ratelane-control-plane');
  t.is(mountedSecrets(plane).get('/run/secrets/git-ssh'), 'deploy-key');
  const environment = environmentOf(plane);
  t.false(
    'RATELANE_GIT_PASSWORD_FILE' in environment,
    'the Secret has the one of the webhook alone',
  );
  t.is(environment['RATELANE_WEBHOOK_SECRET_FILE'], '/run/secrets/git/webhook-secret');
  // As git runs it; ssh tells what it would do, with keys that exist.
  const folder = createTemporaryFolder(t);
  writeFileSync(join(folder, 'ssh-privatekey'), '');
  const command = environment['GIT_SSH_COMMAND']?.replaceAll('/run/secrets/git-ssh', folder);
  const told = execFileSync('sh', ['-c', `${command} -T -G git.example`], { encoding: 'utf8' });
  for (const line of [
    `identityfile ${folder}/ssh-privatekey`,
    `userknownhostsfile ${folder}/known_hosts`,
    'identitiesonly yes',
    'batchmode yes',
    'stricthostkeychecking true',
  ]) {
    t.true(told.split('\n').includes(line), line);
  }
});

testChart('a store with a password and TLS of its own is a matter of Secrets', async (t) => {
  const { code, output } = await render(t, shapes['as in production']);
  t.is(code, 0, output);
  const worker = findPod(output, 'edge-worker');
  t.like(environmentOf(worker), {
    KVSTORE_AUTH_FILE: '/run/secrets/store/password',
    KVSTORE_TLS: 'true',
    KVSTORE_TLS_CACERT: '/run/secrets/store-tls/ca.crt',
    KVSTORE_TLS_CLIENT_CERT: '/run/secrets/store-tls/tls.crt',
    KVSTORE_TLS_CLIENT_KEY: '/run/secrets/store-tls/tls.key',
  });
  t.is(mountedSecrets(worker).get('/run/secrets/store'), 'redis');
  t.is(mountedSecrets(worker).get('/run/secrets/store-tls'), 'redis-tls');
  const plain = await render(t, { worker: { storeTlsSecret: 'redis-tls' } });
  t.false(
    'KVSTORE_TLS_CLIENT_CERT' in environmentOf(findPod(plain.output, 'sample-ratelane-worker')),
  );
});

testChart('what a release brings besides, relabelling and users of OpenShift arrive', async (t) => {
  const anyUser = { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } };
  const relabelings = [{ action: 'labeldrop', regex: 'pod' }];
  const metricRelabelings = [{ action: 'drop', regex: 'process_.*', sourceLabels: ['__name__'] }];
  const { code, output } = await render(t, {
    podSecurityContext: anyUser,
    serviceMonitor: { enabled: true, relabelings, metricRelabelings },
    extraObjects: [
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: '{{ .Release.Name }}-besides' },
        data: { a: 'b' },
      },
    ],
  });
  t.is(code, 0, output);
  const manifests = readManifests(output);
  t.true(manifests.some(({ metadata }) => metadata.name === 'sample-besides'));
  const monitors = manifests.filter(({ kind }) => kind === 'ServiceMonitor');
  t.is(monitors.length, 2);
  for (const { spec } of monitors) t.like(spec.endpoints[0], { relabelings, metricRelabelings });
  t.deepEqual(findPod(output, 'sample-ratelane-worker').spec.securityContext, anyUser);
});

testChart('where the admin port asks for certificates, all that ask it show one', async (t) => {
  const settings = { RATELANE_ADMIN_TLS_CLIENT_CA: '/run/secrets/admin-tls/ca.crt' };
  const { code, output } = await render(t, {
    controlPlane: { adminTlsSecret: 'plane-tls', adminTlsCa: true, settings },
    serviceMonitor: { enabled: true },
  });
  t.is(code, 0, output);
  const manifests = readManifests(output);
  const find = (kind: string, name: string) =>
    manifests.find((each) => each.kind === kind && each.metadata.name === name);
  t.like(find('ServiceMonitor', 'sample-ratelane-control-plane').spec.endpoints[0].tlsConfig, {
    cert: { secret: { name: 'plane-tls', key: 'tls.crt' } },
    keySecret: { name: 'plane-tls', key: 'tls.key' },
  });
  const { spec } = find('Pod', 'sample-ratelane-test');
  const [{ args, volumeMounts }] = spec.containers;
  t.regex(args[0], /--cert=\/run\/secrets\/admin-tls\/tls\.crt/);
  t.regex(args[0], /--key=\/run\/secrets\/admin-tls\/tls\.key/);
  t.true(volumeMounts.some(({ mountPath }: Manifest) => mountPath === '/run/secrets/admin-tls'));
  const { secret } = spec.volumes.find(({ name }: Manifest) => name === 'admin-tls');
  t.deepEqual(
    secret.items.map(({ key }: Manifest) => key),
    ['ca.crt', 'tls.crt', 'tls.key'],
  );
});

testChart('ports that settings name are those of Service, test and NOTES', async (t) => {
  const settings = { GRPC_PORT: 9000, PORT: '9001', PULLMETRICS_ADDR: ':9002' };
  const { code, output } = await render(t, { worker: { settings } });
  t.is(code, 0, output);
  const manifests = readManifests(output);
  const find = (kind: string, name: string) =>
    manifests.find((each) => each.kind === kind && each.metadata.name === name);
  t.deepEqual(
    find('Service', 'sample-ratelane-worker').spec.ports.map(({ port }: Manifest) => port),
    [9_000, 9_001, 9_002],
  );
  const [{ args }] = find('Pod', 'sample-ratelane-test').spec.containers;
  const address = 'sample-ratelane-worker.limits.svc:9000';
  t.true(args[0].includes(`-dial_string=${address} `), String(args));
  t.true(readNotes(output).includes(address));
});

testChart(
  'helm test asks both programs in one container, whose log stays until the next test',
  async (t) => {
    for (const [values, wanted] of [
      [{}, /ratelane client [\s\S]*control-plane status --wait/],
      [{ controlPlane: { enabled: false } }, /ratelane client /],
      [{ worker: { settings: { GRPC_CLIENT_TLS_CACERT: '/ca' } } }, /control-plane status --wait/],
    ] as const) {
      const { code, output } = await render(t, values);
      t.is(code, 0, output);
      const { metadata, spec } = readManifests(output).find(({ kind }) => kind === 'Pod');
      t.is(metadata.annotations['helm.sh/hook-delete-policy'], 'before-hook-creation');
      t.is(spec.containers.length, 1);
      const [{ command, args }] = spec.containers;
      t.deepEqual([command, args.length], [['sh', '-ec'], 1]);
      t.regex(args[0], wanted);
      // As the container runs it, with a program that fails.
      const script = `ratelane() { [ "$1" = client ] || return 4; }; ${args[0]}`;
      const { status } = spawnSync('sh', ['-ec', script]);
      t.is(status, args[0].includes('status') ? 4 : 0);
    }
  },
);

testChart('what manifests of the values say wins over the chart, for each program', async (t) => {
  const manifests = {
    deployment: { metadata: { annotations: { a: 'b' } }, spec: { strategy: { type: 'Recreate' } } },
    pod: { dnsPolicy: 'Default', terminationGracePeriodSeconds: 90 },
    container: {
      livenessProbe: { periodSeconds: 33 },
      lifecycle: { postStart: { sleep: { seconds: 1 } } },
    },
    service: { metadata: { annotations: { c: 'd' } }, spec: { ipFamilyPolicy: 'PreferDualStack' } },
    disruptionBudget: { spec: { unhealthyPodEvictionPolicy: 'IfHealthyBudget' } },
  };
  const metrics = [
    {
      type: 'Pods',
      pods: { metric: { name: 'calls' }, target: { type: 'AverageValue', averageValue: '1k' } },
    },
  ];
  const autoscaler = { spec: { metrics, behavior: { scaleUp: { selectPolicy: 'Min' } } } };
  const secure = {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  };
  const beside = { image: 'beside:1', securityContext: secure };
  const extra = {
    extraInitContainers: [{ ...beside, name: 'before' }],
    extraContainers: [{ ...beside, name: 'beside' }],
  };
  const stateVolume = { persistentVolumeClaim: { claimName: 'state' } };
  const { code, output } = await render(t, {
    namespaceOverride: 'other',
    commonLabels: { team: 'edge', 'app.kubernetes.io/name': 'no' },
    worker: { manifests: { ...manifests, autoscaler }, ...extra },
    controlPlane: { manifests, ...extra, replicas: 1, stateVolume },
    serviceMonitor: { enabled: true },
    prometheusRule: { enabled: true },
    dashboard: { enabled: true },
    networkPolicy: { enabled: true, scrapers: [{ podSelector: {} }] },
    serviceAccount: { create: true },
    redis: { enabled: true },
  });
  t.is(code, 0, output);
  for (const { kind, metadata, spec } of readManifests(output)) {
    t.is(metadata.namespace, 'other', `${kind} ${metadata.name}`);
    t.like(metadata.labels, { team: 'edge', 'app.kubernetes.io/name': 'ratelane' });
    const isRedis = metadata.name.endsWith('-redis');
    if (kind === 'Deployment') t.is(spec.template.metadata.labels.team, 'edge');
    if (isRedis) continue;
    if (kind === 'Deployment') {
      t.is(metadata.annotations.a, 'b');
      t.deepEqual(spec.strategy, { type: 'Recreate' });
      const { initContainers, containers, ...pod } = spec.template.spec;
      t.like(pod, manifests.pod);
      t.like(containers[0].livenessProbe, { periodSeconds: 33, timeoutSeconds: 5 });
      t.deepEqual(containers[0].lifecycle.postStart, { sleep: { seconds: 1 } });
      t.deepEqual(containers.slice(1), extra.extraContainers);
      t.deepEqual(initContainers.slice(-1), extra.extraInitContainers);
      if (metadata.name.endsWith('control-plane')) {
        t.deepEqual(pod.volumes[0], { name: 'state', ...stateVolume });
      }
    }
    if (kind === 'Service') {
      t.is(spec.ipFamilyPolicy, 'PreferDualStack');
      t.is(metadata.annotations.c, 'd');
    }
    if (kind === 'PodDisruptionBudget') t.is(spec.unhealthyPodEvictionPolicy, 'IfHealthyBudget');
    if (kind === 'HorizontalPodAutoscaler') {
      t.deepEqual(spec.metrics, metrics);
      t.is(spec.behavior.scaleUp.selectPolicy, 'Min');
      t.is(spec.behavior.scaleDown.stabilizationWindowSeconds, 300);
    }
  }
});

testChart('ports that others ask are open to IPv4 and IPv6', async (t) => {
  const { code, output } = await render(t, {});
  t.is(code, 0, output);
  const [worker, plane] = ['worker', 'control-plane'].map((name) =>
    environmentOf(findPod(output, `sample-ratelane-${name}`)),
  );
  t.like(worker, { HOST: '', GRPC_HOST: '', PULLMETRICS_ADDR: undefined });
  t.like(plane, { RATELANE_ADMIN_ADDRESS: ':18001', RATELANE_XDS_ADDRESS: ':18000' });
  // As Node opens a port without a host, where the machine has both.
  const server = createServer();
  await new Promise<void>((resolve) => server.listen({ host: worker?.['HOST'], port: 0 }, resolve));
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  for (const host of ['127.0.0.1', '::1']) {
    const socket = connect({ host, port });
    await once(socket, 'connect');
    socket.destroy();
  }
});

testChart(
  'an image that has a digest is pulled by it, in every pod, and a malformed one is refused',
  async (t) => {
    const digest = `sha256:${'0123456789abcdef'.repeat(4)}`;
    const image = { repository: 'registry.example/ratelane', tag: '1.2.3' };
    const imagesOf = async (values: object) => {
      const { code, output } = await render(t, values);
      t.is(code, 0, output);
      const specs = readManifests(output).flatMap(({ kind, spec }) =>
        kind === 'Pod' ? [spec] : kind === 'Deployment' ? [spec.template.spec] : [],
      );
      const containers = specs.flatMap((spec) => [
        ...(spec.initContainers ?? []),
        ...spec.containers,
      ]);
      return [...new Set(containers.map((container) => container.image))];
    };
    t.deepEqual(await imagesOf({ image }), ['registry.example/ratelane:1.2.3']);
    const pinned = { ...image, digest };
    t.deepEqual(await imagesOf({ image: pinned }), [`registry.example/ratelane@${digest}`]);
    const redis = { enabled: true, image: `redis:8-alpine@${digest}` };
    t.true((await imagesOf({ image: pinned, redis })).includes(redis.image));
    const { code, output } = await render(t, { image: { ...image, digest: 'sha256:0123' } });
    t.is(code, 1);
    t.regex(output, /image\.digest/);
  },
);

testChart('labels and the tag of an image do without the + of a version', async (t) => {
  const folder = join(createTemporaryFolder(t), 'ratelane');
  cpSync(chart, folder, { recursive: true });
  const file = join(folder, 'Chart.yaml');
  const version = '1.2.3-rc.1+build.5';
  writeFileSync(file, readFileSync(file, 'utf8').replaceAll(/(ersion: )"?\d\S*/g, `$1${version}`));
  const values = join(folder, 'given.json');
  writeFileSync(values, '{}');
  const { code, output } = await runTool('chart-check', [folder, values]);
  t.is(code, 0, output);
  const worker = findPod(output, 'sample-ratelane-worker');
  t.is(worker.metadata.labels['app.kubernetes.io/version'], '1.2.3-rc.1_build.5');
  t.is(worker.metadata.labels['helm.sh/chart'], 'ratelane-1.2.3-rc.1_build.5');
  t.is(worker.spec.containers[0].image, 'ratelane:1.2.3-rc.1_build.5');
});

testChart(
  'each process of a worker has a core and memory, unless resources are given',
  async (t) => {
    const resourcesOf = async (worker: object) => {
      const { code, output } = await render(t, { worker });
      t.is(code, 0, output);
      return findPod(output, 'sample-ratelane-worker').spec.containers[0].resources;
    };
    const one = { requests: { cpu: '500m', memory: '256Mi' }, limits: { memory: '512Mi' } };
    t.deepEqual(await resourcesOf({}), one);
    for (const four of [4, '4']) {
      t.deepEqual(await resourcesOf({ settings: { WORKER_PROCESSES: four } }), {
        requests: { cpu: '2000m', memory: '1280Mi' },
        limits: { memory: '2560Mi' },
      });
    }
    const resources = { requests: { cpu: '3' } };
    t.deepEqual(await resourcesOf({ resources }), {
      ...one,
      requests: { cpu: '3', memory: '256Mi' },
    });
  },
);

testChart(
  'a program that reads rules of the values starts when they have been checked',
  async (t) => {
    const checked = ({ spec }: Manifest) =>
      (spec.initContainers ?? []).map(({ args }: Manifest) => args);
    const check = [['control-plane', 'check', '/rules']];
    for (const [values, worker, plane] of [
      [{}, [], check],
      [{ controlPlane: { enabled: false } }, check, undefined],
      [{ controlPlane: { git: { url: 'https://git.example/a' } } }, [], []],
    ] as const) {
      const { code, output } = await render(t, values);
      t.is(code, 0, output);
      t.deepEqual(checked(findPod(output, 'sample-ratelane-worker')), worker);
      if (plane) t.deepEqual(checked(findPod(output, 'sample-ratelane-control-plane')), plane);
    }
  },
);

testChart('a word that a setting does not have is refused, with those that it has', async (t) => {
  const { code, output } = await render(t, {
    worker: { settings: { KVSTORE_FAILURE_MODE: 'alow', KVSTORE_TLS: 'on', log_level: 'x' } },
  });
  t.is(code, 1);
  t.regex(output, /KVSTORE_FAILURE_MODE.*allow/);
  t.regex(output, /KVSTORE_TLS/);
});

testChart('a duration without its unit is refused, and taken with it', async (t) => {
  const renderWorker = (settings: object) => render(t, { worker: { settings } });
  for (const wrong of [5, '5', '5 s']) {
    const { code, output } = await renderWorker({ KVSTORE_TIMEOUT: wrong });
    t.is(code, 1, `${wrong}`);
    t.regex(output, /KVSTORE_TIMEOUT/);
  }
  for (const right of ['5s', '1m30s', '1.5ms', '150us', '150\u00b5s']) {
    t.is((await renderWorker({ KVSTORE_TIMEOUT: right })).code, 0, right);
  }
  t.is((await renderWorker({ GRPC_MAX_CONNECTION_AGE: 0 })).code, 0);
});

testChart('recorded decisions have room for all files that may be kept', async (t) => {
  const sizeOf = async (settings: object) => {
    const { code, output } = await render(t, { worker: { recordDecisions: true, settings } });
    t.is(code, 0, output);
    const worker = findPod(output, 'sample-ratelane-worker');
    const [container] = worker.spec.containers;
    const path = environmentOf(worker)['RECORD_DECISIONS'];
    const mount = container.volumeMounts.find(
      ({ mountPath }: Manifest) => dirname(path ?? '') === mountPath,
    );
    t.not(mount.readOnly, true);
    const volume = worker.spec.volumes.find(({ name }: Manifest) => name === mount.name);
    t.true(readNotes(output).includes(`cat ${path} `));
    return Number(volume.emptyDir.sizeLimit);
  };
  t.is(await sizeOf({}), 4 * 104_857_600);
  const settings = { RECORD_DECISIONS_FILES: 5, RECORD_DECISIONS_FILE_SIZE_IN_BYTES: 1_000_000 };
  t.is(await sizeOf(settings), 6_000_000);
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

for (const { refused, values } of readFixture('contradictions')) {
  testChart(`refused with what to write instead: ${JSON.stringify(values)}`, async (t) => {
    const { code, output } = await render(t, values);
    t.is(code, 1);
    t.regex(output, new RegExp(refused));
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
  const open = new Set([
    ...['rules', 'worker.settings', 'controlPlane.settings'],
    ...['worker.resources', 'controlPlane.resources'],
  ]);
  const compare = (place: string, value: Manifest, schema: Manifest) => {
    const isMap = typeof value === 'object' && value !== null && !Array.isArray(value);
    if (!isMap || schema.properties === undefined || open.has(place)) {
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

test('the README of the chart has each Secret, and what it enables', (t) => {
  const readme = readFileSync(join(chart, 'README.md'), 'utf8');
  const values = parseAllDocuments(readFileSync(join(chart, 'values.yaml'), 'utf8'))[0]?.toJS();
  const found: string[] = [];
  const collect = (place: string, value: Manifest) => {
    for (const [name, child] of Object.entries(value)) {
      if (/secret$/i.test(name)) found.push(`${place}${name}`);
      else if (typeof child === 'object' && child !== null) collect(`${place}${name}.`, child);
    }
  };
  collect('', values);
  const [, table = ''] = readme.split('\n## Secrets\n');
  const rows = [...table.matchAll(/^\| `([\w.]+)` \|/gm)].map(([, name]) => name);
  t.deepEqual(rows.filter((name) => /secret$/i.test(name ?? '')).sort(), found.sort());
  // No name that the values do not have.
  for (const [, name = ''] of readme.matchAll(/`((?:worker|controlPlane)\.[\w.]+)`/g)) {
    const value = name.split('.').reduce((all: Manifest, key) => all?.[key], values);
    t.not(value, undefined, name);
  }
});

testChart('values that the chart does not know are refused with their place', async (t) => {
  const { code, output } = await render(t, { worker: { replica: 3, settings: { lower: 'case' } } });
  t.is(code, 1);
  t.regex(output, /replica/);
  t.regex(output, /lower/);
});

testChart('an address with a user name is refused, as the program would', async (t) => {
  for (const controlPlane of [
    { notify: { url: 'https://ann:secret@hooks.example' } },
    { commitStatus: { url: 'ftp://git.example' } },
    { publicUrl: 'limits.example' },
  ]) {
    const { code, output } = await render(t, { controlPlane });
    t.is(code, 1);
    t.regex(output, /does not match pattern/i);
  }
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

test('the chart and the image have the version of the package, by which a release names them', (t) => {
  const { version } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'));
  const [about] = parseAllDocuments(readFileSync(join(chart, 'Chart.yaml'), 'utf8'));
  t.like(about?.toJS(), { version, appVersion: version });
  const dockerfile = readFileSync(join(project, 'compose/Dockerfile'), 'utf8');
  t.is(/^ARG VERSION=(.*)$/m.exec(dockerfile)?.[1], version);
});

function checkPod(t: ExecutionContext, { spec }: Manifest): void {
  t.like(spec.securityContext, { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
  const volumes = new Set((spec.volumes ?? []).map((volume: Manifest) => volume.name));
  for (const container of [...(spec.initContainers ?? []), ...spec.containers]) {
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

function findPod(output: string, deployment: string): Manifest {
  const found = readManifests(output).find(
    ({ kind, metadata }) => kind === 'Deployment' && metadata.name === deployment,
  );
  return found.spec.template;
}

/** The names of Secrets by where the pod has them. */
function mountedSecrets({ spec }: Manifest): Map<string, string> {
  const volumes = new Map(spec.volumes.map((volume: Manifest) => [volume.name, volume]));
  return new Map(
    spec.containers[0].volumeMounts.map(({ name, mountPath }: Manifest) => [
      mountPath,
      (volumes.get(name) as Manifest).secret?.secretName,
    ]),
  );
}

function portNames(pod: Manifest): Set<string> {
  return new Set(pod.spec.containers[0].ports.map((port: Manifest) => port.name));
}
