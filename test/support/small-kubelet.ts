// A node of a Kubernetes cluster for a test: it runs the pods of a Helm test, with one container each, as processes of
// this machine, reports how they ended, and serves their logs as the kubelet does.
import { createServer } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { serverCertificate } from '../contract/grpc-transport-certificates.ts';
import type { KubernetesApiServer } from './kubernetes-api-server.ts';
import { listenFor } from './listen.ts';
import type { Owner } from './owner.ts';
import type { Manifest } from './rendered-chart.ts';

export interface ContainerEnd {
  readonly code: number | string;
  readonly output: string;
}

const nodeName = 'this-machine';
const checkMs = 100;

/** Runs the pods of a namespace until the test is over; `run` runs a container to its end. */
export async function startSmallKubelet(
  t: Owner,
  api: Pick<KubernetesApiServer, 'call'>,
  namespace: string,
  run: (container: Manifest) => Promise<ContainerEnd>,
): Promise<void> {
  const logs = new Map<string, string>();
  const server = createServer(serverCertificate, ({ url = '' }, response) => {
    const { pathname } = new URL(url, 'https://kubelet');
    response.end(logs.get(pathname) ?? '');
  });
  const port = await listenFor(t, server);
  await api.call('POST', '/api/v1/nodes', { metadata: { name: nodeName } });
  await api.call('PATCH', `/api/v1/nodes/${nodeName}/status`, {
    status: {
      addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
      daemonEndpoints: { kubeletEndpoint: { Port: port } },
    },
  });
  const pods = `/api/v1/namespaces/${namespace}/pods`;
  let isOver = false;

  async function adopt({ metadata: { name }, spec }: Manifest): Promise<void> {
    const target = { apiVersion: 'v1', kind: 'Node', name: nodeName };
    await api.call('POST', `${pods}/${name}/binding`, { metadata: { name }, target });
    const [container] = spec.containers;
    const { code, output } = await run(container);
    logs.set(`/containerLogs/${namespace}/${name}/${container.name}`, output);
    const phase = code === 0 ? 'Succeeded' : 'Failed';
    await api.call('PATCH', `${pods}/${name}/status`, { status: { phase } });
  }

  async function work(): Promise<void> {
    while (!isOver) {
      const { items } = (await api.call('GET', pods)) as { readonly items: Manifest[] };
      for (const pod of items) if (!pod.spec.nodeName) await adopt(pod);
      await sleep(checkMs);
    }
  }

  const working = work();
  t.teardown(async () => {
    isOver = true;
    await working;
  });
}
