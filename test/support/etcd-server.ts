// A real etcd with one member for a test, on free loopback ports; with TLS if wanted.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { endWithUs, hasEnded, kill } from './end-with-us.ts';
import { freePort } from './free-port.ts';
import { findTool } from './installed-tool.ts';
import type { Owner } from './owner.ts';

export type EtcdServer = Awaited<ReturnType<typeof startEtcdServer>>;

const startDeadlineMs = 60_000;

/** `tls`: paths; clients need a certificate of the CA. */
export async function startEtcdServer(
  t: Owner,
  tls?: { readonly ca: string; readonly cert: string; readonly key: string },
) {
  const folder = await mkdtemp(join(tmpdir(), 'ratelane-etcd-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const [port, peerPort, metricsPort] = [await freePort(), await freePort(), await freePort()];
  const clientUrl = `${tls ? 'https' : 'http'}://127.0.0.1:${port}`;
  const peerUrl = `http://127.0.0.1:${peerPort}`;
  const metricsUrl = `http://127.0.0.1:${metricsPort}`;
  const args = [
    ...['--data-dir', join(folder, 'data'), '--log-level', 'error', '--unsafe-no-fsync'],
    ...['--listen-client-urls', clientUrl, '--advertise-client-urls', clientUrl],
    ...['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl],
    ...['--initial-cluster', `default=${peerUrl}`, '--listen-metrics-urls', metricsUrl],
    ...(tls ? ['--cert-file', tls.cert, '--key-file', tls.key, '--trusted-ca-file', tls.ca] : []),
    ...(tls ? ['--client-cert-auth'] : []),
  ];
  const program = findTool('etcd');
  if (program === undefined) throw new Error('there is no etcd');
  const child = spawn(program, args, { stdio: 'ignore' });
  await once(child, 'spawn');
  endWithUs(child);
  t.teardown(() => kill(child));
  const giveUpAt = Date.now() + startDeadlineMs;
  while (!(await isHealthy(`${metricsUrl}/health`))) {
    if (hasEnded(child) || Date.now() > giveUpAt) throw new Error('etcd does not start');
    await sleep(20);
  }
  return {
    port,
    /** One call of the JSON gateway, which is without TLS; rejects with etcd's message. */
    async call(path: string, body: unknown) {
      const response = await fetch(`${clientUrl}${path}`, {
        method: 'POST',
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(startDeadlineMs),
      });
      if (!response.ok) throw new Error(await response.text());
      return response.json();
    },
  };
}

async function isHealthy(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(1_000) });
    await response.text();
    return response.ok;
  } catch {
    return false;
  }
}
