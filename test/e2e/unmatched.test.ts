// The field's commonest fault, found by its operator: a proxy whose action is misspelled asks about
// descriptors that no rule matches, everything passes, and the worker says which and why.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { startEnvoy } from '../support/envoy.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { startWorkerProcess } from '../support/worker-process.ts';

const compose = join(import.meta.dirname, '..', '..', 'compose');

test.serial(
  'a misspelled action of Envoy is on the page, whichever process was asked',
  async (t) => {
    const redis = await startRedisServer(t);
    const worker = await startWorkerProcess(t, {
      env: { KVSTORE_URL: redis.url, WORKER_PROCESSES: '2' },
      rules: { 'shop.yaml': await readFile(join(compose, 'rules', 'shop.yaml'), 'utf8') },
    });
    const [port, shopPort] = [await freePort(), await freePort()];
    const sample = await readFile(join(compose, 'envoy', 'envoy.yaml'), 'utf8');
    await startEnvoy(
      t,
      sample
        .replace('descriptor_key: customer', 'descriptor_key: custommer')
        .replace('address: 0.0.0.0, port_value: 10000', `address: 127.0.0.1, port_value: ${port}`)
        .replaceAll('port_value: 10001', `port_value: ${shopPort}`)
        .replace(
          'address: worker, port_value: 8081',
          `address: 127.0.0.1, port_value: ${worker.ports.grpc}`,
        ),
      port,
    );
    t.true((await worker.page('/unmatched')).startsWith('every descriptor '));
    const isShown = async () => {
      const answer = await fetch(`http://127.0.0.1:${port}/`, {
        headers: { 'x-customer': 'ada' },
        signal: AbortSignal.timeout(60_000),
      });
      await answer.body?.cancel();
      t.is(answer.status, 200, 'it passes, which is the fault');
      return (await worker.page('/unmatched')).includes('(custommer=ada)');
    };
    await eventually('the page shows it', isShown);
    const text = await worker.page('/unmatched');
    t.regex(text, /^domain shop: \d+ descriptors? since the start found no rule\n/, text);
    t.true(text.includes("no rule has the key 'custommer'; did you mean 'customer'?"), text);
    t.regex(text, /nearest rule: .*shop\.yaml:\d+:\d+\n/);
    t.regex(await worker.page('/status'), /^unmatched: \d+ of domain shop; \/unmatched says why$/m);
    t.regex(await worker.page('/stats'), /^ratelimit\.service\.no_match\.shop: [1-9]\d*$/m);
  },
);
