// A worker names each start of it: workers that share a node id are told apart, and one that was killed is told from
// one that was stopped.
import test from 'ava';
import { createResource, createSnapshot } from '../../../control-plane/snapshot/snapshot.ts';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import { startAds } from '../../support/ads-fixture.ts';
import { createControlPlaneInProcess } from '../../support/control-plane-in-process.ts';
import { eventually } from '../../support/eventually.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { createRulesFolder } from '../../support/rules-folder.ts';
import { limitResource } from '../../support/scripted-ads-server.ts';
import { startWorker } from '../../support/worker-in-process.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

const times = 10;
const fastClock: Clock = {
  wallMs: systemClock.wallMs,
  monotonicMs: () => systemClock.monotonicMs() * times,
  after: (ms, task) => systemClock.after(ms / times, task),
};
const toEnvironment = (url: string) => ({
  CONFIG_TYPE: 'GRPC_XDS_SOTW',
  CONFIG_GRPC_XDS_SERVER_URL: url,
  CONFIG_GRPC_XDS_NODE_ID: 'default',
  CONFIG_GRPC_XDS_NODE_METADATA: 'team=edge,ratelane.instance=mine',
  BACKEND_TYPE: 'memory',
});

interface Shown {
  readonly instance: string;
  readonly name: string;
  readonly metadata: { readonly team: string; readonly 'ratelane.instance': string };
  readonly figures: { readonly decisionsPerSecond: number } | null;
}

test('workers that share a node id are shown by their instances, each with its own figures', async (t) => {
  const rules = createRulesFolder(t);
  rules.write(
    'd.yaml',
    'domain: d\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 0}}]\n',
  );
  const controlPlane = await createControlPlaneInProcess(t, {
    flags: ['--config-dir', rules.path],
  });
  await controlPlane.start();
  const env = toEnvironment(controlPlane.xdsAddress);
  const workers = await Promise.all([
    startWorker(t, { env, clock: fastClock }),
    startWorker(t, { env: { ...env, CONFIG_FLEET_LINK: 'false' }, clock: fastClock }),
    startWorker(t, { env, clock: fastClock }),
  ]);
  const instances = await Promise.all(
    workers.map(async ({ page }) => / as instance (\S+)\n/.exec(await page('/status'))?.[1] ?? ''),
  );
  const [busy, silent, idle] = instances;
  t.is(new Set(instances).size, 3);
  const shown = async (): Promise<readonly Shown[]> =>
    (await controlPlane.fetch('/workers')).body.workers;
  const figuresOf = async (instance: string | undefined) =>
    (await shown()).find((worker) => worker.instance === instance)?.figures;
  await eventually('all are there', async () => (await shown()).length === 3);
  for (const { instance, name, metadata } of await shown()) {
    t.true(instances.includes(instance));
    t.is(name, `default (instance ${instance.slice(0, 8)})`);
    t.is(metadata['ratelane.instance'], instance);
    t.is(metadata.team, 'edge');
  }
  await eventually('the other one reports', async () => (await figuresOf(idle)) !== null);
  await eventually('one decides', async () => {
    await workers[0]?.decide('k=a');
    return ((await figuresOf(busy))?.decisionsPerSecond ?? 0) > 0;
  });
  t.is((await figuresOf(idle))?.decisionsPerSecond, 0);
  t.is(await figuresOf(silent), null);
  t.deepEqual((await controlPlane.fetch('/workers')).body.links, []);
});

test('a worker that was killed has vanished, and one that was stopped has not', async (t) => {
  const resource = limitResource('d', 'd', 0);
  const ads = await startAds({
    snapshot: createSnapshot([createResource('d', resource.value as Buffer)]),
  });
  t.teardown(ads.stop);
  const redis = await startRedisServer(t);
  const { workers } = ads.server;
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const env = {
      ...toEnvironment(`localhost:${ads.port}`),
      BACKEND_TYPE: 'redis',
      KVSTORE_URL: redis.url,
      WORKER_PROCESSES: '2',
    };
    const worker = await startWorkerProcess(t, { env });
    t.is(workers.list().length, 1);
    const [{ instance } = { instance: undefined }] = workers.list();
    t.regex(instance ?? '', /^[0-9a-f-]{36}$/);
    worker.signal(signal);
    await eventually('it has left', () => workers.list().length === 0);
    t.deepEqual(
      workers.vanished().map((gone) => gone.instance),
      signal === 'SIGKILL' ? [instance] : [],
    );
  }
});
