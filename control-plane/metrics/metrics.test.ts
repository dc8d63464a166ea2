import test from 'ava';
import { createControlPlaneMetrics, type Overview } from './metrics.ts';

const served: Overview = {
  revisionInForceAtMs: 1_000,
  isStale: true,
  newest: { isValid: false, isHeldBack: false, errors: 2, warnings: 1 },
  domains: 1,
  isStoreReachable: false,
  storeSuccessAtMs: undefined,
  revisions: { accepted: 1, refused: 0, taken_back: 0 },
  rollout: undefined,
  isRecordShared: true,
  isForgetful: false,
  workers: { in_force: 0, pending: 0, refused: 0 },
};

test('nothing is said of the newest revision while nobody knows it', async (t) => {
  let overview = served;
  const metrics = createControlPlaneMetrics(() => overview);
  const newestOf = async () => (await metrics.expose()).text.match(/^.*newest_revision.* \d+$/gm);
  t.deepEqual(await newestOf(), [
    'ratelane_control_plane_newest_revision_valid 0',
    'ratelane_control_plane_newest_revision_held_back 0',
    'ratelane_control_plane_newest_revision_errors 2',
    'ratelane_control_plane_newest_revision_warnings 1',
  ]);
  overview = { ...served, newest: undefined };
  t.is(await newestOf(), null);
});

test('the process is shown under the names that all clients of Prometheus use', async (t) => {
  const { text } = await createControlPlaneMetrics(() => served).expose();
  for (const name of [
    'process_cpu_seconds_total',
    'process_start_time_seconds',
    'process_resident_memory_bytes',
    'process_virtual_memory_bytes',
    'process_open_fds',
    'process_max_fds',
  ]) {
    t.regex(text, new RegExp(`^${name} \\d`, 'm'));
  }
});
