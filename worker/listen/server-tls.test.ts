import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import {
  renewedCertificate,
  secondClientCertificate,
  serverCertificate,
} from '../../test/contract/grpc-transport-certificates.ts';
import { eventually } from '../../test/support/eventually.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createTemporaryFolder } from '../../test/support/temporary-folder.ts';
import { createRegistry } from '../metrics/registry.ts';
import { describeCertificates, readServerTls } from './server-tls.ts';

test('loads of certificates are counted, and their expiry and a refusal of new ones are reported', async (t) => {
  const folder = createTemporaryFolder(t);
  const files = { certFile: join(folder, 'cert.pem'), keyFile: join(folder, 'key.pem') };
  /** Replaces the file atomically: the files are read all the time. */
  const replaceFile = async (path: string, text: string) => {
    await writeFile(`${path}.new`, text);
    await rename(`${path}.new`, path);
  };
  const clock = createManualClock();
  const log = createRecordedLog();
  const metrics = createRegistry({ runtimeNamesMax: 10, log });
  const counts = () => Object.fromEntries(metrics.snapshot());
  const status = () => describeCertificates(metrics.snapshot());
  const inUse = 'certificates of the gRPC port: valid until 2126-10-28T03:14:44.000Z';
  const refused = `${inUse}; the files have changed and cannot be used, see the log`;
  const changeInto = async (attempts: number) => {
    await eventually(`${attempts} loads`, () => {
      clock.advance(1_000);
      return counts()['certs.load_attempts'] === attempts;
    });
  };

  await replaceFile(files.certFile, serverCertificate.cert);
  await replaceFile(files.keyFile, serverCertificate.key);
  const tls = await readServerTls(files, 'gRPC', { clock, log, metrics });
  t.like(counts(), {
    'certs.load_attempts': 1,
    'certs.num_values': 2,
    'ratelimit.certificate.grpc.not_after_timestamp_seconds':
      Date.UTC(2126, 9, 28, 3, 14, 44) / 1000,
    'ratelimit.certificate.grpc.renewal_refused': 0,
  });
  t.deepEqual(status(), [inUse]);

  let used = 0;
  const watch = tls.watch(() => {
    used++;
    if (used === 2) throw new Error('the server cannot use it');
  });
  t.teardown(() => watch.close());
  // The key is that of the former certificate until it is replaced as well.
  await replaceFile(files.certFile, renewedCertificate.cert);
  await changeInto(2);
  t.is(counts()['certs.load_failures'], 1, 'a certificate without its key');
  t.is(counts()['ratelimit.certificate.grpc.renewal_refused'], 1);
  t.deepEqual(status(), [refused]);
  await replaceFile(files.keyFile, renewedCertificate.key);
  await changeInto(3);
  t.is(counts()['certs.load_failures'], 1);
  t.deepEqual(status(), [inUse]);
  await replaceFile(files.certFile, `${renewedCertificate.cert}\n`);
  await changeInto(4);
  t.is(counts()['certs.load_failures'], 2, 'one that the server cannot use');
  t.deepEqual(status(), [refused]);
  await replaceFile(files.certFile, secondClientCertificate.cert);
  await changeInto(5);
  await replaceFile(files.keyFile, secondClientCertificate.key);
  await changeInto(6);
  t.deepEqual(status(), ['certificates of the gRPC port: valid until 2126-10-05T21:34:09.000Z']);
});
