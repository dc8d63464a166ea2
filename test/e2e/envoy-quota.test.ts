// Real Envoys that enforce limits themselves, with the sample configuration, and the worker that assigns their shares.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { startEnvoy } from '../support/envoy.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { startWorkerProcess } from '../support/worker-process.ts';

const sample = join(import.meta.dirname, '..', '..', 'compose', 'envoy', 'quota.yaml');

async function readSample(port: number, workerPort: number): Promise<string> {
  const text = await readFile(sample, 'utf8');
  return text
    .replace('address: 0.0.0.0, port_value: 10000', `address: 127.0.0.1, port_value: ${port}`)
    .replace('address: worker, port_value: 8081', `address: 127.0.0.1, port_value: ${workerPort}`);
}

test('two Envoys share a limit, and their worker counts the requests that they admit', async (t) => {
  const limit = 40;
  const worker = await startWorkerProcess(t, {
    env: { BACKEND_TYPE: 'memory' },
    // Per year, so that no window ends during the test.
    rules: {
      'shop.yaml': `domain: shop\ndescriptors:\n  - key: customer\n    rate_limit: {unit: year, requests_per_unit: ${limit}}\n`,
    },
  });
  const ports = [await freePort(), await freePort()];
  const envoys = await Promise.all(
    ports.map(async (port) => startEnvoy(t, await readSample(port, worker.ports.grpc), port)),
  );
  const ask = async (port: number | undefined) => {
    const answer = await fetch(`http://127.0.0.1:${port}/`, { headers: { 'x-customer': 'ada' } });
    await answer.body?.cancel();
    return answer.status;
  };
  const stat = async (name: string) => {
    const stats = await (await fetch(`http://127.0.0.1:${worker.ports.debug}/stats`)).text();
    return Number(
      new RegExp(`^${name.replaceAll('.', '\\.')}: (\\d+)$`, 'm').exec(stats)?.[1] ?? 0,
    );
  };

  let passed = 0;
  const countIfPassed = async (port: number | undefined) => {
    const status = await ask(port);
    if (status === 200) passed++;
    return status;
  };
  for (const port of ports) await countIfPassed(port);
  await eventually('two buckets', async () => (await stat('ratelimit.quota.buckets')) === 2);
  await eventually(
    'an assignment for each',
    async () => (await stat('ratelimit.quota.assignments')) >= 2,
  );
  // One Envoy gets all the requests, and also the other's share once that has reported that it needs none.
  await eventually(
    'a limit that is used up',
    async () => {
      while ((await countIfPassed(ports[0])) === 200);
      return passed >= limit - 1;
    },
    60_000,
  );
  t.true(passed <= limit + 2, `${passed} of ${limit}: ${envoys.map((each) => each.output())}`);
  await eventually(
    'what passed is counted',
    async () => (await stat('ratelimit.service.rate_limit.shop.customer.within_limit')) === passed,
    30_000,
  );
});
