// The main purpose: a real Envoy with the sample configuration, a worker behind it, and callers that are refused when
// they exceed their limit.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { startEnvoy } from '../support/envoy.ts';
import { generousTimes, readEnvoySample } from '../support/envoy-sample.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { startWorkerProcess } from '../support/worker-process.ts';

const compose = join(import.meta.dirname, '..', '..', 'compose');

test('Envoy admits three requests a minute, and all of them while the worker is unreachable', async (t) => {
  const redis = await startRedisServer(t);
  const rules = await readFile(join(compose, 'rules', 'shop.yaml'), 'utf8');
  const worker = await startWorkerProcess(t, {
    env: { KVSTORE_URL: redis.url, LIMIT_RESPONSE_HEADERS_ENABLED: 'true' },
    // Per year, so that no window ends during the test.
    rules: { 'shop.yaml': rules.replace('unit: minute', 'unit: year') },
  });
  const [port, shopPort] = [await freePort(), await freePort()];
  const envoy = await startEnvoy(
    t,
    await readEnvoySample({ port, shopPort, workerPorts: [worker.ports.grpc] }, generousTimes),
    port,
  );

  const ask = async (customer: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}/`, {
      headers: { 'x-customer': customer },
    });
    await answer.body?.cancel();
    return answer;
  };
  // Until Envoy considers the worker healthy, requests pass without a check.
  await eventually('limits', async () => (await ask('probe')).headers.has('ratelimit-limit'));

  const answers = [await ask('ada'), await ask('ada'), await ask('ada'), await ask('ada')];
  t.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200, 429],
    envoy.output(),
  );
  t.deepEqual(
    answers.map(({ headers }) => headers.get('ratelimit-remaining')),
    ['2', '1', '0', '0'],
  );
  t.is((await ask('grace')).status, 200, 'another customer');
  t.is((await ask('partner')).status, 200, 'who is never limited');

  await worker.stop();
  t.is((await ask('ada')).status, 200, 'a limiter that is away is no outage');
});
