// A release of the Helm chart on this machine: its manifests, and its programs as processes with the settings, files
// and probes of their pods. Features of a cluster are missing: its names become addresses of this machine.
import { mkdirSync, writeFileSync } from 'node:fs';
import { get as getHttp } from 'node:http';
import { get as getHttps } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { createControlPlaneProcess } from './control-plane-process.ts';
import { freePort } from './free-port.ts';
import {
  type Manifest,
  readManifests,
  readNotes,
  readVariable,
  renderChart,
  type Secrets,
} from './rendered-chart.ts';
import { createTemporaryFolder } from './temporary-folder.ts';
import { spawnWorkerProcess } from './worker-process.ts';

const probeMs = 5_000;

export interface ReleaseValues {
  readonly fullnameOverride?: string;
  readonly worker?: Manifest;
  readonly controlPlane?: Manifest;
}

export interface ChartRelease {
  /** The prefix of its objects' names. */
  readonly name: string;
  readonly ports: Readonly<Record<'http' | 'grpc' | 'debug' | 'metrics' | 'xds' | 'admin', number>>;
  /** Contains its files, below the paths that they have in a pod. */
  readonly folder: string;
  readonly notes: string;
  readonly manifests: readonly Manifest[];
  find(kind: string, name: string): Manifest;
  /** The environment that a container is started with. */
  environmentOf(container: Manifest): Record<string, string>;
  /** Replaces paths and addresses of the cluster in a text with those used here. */
  install(text: string): string;
  /** Sends a probe once, as the kubelet does. */
  isPassed(
    deployment: string,
    probe: 'startupProbe' | 'livenessProbe' | 'readinessProbe',
  ): Promise<boolean>;
}

/** `existing` are the Secrets that the values name. */
export async function createChartRelease(
  t: ExecutionContext,
  values: ReleaseValues,
  existing: Secrets = {},
): Promise<ChartRelease> {
  const name = values.fullnameOverride ?? 'sample-ratelane';
  const folder = createTemporaryFolder(t);
  const [http, grpc, debug, metrics, xds, admin] = await Promise.all(
    Array.from({ length: 6 }, freePort),
  );
  const ports = { http, grpc, debug, metrics, xds, admin } as ChartRelease['ports'];
  const settings = {
    PORT: http,
    GRPC_PORT: grpc,
    DEBUG_PORT: debug,
    PULLMETRICS_ADDR: `:${metrics}`,
    ...values.worker?.settings,
  };
  const { code, output } = await renderChart(t, {
    ...values,
    worker: { ...values.worker, settings },
  });
  t.is(code, 0, output);
  const manifests = readManifests(output);
  const find = (kind: string, wanted: string) =>
    manifests.find((each) => each.kind === kind && each.metadata.name === wanted);
  const secrets: Record<string, Readonly<Record<string, string>>> = { ...existing };
  for (const { kind, metadata, data } of manifests) {
    if (kind !== 'Secret') continue;
    const decoded = Object.entries(data).map(([key, text]) => [
      key,
      Buffer.from(String(text), 'base64').toString(),
    ]);
    secrets[metadata.name] = Object.fromEntries(decoded);
  }

  const addresses: readonly (readonly [string, string])[] = [
    [`${name}-worker.limits.svc:${grpc}`, `localhost:${grpc}`],
    [`${name}-control-plane-peers.limits.svc:18001`, `localhost:${admin}`],
    [`${name}-control-plane:18000`, `localhost:${xds}`],
    [`${name}-control-plane.limits.svc:18000`, `127.0.0.1:${xds}`],
  ];
  const paths = new Set<string>();
  const install = (text: string) => {
    const here = addresses.reduce((all, [there, address]) => all.replaceAll(there, address), text);
    // All at once: a path may be a prefix of another, and a replacement may contain one.
    const pattern = [...paths].sort((a, b) => b.length - a.length).join('|');
    return here.replaceAll(RegExp(pattern, 'g'), (path) => join(folder, path));
  };
  for (const { kind, spec } of manifests) {
    if (kind === 'Deployment') layFiles(spec.template.spec);
    if (kind === 'Pod') layFiles(spec);
  }

  function layFiles({ containers, volumes }: Manifest): void {
    for (const { mountPath, name: volumeName } of containers.flatMap(
      (each: Manifest) => each.volumeMounts ?? [],
    )) {
      const { secret, configMap } = volumes.find((each: Manifest) => each.name === volumeName);
      const files = secret ? secrets[secret.secretName] : find('ConfigMap', configMap?.name)?.data;
      if (mountPath === '/tmp') continue;
      paths.add(mountPath);
      mkdirSync(join(folder, mountPath), { recursive: true });
      for (const [file, text] of Object.entries(files ?? {}))
        writeFileSync(join(folder, mountPath, file), String(text));
    }
  }

  return {
    name,
    ports,
    folder,
    notes: readNotes(output),
    manifests,
    find,
    install,
    environmentOf(container) {
      const environment: Record<string, string> = {};
      for (const { secretRef } of container.envFrom ?? [])
        Object.assign(environment, secrets[secretRef?.name]);
      for (const row of container.env ?? [])
        environment[row.name] = install(readVariable(row, secrets));
      // Each machine has one of these ports, and the pods of a release share this machine.
      if ('RATELANE_STATE_DIR' in environment) {
        environment['RATELANE_ADMIN_ADDRESS'] = `0.0.0.0:${admin}`;
        environment['RATELANE_XDS_ADDRESS'] = `0.0.0.0:${xds}`;
        environment['RATELANE_ADMIN_URL'] ??= `http://127.0.0.1:${admin}`;
        // The name of the peers would also match other programs here, and there is no API server.
        delete environment['RATELANE_PEERS'];
        delete environment['RATELANE_RECORD'];
      }
      return environment;
    },
    isPassed(deployment, probe) {
      const [container] = find('Deployment', `${name}-${deployment}`).spec.template.spec.containers;
      const { httpGet, tcpSocket } = container[probe];
      const port = ports[(httpGet ?? tcpSocket).port as keyof typeof ports];
      return httpGet ? getsAnswer(port, httpGet) : isOpen(port);
    },
  };
}

