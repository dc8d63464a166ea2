import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import {
  caCertificate,
  renewedCertificate,
  serverCertificate,
} from '../test/contract/grpc-transport-certificates.ts';
import { eventually } from '../test/support/eventually.ts';
import { createManualClock } from '../test/support/manual-clock.ts';
import { createTemporaryFolder } from '../test/support/temporary-folder.ts';
import { findExpiryMs, readTlsFiles, type TlsMaterial, TlsWatch, withTrustedCas } from './tls.ts';

/** Valid for 30 days after it was made. Its key was discarded. */
const shortCertificate = `-----BEGIN CERTIFICATE-----
MIIBdDCCARugAwIBAgIUNTVYEKWG5U3bu46cfgP04vzJ1xAwCgYIKoZIzj0EAwIw
EDEOMAwGA1UEAwwFc2hvcnQwHhcNMjYxMTI1MTcyNzMwWhcNMjYxMjI1MTcyNzMw
WjAQMQ4wDAYDVQQDDAVzaG9ydDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABCH4
dTOFWoR0wrPMY3vT/hd8edgBk8JW3r6y6BruJ58c16kLbGD29dQ+xjptSzqQRvKE
61e2M75TB3lR7H8HFi2jUzBRMB0GA1UdDgQWBBQF6zmqRkpQEW65DAYpbR2zjXrm
mDAfBgNVHSMEGDAWgBQF6zmqRkpQEW65DAYpbR2zjXrmmDAPBgNVHRMBAf8EBTAD
AQH/MAoGCCqGSM49BAMCA0cAMEQCIHfin7e+Nl1ecV042/4dm6H5z3X18VKe03ey
TBGqNnlLAiA+MBTpIQIgeYz5I0ETR7HoD4jm/yb7AJ+LGe46+0lgYQ==
-----END CERTIFICATE-----
`;

async function setUp(t: ExecutionContext) {
  const folder = createTemporaryFolder(t);
  const files = {
    ca: join(folder, 'ca.pem'),
    cert: join(folder, 'cert.pem'),
    key: join(folder, 'key.pem'),
  };
  const write = (name: keyof typeof files, text: string) => writeFileSync(files[name], text);
  write('ca', caCertificate);
  write('cert', serverCertificate.cert);
  write('key', serverCertificate.key);
  const problem = async () => {
    const reading = await readTlsFiles(files);
    return reading.ok ? '' : reading.problem.replaceAll(`${folder}/`, '');
  };
  return { folder, files, write, problem };
}

test('files that fit together are read', async (t) => {
  const { files } = await setUp(t);
  const reading = await readTlsFiles(files);
  t.deepEqual(reading, {
    ok: true,
    material: {
      ca: Buffer.from(caCertificate),
      cert: Buffer.from(serverCertificate.cert),
      key: Buffer.from(serverCertificate.key),
    },
  });
});

test('without paths nothing is read', async (t) => {
  const reading = await readTlsFiles({ ca: undefined, cert: undefined, key: undefined });
  t.deepEqual(reading, { ok: true, material: { ca: undefined, cert: undefined, key: undefined } });
});

