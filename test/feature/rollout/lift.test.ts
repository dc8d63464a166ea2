// Tests a limit that is lifted for a time, from the command to a worker of two processes over xDS, and its end while no
// control plane is running.
import test from 'ava';
import { createControlPlaneInProcess } from '../../support/control-plane-in-process.ts';
import { eventually } from '../../support/eventually.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { createRulesFolder } from '../../support/rules-folder.ts';
import { createWorkerCaller } from '../../support/worker-caller.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

const rules = `domain: shop
descriptors:
  - {key: user, rate_limit: {unit: year, requests_per_unit: 1000}}
`;
/** The remaining hits that a worker answers if nothing is counted. */
const uncounted = 0xffff_ffff;

test('a lift is in force at once, despite a rollout, and ends by itself without a control plane', async (t) => {
  const folder = createRulesFolder(t, { 'shop.yaml': rules });
  const flags = ['--config-dir', folder.path, '--rollout', 'canary=10%,hold=1h'];
  const controlPlane = await createControlPlaneInProcess(t, { flags });
  await controlPlane.start();
  const redis = await startRedisServer(t);
  const worker = await startWorkerProcess(t, {
    env: {
      CONFIG_TYPE: 'GRPC_XDS_SOTW',
      CONFIG_GRPC_XDS_SERVER_URL: controlPlane.xdsAddress,
      BACKEND_TYPE: 'redis',
      KVSTORE_TYPE: 'SINGLE',
      KVSTORE_URL: redis.url,
      LOCAL_CACHE_SIZE_IN_BYTES: '1000000',
      WORKER_PROCESSES: '2',
    },
  });
  const { ask } = createWorkerCaller(t, worker);
  t.deepEqual(await ask('shop', 'user', 'ada'), { answer: 'OK', remaining: 999 });
  t.deepEqual(await ask('shop', 'user', 'ada'), { answer: 'OK', remaining: 998 });

  const asked = ['--domain', 'shop', '--descriptor', 'user=ada'];
  const lift = (...more: string[]) => controlPlane.run('counters', 'lift', ...asked, ...more);
  const first = await lift('--for', '1h', '--reason', 'a demo');
  t.is(first.exitCode, 0, first.stderr);
  t.regex(
    first.stdout,
    /^shop\.user_ada is lifted until \d\d:\d\d:\d\dZ \(in 60 min\): revision [0-9a-f]+\n$/,
  );
  const remaining = async () => (await ask('shop', 'user', 'ada')).remaining;
  await eventually('ada is lifted', async () => (await remaining()) === uncounted);
  // Hits before the lift are counted; one process may apply the rules a moment later than the other.
  const counter = async () => {
    const keys = await redis.command('KEYS', 'shop_user_ada_*');
    return Number(await redis.command('GET', `${Array.isArray(keys) ? keys[0] : keys}`));
  };

  // The worker receives its rules before its link, which the command uses, is open.
  let get = await controlPlane.run('counters', 'get', ...asked);
  await eventually('the worker is asked', async () => {
    if (get.exitCode !== 0) get = await controlPlane.run('counters', 'get', ...asked);
    return get.exitCode === 0;
  }).catch((error: Error) => t.fail(`${error.message}: ${get.stderr}`));
  t.regex(
    get.stdout,
    /^\(user=ada\) is lifted until \d\d:\d\d:\d\dZ \(in 60 min\): nothing is counted\n$/,
  );

  const again = await lift('--for', '10s', '--reason', 'shorter', '--wait');
  t.is(again.exitCode, 0, again.stdout + again.stderr);
  t.regex(again.stdout, /: revision \w+\nrevision \w+ is in force on the 1 connected worker\n/);
  const counted = await counter();
  t.true(counted >= 2 && counted < 10, `${counted}`);
  for (let round = 0; round < 5; round++) t.is(await remaining(), uncounted);
  t.is(await counter(), counted);
  t.deepEqual(await ask('shop', 'user', 'bob'), { answer: 'OK', remaining: 999 });
  await controlPlane.stop();

  let left: number | undefined;
  await eventually('the lift has ended', async () => {
    left = await remaining();
    return left !== uncounted;
  });
  t.is(left, 1000 - counted - 1);
  t.regex(worker.output(), /1 rule ended: requests now match the rules without it/);
});
