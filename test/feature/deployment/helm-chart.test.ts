// Tests the Helm chart: rendered and linted by Helm's own library, parsed strictly by Kubernetes' own, and checked
// against its pod security standard "restricted" (test/setup/go-tools/chart-check); its settings are compared with what
// the programs accept and need. helm-chart-values.test.ts tests the effect of each value, helm-chart-alerts.test.ts the
// alerts, and test/e2e/helm-chart.test.ts the probes and the commands in the notes.
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { parse, parseAllDocuments } from 'yaml';
import { parseControlPlaneSettings } from '../../../control-plane/server/settings.ts';
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
/** After SIGTERM, according to worker/docs/operating.md. */
const workerStopSeconds = 15;
const testChart = testWith(test, 'chart-check');

/** What programs read from Secrets instead of a value. */
const secrets = { chat: { url: 'https://chat.example/hooks/its-secret' } };

const readFixture = (name: string): Manifest =>
  parse(readFileSync(new URL(`../../fixtures/chart/${name}.yaml`, import.meta.url), 'utf8'));
const shapes: Readonly<Record<string, Manifest>> = readFixture('shapes');

for (const [title, values] of Object.entries(shapes)) {
  testChart(`the chart ${title} renders manifests that fit together`, async (t) => {
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
      for (const { rules } of kind === 'PrometheusRule' ? spec.groups : []) {
        for (const { annotations } of rules) {
          const { runbookUrl } = values.prometheusRule;
          const url = runbookUrl && `${runbookUrl}${annotations.runbook}`;
          t.is(annotations.runbook_url, url, named);
        }
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
    checkNotes(t, readNotes(output), manifests, values);
  });
}

testChart('a repository over ssh is accessed with the key and the hosts of a Secret', async (t) => {
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
  // As git runs it; ssh prints what it would do, with existing keys.
  const folder = createTemporaryFolder(t);
  writeFileSync(join(folder, 'ssh-privatekey'), '');
  const command = environment['GIT_SSH_COMMAND']?.replaceAll('/run/secrets/git-ssh', folder);
  const settings = execFileSync('sh', ['-c', `${command} -T -G git.example`], { encoding: 'utf8' });
  for (const line of [
    `identityfile ${folder}/ssh-privatekey`,
    `userknownhostsfile ${folder}/known_hosts`,
    'identitiesonly yes',
    'batchmode yes',
    'stricthostkeychecking true',
  ]) {
    t.true(settings.split('\n').includes(line), line);
  }
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

testChart('labels and the tag of an image omit the + of a version', async (t) => {
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

testChart('a changed Secret of settings restarts the workers', async (t) => {
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
  // Contains neither the settings nor a hash of them, which would allow testing guesses.
  t.deepEqual(
    { ...after, metadata: { ...after.metadata, annotations: undefined } },
    { ...before, metadata: { ...before.metadata, annotations: undefined } },
  );
  t.deepEqual(Object.values(after.metadata.annotations).sort(), ['8', 'edge']);
});

testChart('the first token of the peers is kept', async (t) => {
  const tokenOf = async (existing?: Manifest) => {
    const { code, output } = await render(t, {}, existing);
    t.is(code, 0, output);
    return readManifests(output).find(({ kind }) => kind === 'Secret');
  };
  const first = await tokenOf();
  t.deepEqual(Object.keys(first.data), ['token']);
  t.regex(Buffer.from(first.data.token, 'base64').toString(), /^[A-Za-z0-9]{40}$/);
  const installed = { ...first, metadata: { ...first.metadata, namespace: 'limits' } };
  const upgraded = await tokenOf(installed);
  t.is(upgraded.data.token, first.data.token);
  const elsewhere = { ...first, metadata: { ...first.metadata, namespace: 'others' } };
  for (const existing of [elsewhere, { ...installed, data: { token: '' } }]) {
    const { data } = await tokenOf(existing);
    t.is(Buffer.from(data.token, 'base64').length, 40);
    t.not(data.token, first.data.token);
  }
});

for (const { refused, values } of readFixture('contradictions')) {
  testChart(`refused with what to write instead: ${JSON.stringify(values)}`, async (t) => {
    const { code, output } = await render(t, values);
    t.is(code, 1);
    t.regex(output, new RegExp(refused));
  });
}

test('each value has its type in the schema, which contains nothing else', (t) => {
  const read = (file: string) =>
    parseAllDocuments(readFileSync(join(chart, file), 'utf8'))[0]?.toJS();
  /** Maps whose keys the user chooses. */
  const open = new Set([
    ...['rules', 'worker.settings', 'controlPlane.settings'],
    ...['worker.resources', 'controlPlane.resources'],
  ]);
  const compare = (path: string, value: Manifest, schema: Manifest) => {
    const isMap = typeof value === 'object' && value !== null && !Array.isArray(value);
    if (!isMap || schema.properties === undefined || open.has(path)) {
      t.truthy(schema.type ?? schema.enum ?? schema.anyOf, `${path} has a type`);
      if (isMap && Object.keys(value).length > 0 && !open.has(path))
        t.truthy(schema.additionalProperties, path);
      return;
    }
    t.is(schema.additionalProperties, false, path);
    t.deepEqual(Object.keys(schema.properties).sort(), Object.keys(value).sort(), path);
    for (const [name, child] of Object.entries(value)) {
      compare(path === '' ? name : `${path}.${name}`, child, schema.properties[name]);
    }
  };
  const { global, ...properties } = read('values.schema.json').properties;
  t.deepEqual(global, { type: 'object' }, 'what Helm hands to every chart');
  compare('', read('values.yaml'), { properties, additionalProperties: false });
});

test('the README of the chart lists each Secret, and what it enables', (t) => {
  const readme = readFileSync(join(chart, 'README.md'), 'utf8');
  const values = parseAllDocuments(readFileSync(join(chart, 'values.yaml'), 'utf8'))[0]?.toJS();
  const found: string[] = [];
  const collect = (path: string, value: Manifest) => {
    for (const [name, child] of Object.entries(value)) {
      if (/secret$/i.test(name)) found.push(`${path}${name}`);
      else if (typeof child === 'object' && child !== null) collect(`${path}${name}.`, child);
    }
  };
  collect('', values);
  const [, table = ''] = readme.split('\n## Secrets\n');
  const rows = [...table.matchAll(/^\| `([\w.]+)` \|/gm)].map(([, name]) => name);
  t.deepEqual(rows.filter((name) => /secret$/i.test(name ?? '')).sort(), found.sort());
  // Every name exists in the values.
  for (const [, name = ''] of readme.matchAll(/`((?:worker|controlPlane)\.[\w.]+)`/g)) {
    const value = name.split('.').reduce((all: Manifest, key) => all?.[key], values);
    t.not(value, undefined, name);
  }
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
      // The kubelet connects itself: no process is started for it.
      const { port } = probe.httpGet ?? probe.tcpSocket;
      t.true(names.has(port), `${port} is a port`);
    }
  }
  for (const constraint of spec.topologySpreadConstraints ?? [])
    t.truthy(constraint.labelSelector.matchLabels);
}

/** The commands in the notes name existing objects. */
function checkNotes(
  t: ExecutionContext,
  notes: string,
  manifests: readonly Manifest[],
  values: Manifest,
): void {
  const namesOf = (wanted: string) =>
    manifests.filter(({ kind }) => kind === wanted).map(({ metadata }) => metadata.name);
  const deployments = [...notes.matchAll(/deployment\/([\w-]+)/g)].map(([, name]) => name);
  t.true(deployments.length >= 2);
  t.deepEqual(
    deployments.filter((name) => !namesOf('Deployment').includes(name)),
    [],
  );
  const { peersTokenSecret, adminTokensSecret, enabled } = values.controlPlane ?? {};
  const existing = [...namesOf('Secret'), peersTokenSecret];
  for (const [, name] of notes.matchAll(/get secret ([\w-]+)/g))
    t.true(existing.includes(name), name);
  t.is(notes.includes('control-plane'), enabled !== false);
  t.is(notes.includes('--token-file'), adminTokensSecret !== undefined, 'needs a write token');
}

function findPod(output: string, deployment: string): Manifest {
  const found = readManifests(output).find(
    ({ kind, metadata }) => kind === 'Deployment' && metadata.name === deployment,
  );
  return found.spec.template;
}

/** The names of Secrets by their mount path in the pod. */
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