test('a file that is missing is named', async (t) => {
  const { files, problem } = await setUp(t);
  rmSync(files.key);
  t.regex(await problem(), /^key\.pem cannot be read \(ENOENT/);
});

test('a key that belongs to another certificate is refused, naming both files', async (t) => {
  const { write, problem } = await setUp(t);
  write('key', renewedCertificate.key);
  t.regex(await problem(), /^cert\.pem and key\.pem cannot be used \(.*mismatch/);
});

test('a file that is not a certificate is refused without showing its content', async (t) => {
  const { write, problem } = await setUp(t);
  for (const text of [
    'hunter2',
    '-----BEGIN CERTIFICATE-----\nhunter2\n-----END CERTIFICATE-----\n',
    serverCertificate.key,
  ]) {
    write('ca', text);
    t.regex(await problem(), /^ca\.pem is not a certificate \((?!.*hunter2)/);
  }
  write('ca', caCertificate);
  write('key', 'hunter2');
  t.regex(await problem(), /^cert\.pem and key\.pem cannot be used \((?!.*hunter2)/);
});

test('a file too large for a certificate is refused', async (t) => {
  const { write, problem } = await setUp(t);
  write('ca', caCertificate.padEnd(5_000_000));
  t.is(await problem(), 'ca.pem is too large for a certificate or a key');
  const endless = await readTlsFiles({ ca: '/dev/zero', cert: undefined, key: undefined });
  t.is(endless.ok ? '' : endless.problem, '/dev/zero is too large for a certificate or a key');
});

test('a CA is added to those that the host trusts', (t) => {
  const all = withTrustedCas(Buffer.from(caCertificate)).toString();
  t.true(all.includes(caCertificate));
  t.true(all.split('-----BEGIN CERTIFICATE-----').length > 10);
  t.notThrows(() => createSecureContext({ ca: all }));
  t.false(withTrustedCas(undefined).toString().includes(caCertificate));
});

/** A watch of valid files that reports each problem, and a function that makes it poll. */
async function startWatch(t: ExecutionContext, onChange: (material: TlsMaterial) => void) {
  const { files, write } = await setUp(t);
  const first = await readTlsFiles(files);
  if (!first.ok) throw new Error(first.problem);
  const clock = createManualClock();
  const problems: string[] = [];
  const watch = new TlsWatch({
    files,
    material: first.material,
    clock,
    intervalMs: 1000,
    onChange,
    onProblem: (problem) => problems.push(problem),
  });
  t.teardown(() => watch.close());
  const poll = async () => {
    await eventually('the watch waits', () => clock.pending === 1);
    clock.advance(1000);
    await eventually('the watch has polled', () => clock.pending === 1);
  };
  return { write, watch, clock, problems, poll };
}

test('a watch reports a new pair once, and not half of a pair', async (t) => {
  const changes: TlsMaterial[] = [];
  const { write, watch, clock, problems, poll } = await startWatch(t, (material) =>
    changes.push(material),
  );
  await poll();
  t.deepEqual([changes.length, problems.length], [0, 0]);
  write('cert', renewedCertificate.cert);
  await poll();
  await poll();
  t.deepEqual([changes.length, problems.length], [0, 1]);
  t.is(watch.problem, problems[0]);
  write('key', renewedCertificate.key);
  await poll();
  await poll();
  t.is(changes.length, 1);
  t.is(changes[0]?.key?.toString(), renewedCertificate.key);
  t.is(problems.length, 1);
  t.is(watch.problem, undefined);

  watch.close();
  watch.close();
  t.is(clock.pending, 0);
});

test('restored files end the problem, and unusable files are a problem', async (t) => {
  const { write, watch, problems, poll } = await startWatch(t, () => {
    throw new Error('the server cannot use it');
  });
  write('cert', renewedCertificate.cert);
  await poll();
  t.regex(watch.problem ?? '', /mismatch/);
  write('cert', serverCertificate.cert);
  await poll();
  t.is(watch.problem, undefined);
  write('cert', `${serverCertificate.cert}\n`);
  await poll();
  await poll();
  t.is(watch.problem, 'the server cannot use it');
  t.is(problems.length, 2);
  t.is(watch.expiryMs, Date.UTC(2126, 9, 28, 3, 14, 44));
});

test('a chain expires with the first of its certificates', (t) => {
  const { cert } = serverCertificate;
  const chain = (text: string) =>
    findExpiryMs({ cert: Buffer.from(text), key: undefined, ca: undefined });
  t.is(chain(`${shortCertificate}${cert}`), chain(shortCertificate));
  t.is(chain(`${cert}${shortCertificate}`), chain(shortCertificate));
  t.true((chain(shortCertificate) ?? 0) < (chain(cert) ?? 0));
  t.is(chain(''), undefined);
});

test('a watch that is closed while it reads reports nothing', async (t) => {
  const { files, write } = await setUp(t);
  const clock = createManualClock();
  const material = { ca: undefined, cert: undefined, key: undefined };
  const fail = () => t.fail('it was called');
  const deps = { files, material, clock, intervalMs: 1000, onChange: fail, onProblem: fail };
  const watch = new TlsWatch(deps);
  write('ca', caCertificate);
  clock.advance(1000);
  watch.close();
  await readTlsFiles(files);
  await new Promise((resolve) => setImmediate(resolve));
  t.is(clock.pending, 0);
});
