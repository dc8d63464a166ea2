import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { readTlsFiles } from '../shared/tls.ts';
import {
  clientCertificate,
  secondClientCertificate,
} from '../test/contract/grpc-transport-certificates.ts';
import { eventually } from '../test/support/eventually.ts';
import { createManualClock } from '../test/support/manual-clock.ts';
import { createRecordedLog } from '../test/support/recorded-log.ts';
import { createTemporaryFolder } from '../test/support/temporary-folder.ts';
import { describeExpiries, measureExpiry } from './client-tls.ts';
import { createRegistry } from './metrics/registry.ts';

test('the expiry of a client certificate is reported, and that of a renewed one within a minute', async (t) => {
  const folder = createTemporaryFolder(t);
  const files = { ca: undefined, cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
  const clock = createManualClock();
  const metrics = createRegistry({ runtimeNamesMax: 1, log: createRecordedLog() });
  const status = () => describeExpiries(metrics.snapshot());
  const first = ['client certificate for the store: valid until 2126-10-28T03:14:44.000Z'];
  const second = ['client certificate for the store: valid until 2126-10-05T21:34:09.000Z'];
  await writeFile(files.cert, clientCertificate.cert);
  await writeFile(files.key, clientCertificate.key);
  measureExpiry('store', files, { metrics, clock });
  t.deepEqual(status(), [], 'not read yet');
  await eventually('the first', () => status().length > 0);
  t.deepEqual(status(), first);

  await writeFile(files.cert, secondClientCertificate.cert);
  clock.advance(30_000);
  t.deepEqual(status(), first, 'one reading behind');
  await writeFile(files.key, secondClientCertificate.key);
  await eventually('the renewed one', () => {
    clock.advance(30_000);
    return status()[0] !== first[0];
  });
  t.deepEqual(status(), second);
});

test('the files of a client certificate are read every 30 seconds at most, and missing ones are not reported', async (t) => {
  const clock = createManualClock();
  const metrics = createRegistry({ runtimeNamesMax: 1, log: createRecordedLog() });
  let reads = 0;
  const key = join(createTemporaryFolder(t), 'missing.pem');
  const files = {
    ca: undefined,
    key,
    get cert() {
      reads++;
      return key;
    },
  };
  measureExpiry('store', files, { metrics, clock });
  const readsOf = (ms: number) => {
    clock.advance(ms);
    const before = reads;
    metrics.snapshot();
    return reads - before;
  };
  const once = readsOf(0);
  t.true(once > 0);
  t.deepEqual([readsOf(0), readsOf(29_999), readsOf(1), readsOf(1)], [0, 0, once, 0]);
  t.false((await readTlsFiles(files)).ok);
  t.deepEqual(describeExpiries(metrics.snapshot()), []);
});

test('without a client certificate there is no gauge', (t) => {
  const metrics = createRegistry({ runtimeNamesMax: 1, log: createRecordedLog() });
  const files = { ca: 'ca.pem', cert: undefined, key: undefined };
  measureExpiry('xds', files, { metrics, clock: createManualClock() });
  t.false([...metrics.snapshot().keys()].some((name) => name.includes('certificate')));
});