/** A control plane and a worker as their pods would run, ended after the test; returns their output. */
export async function startPrograms(
  t: ExecutionContext,
  release: ChartRelease,
): Promise<() => string> {
  const [plane, worker] = ['control-plane', 'worker'].map((program) => {
    const { spec } = release.find('Deployment', `${release.name}-${program}`).spec.template;
    return release.environmentOf(spec.containers[0]);
  });
  const server = await createControlPlaneProcess(t, {
    flags: [],
    addresses: [],
    adminPort: release.ports.admin,
    stateDirectory: join(release.folder, 'state'),
    ...(plane && { env: plane }),
  });
  server.begin();
  const process = await spawnWorkerProcess(t, {
    ports: release.ports,
    // The fixture's own settings are not those of a pod.
    env: { DISABLE_STATS: 'false', HOST: '', GRPC_HOST: '', RUNTIME_ROOT: '', ...worker },
  });
  return () => `${server.output()}${process.output()}`;
}

/** The kubelet checks no certificate, and accepts redirects as success. */
function getsAnswer(port: number, { path, scheme = 'HTTP' }: Manifest): Promise<boolean> {
  const get = scheme === 'HTTPS' ? getHttps : getHttp;
  return new Promise((resolve) => {
    const options = { host: '127.0.0.1', port, path, timeout: probeMs, rejectUnauthorized: false };
    const request = get(options, (response) => {
      response.resume();
      const { statusCode = 0 } = response;
      resolve(statusCode >= 200 && statusCode < 400);
    });
    request.once('timeout', () => request.destroy(new Error('no answer')));
    request.once('error', () => resolve(false));
  });
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, timeout: probeMs });
    const end = (result: boolean) => () => {
      socket.destroy();
      resolve(result);
    };
    socket.once('connect', end(true)).once('timeout', end(false)).once('error', end(false));
  });
}
