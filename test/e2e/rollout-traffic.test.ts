// A revision that every worker would accept, and that refuses nearly every request: a rollout with real
// workers, judged by what they report of their traffic.
import test from 'ava';
import { createControlPlaneProcess } from '../support/control-plane-process.ts';
import { eventually } from '../support/eventually.ts';
import { startPacedCalls } from '../support/paced-calls.ts';
import { createRulesFolder } from '../support/rules-folder.ts';
import { startWorkerProcess } from '../support/worker-process.ts';

const rules = (requestsPerYear: number) => `domain: shop
descriptors:
  - key: customer
    rate_limit: { unit: year, requests_per_unit: ${requestsPerYear} }
`;
const request = {
  domain: 'shop',
  descriptors: [{ entries: [{ key: 'customer', value: 'ada' }] }],
};
const perSecond = 50;

test('a revision that refuses nearly everything reaches one worker of three, and is taken back by itself', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('shop.yaml', rules(1_000_000));
  const flags = ['--config-dir', folder.path, '--rollout', 'canary=10%,hold=1h'];
  const controlPlane = await createControlPlaneProcess(t, { flags });
  await controlPlane.start();
  const workers = await Promise.all(
    ['w-1', 'w-2', 'w-3'].map((id) =>
      startWorkerProcess(t, {
        readyTimeoutMs: 60_000,
        env: {
          BACKEND_TYPE: 'memory',
          CONFIG_TYPE: 'GRPC_XDS_SOTW',
          CONFIG_GRPC_XDS_NODE_ID: id,
          CONFIG_GRPC_XDS_SERVER_URL: controlPlane.xdsAddress,
        },
      }),
    ),
  );
  const loads = await Promise.all(
    workers.map(({ ports }) => startPacedCalls(ports.grpc, perSecond, [request])),
  );
  for (const load of loads) t.teardown(load.stop);
  const countRefused = () =>
    loads.map(({ calls }) => calls.filter(({ answer }) => answer === 'OVER_LIMIT').length);

  folder.write('shop.yaml', rules(1));
  const waited = await controlPlane.run('status', '--wait', '--timeout', '60s');
  t.is(waited.exitCode, 4, waited.stderr);
  t.regex(
    waited.stdout,
    /was taken back: over limit \d+\.\d % where it is, 0\.0 % elsewhere \(\d+ decisions with it, \d+ without\); 1 worker had it/,
  );
  await eventually('all decide by the first rules again', () => {
    const lastOf = loads.map(({ calls }) => calls.at(-1)?.answer);
    return lastOf.every((answer) => answer === 'OK');
  });
  const refused = countRefused();
  t.is(refused.filter((count) => count > 0).length, 1, 'two workers never saw it');
  t.log(`${Math.max(...refused)} requests were refused in all`);
});
