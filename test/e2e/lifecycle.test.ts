// Tests how a worker process starts and ends, as seen by its supervisor. shared/lifecycle.test.ts tests the effect of
// each signal.
import test from 'ava';
import { eventually } from '../support/eventually.ts';
import { sourceCommand } from '../support/programs.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { spawnWorkerProcess, startWorkerProcess } from '../support/worker-process.ts';

const memory = { BACKEND_TYPE: 'memory' };
/** Only a guard against hanging. */
const endMs = 60_000;
const rules = {
  'a.yaml': `domain: d
descriptors:
  - key: k
    rate_limit: {unit: year, requests_per_unit: 5}
`,
};
const body = '{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}';

for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
  test.serial(
    `${signal} while the worker's modules are read ends it with exit code 0`,
    async (t) => {
      // Sends itself the signal at exactly that moment.
      const hook = `import { registerHooks } from 'node:module';
registerHooks({
  load(url, context, next) {
    if (url.endsWith('/worker/run-worker.ts')) process.kill(process.pid, '${signal}');
    return next(url, context);
  },
});`;
      const preload = `--import=data:text/javascript,${encodeURIComponent(hook)}`;
      const worker = await spawnWorkerProcess(t, {
        env: { ...memory, NODE_OPTIONS: preload },
        program: sourceCommand('worker'),
        rules,
      });
      t.is(await worker.waitForEnd(endMs), 0, worker.output());
    },
  );
}

test.serial(
  'a decision in flight is answered before the end, and health checks fail meanwhile',
  async (t) => {
    const redis = await startRedisServer(t);
    const worker = await startWorkerProcess(t, {
      env: { KVSTORE_URL: redis.url, KVSTORE_TIMEOUT: '30s' },
      rules,
    });
    await redis.pause();
    const json = `http://127.0.0.1:${worker.ports.http}/json`;
    const inFlight = fetch(json, { method: 'POST', body });
    await eventually('the request is being decided', async () => {
      return (await worker.page('/stats')).includes('rate_limit.d.k.total_hits: 1');
    });
    worker.signal('SIGTERM');
    await eventually('the worker reports that it is stopping', async () => {
      return (await worker.page('/status')).includes('healthy: false');
    });
    t.is(worker.ended(), undefined);
    redis.resume();
    t.is((await inFlight).status, 200);
    t.is(await worker.waitForEnd(endMs), 0);
  },
);
