// The statistics' part in a worker's start: what keeps it from starting, and what a mapping file does.
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { freePort } from '../../support/free-port.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';
import { spawnWorkerProcess, startWorkerProcess } from '../../support/worker-process.ts';

const rules = {
  'shop.yaml': `domain: shop
descriptors:
  - key: user
    rate_limit: {unit: year, requests_per_unit: 5}
`,
};

const base = { BACKEND_TYPE: 'memory', DISABLE_STATS: 'false', USE_PULLMETRICS: 'true' };

async function writeMapping(t: ExecutionContext, text: string): Promise<string> {
  const folder = createTemporaryFolder(t);
  const file = join(folder, 'mapping.yaml');
  await writeFile(file, text);
  return file;
}

async function endingOf(t: ExecutionContext, env: Readonly<Record<string, string>>) {
  const worker = await spawnWorkerProcess(t, { env: { ...base, ...env }, rules });
  return { ending: await worker.waitForEnd(60_000), output: worker.output() };
}

test('a mapping file with a mistake ends the start, telling its place', async (t) => {
  const file = await writeMapping(t, 'mappings:\n  - match: a.b\n');
  const { ending, output } = await endingOf(t, {
    PULLMETRICS_ADDR: `127.0.0.1:${await freePort()}`,
    PULLMETRICS_MAPPER_YAML: file,
  });
  t.is(ending, 1);
  t.true(output.includes(`${file}:2:5: error: the metric's name is missing`), output);
});

test('a port of the pull endpoint that is in use ends the start, telling the setting', async (t) => {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  t.teardown(() => holder.close());
  const address = holder.address();
  const place = `127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
  const { ending, output } = await endingOf(t, { PROMETHEUS_ADDR: place });
  t.is(ending, 1);
  t.true(output.includes(`cannot listen for metrics on ${place}`), output);
  t.true(output.includes('set PROMETHEUS_ADDR to another'), output);
});

test('PULLMETRICS_MAPPER_YAML: a mapping file takes the place of the default mapping', async (t) => {
  const file = await writeMapping(
    t,
    `mappings:
  - match: ratelimit\\.service\\.rate_limit\\.(?P<domain>[^.]+)\\..*\\.total_hits
    match_type: regex
    name: hits_total
    labels: {domain: $domain}
`,
  );
  const port = await freePort();
  const worker = await startWorkerProcess(t, {
    env: {
      ...base,
      PULLMETRICS_ADDR: `127.0.0.1:${port}`,
      PULLMETRICS_MAPPER_YAML: file,
      EXTRA_TAGS: 'zone:b',
    },
    rules,
  });
  const descriptors = [{ entries: [{ key: 'user', value: 'ada' }] }];
  const decision = await fetch(`http://127.0.0.1:${worker.ports.http}/json`, {
    method: 'POST',
    body: JSON.stringify({ domain: 'shop', descriptors }),
  });
  t.is(decision.status, 200);
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  t.true(text.includes('\nhits_total{zone="b",domain="shop"} 1\n'), text);
  t.true(
    text.includes('\nratelimit_service_rate_limit_shop_user_within_limit{zone="b"} 1\n'),
    text,
  );
});
