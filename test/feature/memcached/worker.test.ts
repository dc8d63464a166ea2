// Tests a whole worker on memory caches: its health, the requests that it admits, its warnings, and its end.
import test, { type ExecutionContext } from 'ava';
import { callHealthCheck } from '../../conformance/grpc-call.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { startMemcachedServer } from '../../support/memcached-server.ts';
import { startWorkerProcess, type WorkerProcess } from '../../support/worker-process.ts';

const toRules = (domain: string) => `
domain: ${domain}
descriptors:
  - {key: user, rate_limit: { unit: year, requests_per_unit: 3 }}
`;
const rules = { 'shop.yaml': toRules('shop') };
const plain = { tls: undefined, showText: true };

function startWorker(
  t: ExecutionContext,
  env: Readonly<Record<string, string>>,
): Promise<WorkerProcess> {
  return startWorkerProcess(t, { env: { BACKEND_TYPE: 'memcache', ...env }, rules });
}

function toRequest(...users: readonly string[]) {
  const descriptors = users.map((value) => ({ entries: [{ key: 'user', value }] }));
  return { domain: 'shop', descriptors };
}

async function ask(worker: WorkerProcess, ...users: readonly string[]): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${worker.ports.http}/json`, {
    method: 'POST',
    body: JSON.stringify(toRequest(...users)),
    signal: AbortSignal.timeout(60_000),
  });
  await answer.body?.cancel();
  return answer.status;
}

// Proof of migrating.md: With a memory cache the worker is healthy
test.serial('a worker without its memory cache is healthy and admits all requests', async (t) => {
  const url = `127.0.0.1:${await freePort()}`;
  const worker = await startWorker(t, { MEMCACHE_HOST_PORT: url });
  t.like(await fetch(`http://127.0.0.1:${worker.ports.http}/healthcheck`), { status: 200 });
  const target = `127.0.0.1:${worker.ports.grpc}`;
  t.like(await callHealthCheck(target, 'ratelimit', plain), { health: 'SERVING' });
  for (let round = 0; round < 5; round++) t.is(await ask(worker, 'ann'), 200);
  await eventually('the failure is logged', () =>
    worker.output().includes(`memory cache ${url}: connect ECONNREFUSED`),
  );
});

// Proof of migrating.md: Hits under way to a memory cache are added before the process ends
test.serial('hits that were answered are counted although the worker is ended', async (t) => {
  t.timeout(240_000);
  const memcached = await startMemcachedServer(t);
  const users: string[] = [];
  for (let attempt = 1; ; attempt++) {
    const worker = await startWorker(t, { MEMCACHE_HOST_PORT: memcached.url });
    users.splice(
      0,
      users.length,
      ...Array.from({ length: 50 }, (_, index) => `u${attempt}.${index}`),
    );
    t.is(await ask(worker, ...users), 200);
    worker.signal('SIGTERM');
    t.is(await worker.waitForEnd(60_000), 0);
    // On a busy machine, an answer may time out, and then the hits are not added.
    if (attempt === 5 || !/memory cache .*: no answer/.test(worker.output())) break;
  }
  const yearSeconds = 365 * 86_400;
  const start = Math.floor(Date.now() / 1000 / yearSeconds) * yearSeconds;
  for (const user of users) t.is(await memcached.get(`shop_user_${user}_${start}`), '1');
});

test.serial('features that a memory cache lacks are reported at the start', async (t) => {
  const worker = await startWorker(t, { STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true' });
  for (const message of [
    /STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=\\?"true\\?" has no effect with BACKEND_TYPE/,
    /counts nothing without a node, so that nothing is limited/,
  ]) {
    await eventually(`${message} is logged`, () => message.test(worker.output()));
  }
  t.is(await ask(worker, 'ann', 'bob'), 200);
});
