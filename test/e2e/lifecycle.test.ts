// Tests how a worker process starts and ends, as seen by its supervisor. shared/lifecycle.test.ts tests the effect of
// each signal.
import test from 'ava';
import { sourceCommand } from '../support/programs.ts';
import { spawnWorkerProcess } from '../support/worker-process.ts';

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
