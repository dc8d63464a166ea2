// Workers that know three control planes: what they do when theirs ends, and when all are gone.
import test, { type ExecutionContext } from 'ava';
import {
  type ControlPlaneProcess,
  createControlPlaneProcess,
} from '../support/control-plane-process.ts';
import { eventually } from '../support/eventually.ts';
import { startHttpLoad } from '../support/http-load.ts';
import { createRulesFolder, ruleText } from '../support/rules-folder.ts';
import { messages } from '../support/worker-messages.ts';
import { startWorkerProcess, type WorkerProcess } from '../support/worker-process.ts';

const perSecond = 300;

/** Resolves when the rules of each worker come from this control plane, and its link is at it. */
async function areAt(workers: readonly WorkerProcess[], { xdsAddress }: ControlPlaneProcess) {
  for (const worker of workers) {
    await eventually(`a worker is at ${xdsAddress}`, async () => {
      const status = await worker.page('/status');
      return (
        status.includes(`management server ${xdsAddress} as node`) &&
        status.includes(', connected since') &&
        status.includes(`link to the control plane: connected to ${xdsAddress}`)
      );
    });
  }
}

async function startAll(t: ExecutionContext) {
  const rules = createRulesFolder(t);
  rules.write('a.yaml', ruleText('first', 1_000_000));
  const create = () => createControlPlaneProcess(t, { flags: ['--config-dir', rules.path] });
  const planes = [await create(), await create(), await create()] as const;
  for (const plane of planes) await plane.start();
  const addresses = planes.map(({ xdsAddress }) => xdsAddress);
  const start = (id: string) =>
    startWorkerProcess(t, {
      env: {
        BACKEND_TYPE: 'memory',
        CONFIG_TYPE: 'GRPC_XDS_SOTW',
        CONFIG_GRPC_XDS_SERVER_URL: ['nobody:port', ...addresses].join(','),
        CONFIG_GRPC_XDS_NODE_ID: id,
      },
    });
  const workers = await Promise.all(['w-0', 'w-1'].map(start));
  return { rules, planes, workers };
}

test.serial(
  'a control plane that ends is followed by the next at once, without a lost decision',
  async (t) => {
    t.timeout(180_000);
    const { rules, planes, workers } = await startAll(t);
    const [first, second, third] = planes;
    for (const worker of workers) {
      t.regex(
        messages(worker, 'warning').join('\n'),
        /SERVER_URL="\*{5}": address 1: the port is not a number from 1 to 65535; it is left out, the others are used/,
      );
    }
    await areAt(workers, first);
    const body = '{"domain":"first","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}';
    const load = startHttpLoad(perSecond, (index) => ({
      port: workers[index % workers.length]?.ports.http ?? 0,
      path: '/json',
      body,
    }));
    t.teardown(() => load.stop());

    for (const [signal, ending, next] of [
      ['SIGTERM', first, second],
      ['SIGKILL', second, third],
    ] as const) {
      const startMs = performance.now();
      await ending.end(signal);
      await areAt(workers, next);
      t.log(
        `${signal}: every worker had the next one after ${Math.round(performance.now() - startMs)} ms`,
      );
    }
    for (const worker of workers) {
      // The second loss is within the time in which the log does not repeat itself.
      const [lost = ''] = messages(worker, 'error');
      t.true(lost.startsWith(`Lost the management server ${first.xdsAddress}: `), lost);
      const words = `; the next attempt is at ${second.xdsAddress}, at once, the rules in force stay`;
      t.true(lost.endsWith(words), lost);
      const found = `Connected to the management server ${second.xdsAddress} after `;
      t.true(messages(worker, 'info').some((text) => text.startsWith(found)));
    }
    rules.write('a.yaml', ruleText('second', 1_000_000));
    for (const worker of workers) {
      await eventually('the last one delivers', async () => {
        const config = await fetch(`http://127.0.0.1:${worker.ports.debug}/rlconfig`);
        return (await config.text()).includes('second');
      });
    }
    await load.stop();
    t.true(load.answers.length > 0);
    const lost = load.answers.filter(({ status }) => status !== 200);
    t.log(`${lost.length} of ${load.answers.length} decisions were lost`);
    t.deepEqual(lost, []);
  },
);
