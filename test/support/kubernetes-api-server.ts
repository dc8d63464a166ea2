// A real API server of Kubernetes for a test, with its own etcd, and users with tokens.
import { spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { endWithUs, hasEnded, kill } from './end-with-us.ts';
import { startEtcdServer } from './etcd-server.ts';
import { freePort } from './free-port.ts';
import { findTool } from './installed-tool.ts';
import type { Owner } from './owner.ts';

export interface KubernetesApiServer {
  readonly port: number;
  /** The CA of its certificate for 127.0.0.1, in PEM. */
  readonly ca: string;
  /** One call as an administrator; rejects with the server's message, even if that is only a warning. */
  call(method: 'GET' | 'POST' | 'PATCH', path: string, body?: unknown): Promise<unknown>;
}

const startDeadlineMs = 180_000;
/** An administrator's token. */
export const adminToken = 'admin-of-the-test';

/** Each user's token is the user's name. */
export async function startKubernetesApiServer(
  t: Owner,
  users: readonly string[],
): Promise<KubernetesApiServer> {
  const etcd = await startEtcdServer(t);
  const folder = await mkdtemp(join(tmpdir(), 'ratelane-kubernetes-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const tokens = [
    `${adminToken},admin,0,system:masters`,
    ...users.map((name) => `${name},${name},1`),
  ];
  writeFileSync(join(folder, 'tokens.csv'), `${tokens.join('\n')}\n`);
  const { privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
  const key = join(folder, 'service-accounts.key');
  writeFileSync(key, privateKey);
  const port = await freePort();
  const program = findTool('kube-apiserver');
  if (program === undefined) throw new Error('there is no kube-apiserver');
  const child = spawn(
    program,
    [
      ...['--etcd-servers', `http://127.0.0.1:${etcd.port}`, '--cert-dir', folder],
      ...['--bind-address', '127.0.0.1', '--secure-port', String(port)],
      ...['--token-auth-file', join(folder, 'tokens.csv'), '--authorization-mode', 'RBAC'],
      ...['--service-account-issuer', 'https://kubernetes.test'],
      ...['--service-account-key-file', key, '--service-account-signing-key-file', key],
      ...['--service-cluster-ip-range', '10.0.0.0/24,fd00:10::/112'],
      ...['--disable-admission-plugins', 'ServiceAccount'],
    ],
    { stdio: 'ignore' },
  );
  await once(child, 'spawn');
  endWithUs(child);
  t.teardown(() => kill(child));
  const call = (method: string, path: string, body?: unknown): Promise<unknown> =>
    callAsAdmin(port, readFileSync(join(folder, 'apiserver.crt'), 'utf8'), method, path, body);
  const giveUpAt = Date.now() + startDeadlineMs;
  for (;;) {
    try {
      // The roles that it creates itself are the last step of its start.
      await call('GET', '/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin');
      await call('GET', '/readyz');
      break;
    } catch (error) {
      if (hasEnded(child) || Date.now() > giveUpAt) throw error;
      await sleep(100);
    }
  }
  return { port, ca: readFileSync(join(folder, 'apiserver.crt'), 'utf8'), call };
}

function callAsAdmin(
  port: number,
  ca: string,
  method: string,
  path: string,
  body: unknown,
): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const call = request(`https://127.0.0.1:${port}${path}`, {
    ...{ method, ca, agent: false, signal: AbortSignal.timeout(startDeadlineMs) },
    headers: {
      authorization: `Bearer ${adminToken}`,
      'content-type': `application/${method === 'PATCH' ? 'merge-patch+' : ''}json`,
    },
  });
  call.on('error', reject);
  call.on('response', async (response) => {
    const text = Buffer.concat(await response.toArray()).toString();
    const { warning } = response.headers;
    if ((response.statusCode ?? 500) >= 300) reject(new Error(text));
    else if (warning !== undefined) reject(new Error(warning));
    else resolve(text.startsWith('{') ? JSON.parse(text) : text);
  });
  call.end(body === undefined ? undefined : JSON.stringify(body));
  return promise;
}
