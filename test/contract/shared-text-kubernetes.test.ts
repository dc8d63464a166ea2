// The contracts of shared texts and of the record in them for a ConfigMap of Kubernetes, and behaviour that only
// Kubernetes has.
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { engineTimeoutMs } from '../../control-plane/server/record/engines/engine-text.ts';
import { KubernetesSharedText } from '../../control-plane/server/record/engines/kubernetes-shared-text.ts';
import { testWith } from '../support/installed-tool.ts';
import {
  adminToken,
  type KubernetesApiServer,
  startKubernetesApiServer,
} from '../support/kubernetes-api-server.ts';
import { ownedByFile } from '../support/owner.ts';
import { readManifests, renderChart } from '../support/rendered-chart.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { testEngine } from './engine-text.ts';

const owner = ownedByFile(test);
const namespace = 'rate-limit';
/** The name of the account of the chart's control planes in the API server. */
const planeAccount = 'system:serviceaccount:limits:sample-ratelane-control-plane';
let server: KubernetesApiServer;
let proxy: TcpProxy;

test.before(async () => {
  server = await startKubernetesApiServer(owner, ['writer', 'reader', planeAccount]);
  proxy = await startTcpProxy(owner, server.port);
  await server.call('POST', '/api/v1/namespaces', { metadata: { name: namespace } });
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
  for (const [name, verbs] of [
    ['writer', ['get', 'create', 'patch']],
    ['reader', ['get']],
  ] as const) {
    const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs }];
    await server.call('POST', `${rbac}/roles`, { metadata: { name }, rules });
    const apiGroup = 'rbac.authorization.k8s.io';
    await server.call('POST', `${rbac}/rolebindings`, {
      metadata: { name },
      roleRef: { apiGroup, kind: 'Role', name },
      subjects: [{ apiGroup, kind: 'User', name }],
    });
  }
});

/** The folder of a pod's service account. */
function writeCredentials(t: ExecutionContext, token: string): string {
  const folder = createTemporaryFolder(t);
  writeFileSync(join(folder, 'ca.crt'), server.ca);
  writeFileSync(join(folder, 'token'), `${token}\n`);
  return folder;
}

function openText(
  name: string,
  credentials: string,
  timeoutMs = engineTimeoutMs,
  space = namespace,
): KubernetesSharedText {
  const address = { host: '127.0.0.1', port: proxy.port };
  const target = { kind: 'kubernetes', namespace: space, name } as const;
  return new KubernetesSharedText(target, { address, credentials }, timeoutMs);
}

testEngine(
  test,
  'kubernetes',
  () => ({ server, proxy }),
  (name, t) => {
    const writer = writeCredentials(t, 'writer');
    return {
      open: () => openText(name, writer),
      openFor: (timeoutMs) => openText(name, writer, timeoutMs),
      openReadOnly: () => openText(name, writeCredentials(t, 'reader')),
      openWithSecret: (secret) => openText(name, writeCredentials(t, secret)),
    };
  },
);

test.serial('a renewed token is used from the next call on', async (t) => {
  const credentials = writeCredentials(t, 'expired');
  const text = openText(randomUUID(), credentials);
  await t.throwsAsync(text.read(), { message: 'HTTP 401: Unauthorized' });
  writeFileSync(join(credentials, 'token'), 'writer');
  t.is((await text.swap(undefined, 'first')).kind, 'written');
});

test.serial('a ConfigMap that was created beforehand keeps its other content', async (t) => {
  const name = randomUUID();
  const maps = `/api/v1/namespaces/${namespace}/configmaps`;
  await server.call('POST', maps, { metadata: { name, labels: { of: 'us' } }, data: { a: 'b' } });
  const text = openText(name, writeCredentials(t, 'writer'));
  t.is(await text.read(), undefined);
  t.is((await text.swap(undefined, 'first')).kind, 'written');
  t.like(await server.call('GET', `${maps}/${name}`), {
    metadata: { labels: { of: 'us' } },
    data: { a: 'b', record: 'first' },
  });
});

test.serial('a missing namespace is named', async (t) => {
  for (const [token, message] of [
    ['writer', /^HTTP 403: .*in the namespace "nowhere"/],
    [adminToken, /^HTTP 404: namespaces "nowhere" not found/],
  ] as const) {
    const text = openText('a', writeCredentials(t, token), engineTimeoutMs, 'nowhere');
    await t.throwsAsync(text.swap(undefined, 'first'), { message });
  }
});

testWith(test.serial, 'chart-check')(
  'what the chart lets control planes do is enough for their record, and for no other ConfigMap',
  async (t) => {
    await server.call('POST', '/api/v1/namespaces', { metadata: { name: 'limits' } });
    const { code, output } = await renderChart(t, {});
    t.is(code, 0, output);
    for (const manifest of readManifests(output)) {
      const { apiVersion, kind } = manifest;
      if (!['Role', 'RoleBinding'].includes(kind)) continue;
      const path = `/apis/${apiVersion}/namespaces/limits/${kind.toLowerCase()}s`;
      await server.call('POST', path, manifest);
    }
    const plane = writeCredentials(t, planeAccount);
    const text = openText('sample-ratelane-record', plane, engineTimeoutMs, 'limits');
    t.is(await text.read(), undefined);
    const first = await text.swap(undefined, 'first');
    t.is(first.kind, 'written');
    const version = first.kind === 'written' ? first.version : '';
    t.is((await text.swap(version, 'second')).kind, 'written');
    await text.setAside((await text.read())?.version ?? '');
    t.is((await text.swap(undefined, 'third')).kind, 'written');
    const other = openText('of-others', plane, engineTimeoutMs, 'limits');
    await t.throwsAsync(other.read(), { message: /^HTTP 403: .*"of-others" is forbidden/ });
  },
);
