// Tests that a worker gets a new instance at each start: workers that share a node id are distinguished, and so are a
// killed and a stopped one.
import test from 'ava';
import { createResource, createSnapshot } from '../../../control-plane/server/snapshot/snapshot.ts';
import { startAds } from '../../support/ads-fixture.ts';
import { eventually } from '../../support/eventually.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { limitResource } from '../../support/scripted-ads-server.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

const toEnvironment = (url: string) => ({
  CONFIG_TYPE: 'GRPC_XDS_SOTW',
  CONFIG_GRPC_XDS_SERVER_URL: url,
  CONFIG_GRPC_XDS_NODE_ID: 'default',
  CONFIG_GRPC_XDS_NODE_METADATA: 'team=edge,ratelane.instance=mine',
  BACKEND_TYPE: 'memory',
});

test('a worker that was killed has vanished, and one that was stopped has not', async (t) => {
  const resource = limitResource('d', 'd', 0);
  const ads = await startAds(t, {
    snapshot: createSnapshot([createResource('d', resource.value as Buffer)]),
  });
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
