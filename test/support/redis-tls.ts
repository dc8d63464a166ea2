// Certificate files for a Redis and its clients.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestCertificate } from '../contract/grpc-transport-certificates.ts';
import type { RedisServer } from './redis-server.ts';

export type RedisTlsFiles = Awaited<ReturnType<typeof writeRedisTls>>;

export interface RedisTlsMaterial {
  readonly caCertificate: string;
  readonly server: TestCertificate;
  readonly client: TestCertificate;
}

export async function writeRedisTls(material: RedisTlsMaterial) {
  const folder = await mkdtemp(join(tmpdir(), 'ratelane-redis-tls-'));
  const clientFiles = toPaths(folder, 'client');
  let written = 0;

  async function write(
    to: ReturnType<typeof toPaths>,
    caCertificate: string,
    { cert, key }: TestCertificate,
  ): Promise<void> {
    await writeFile(to.ca, caCertificate);
    await writeFile(to.cert, cert);
    await writeFile(to.key, key);
  }

  /** With unique names: a server keeps the paths. */
  async function writeServer(
    caCertificate: string,
    certificate: TestCertificate,
  ): Promise<string[][]> {
    const paths = toPaths(folder, `server${written++}`);
    await write(paths, caCertificate, certificate);
    return [
      ['tls-cert-file', paths.cert],
      ['tls-key-file', paths.key],
      ['tls-ca-cert-file', paths.ca],
    ];
  }

  await write(clientFiles, material.caCertificate, material.client);
  const settings = await writeServer(material.caCertificate, material.server);
  return {
    /** Arguments of a server that requires client certificates of its CA. */
    serverArgs: settings.flatMap(([name, path = '']) => [`--${name}`, path]),
    /** For clients. */
    clientFiles,
    /** Replaces the clients' files. */
    writeClient: (caCertificate: string, certificate: TestCertificate) =>
      write(clientFiles, caCertificate, certificate),
    /** Makes a running server use other files for new connections. */
    async reconfigure(server: RedisServer, caCertificate: string, certificate: TestCertificate) {
      const changed = await writeServer(caCertificate, certificate);
      await server.command('CONFIG', 'SET', ...changed.flat());
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

function toPaths(folder: string, name: string) {
  const path = (ending: string) => join(folder, `${name}.${ending}`);
  return { ca: path('ca.pem'), cert: path('pem'), key: path('key') };
}
