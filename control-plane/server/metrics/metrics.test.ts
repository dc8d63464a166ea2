import test from 'ava';
import { type ControlPlaneMetrics, createControlPlaneMetrics } from './metrics.ts';
import type { Overview } from './overview.ts';

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
  certificates: {},
  workers: { in_force: 0, pending: 0, refused: 0, gone: 0 },
};

/** The lines of the control plane, without Node's own. */
async function linesOf(metrics: ControlPlaneMetrics): Promise<string[]> {
  const { text } = await metrics.expose();
  const lines = text.split('\n').filter((line) => line.startsWith('ratelane_control_plane_'));
  return lines.map((line) => line.slice('ratelane_control_plane_'.length));
}

test('each gauge shows its part of the state as it is when it is read', async (t) => {
  let overview: Overview = {
    revisionInForceAtMs: 1_500,
    isStale: true,
    newest: { isValid: true, isHeldBack: false, errors: 2, warnings: 3 },
    domains: 4,
    isStoreReachable: true,
    storeSuccessAtMs: 2_500,
    revisions: { accepted: 5, refused: 6, taken_back: 7 },
    rollout: { isPaused: true, workers: 8, ledHereSinceMs: 3_500 },
    isRecordShared: false,
    isForgetful: true,
    certificates: {
      admin: { expiryMs: 4_500, problem: undefined },
      peers: { expiryMs: undefined, problem: 'a key of another certificate' },
    },
    workers: { in_force: 9, pending: 10, refused: 11, gone: 12 },
  };
  const metrics = createControlPlaneMetrics(() => overview);
  t.deepEqual(await linesOf(metrics), [
    'revision_in_force_timestamp_seconds 1.5',
    'newest_revision_valid 1',
    'newest_revision_held_back 0',
    'newest_revision_errors 2',
    'newest_revision_warnings 3',
    'rollout_workers 8',
    'rollout_paused 1',
    'rollout_leading 1',
    'rollout_leading_since_timestamp_seconds 3.5',
    'record_shared 0',
    'record_forgetful 1',
    'domains 4',
    'stale 1',
    'store_reachable 1',
    'store_last_success_timestamp_seconds 2.5',
    'certificate_not_after_timestamp_seconds{use="admin"} 4.5',
    'certificate_renewal_refused{use="admin"} 0',
    'certificate_renewal_refused{use="peers"} 1',
    'workers{state="in_force"} 9',
    'workers{state="pending"} 10',
    'workers{state="refused"} 11',
    'workers{state="gone"} 12',
    'revisions_total{outcome="accepted"} 5',
    'revisions_total{outcome="refused"} 6',
    'revisions_total{outcome="taken_back"} 7',
    'xds_streams{mode="sotw"} 0',
    'xds_streams{mode="delta"} 0',
    'xds_response_bytes_bucket{le="1000"} 0',
    'xds_response_bytes_bucket{le="10000"} 0',
    'xds_response_bytes_bucket{le="100000"} 0',
    'xds_response_bytes_bucket{le="1000000"} 0',
    'xds_response_bytes_bucket{le="10000000"} 0',
    'xds_response_bytes_bucket{le="+Inf"} 0',
    'xds_response_bytes_sum 0',
    'xds_response_bytes_count 0',
  ]);
  overview = {
    revisionInForceAtMs: undefined,
    isStale: false,
    newest: { isValid: false, isHeldBack: true, errors: 0, warnings: 0 },
    domains: 0,
    isStoreReachable: false,
    storeSuccessAtMs: undefined,
    revisions: { accepted: 6, refused: 6, taken_back: 8 },
    rollout: undefined,
    isRecordShared: true,
    isForgetful: false,
    certificates: {},
    workers: { in_force: 0, pending: 1, refused: 0, gone: 0 },
  };
  t.deepEqual((await linesOf(metrics)).slice(0, 19), [
    'newest_revision_valid 0',
    'newest_revision_held_back 1',
    'newest_revision_errors 0',
    'newest_revision_warnings 0',
    'rollout_workers 0',
    'rollout_paused 0',
    'rollout_leading 0',
    'record_shared 1',
    'record_forgetful 0',
    'domains 0',
    'stale 0',
    'store_reachable 0',
    'workers{state="in_force"} 0',
    'workers{state="pending"} 1',
    'workers{state="refused"} 0',
    'workers{state="gone"} 0',
    'revisions_total{outcome="accepted"} 6',
    'revisions_total{outcome="refused"} 6',
    'revisions_total{outcome="taken_back"} 8',
  ]);
});

test('each event is counted by what it is about, once', async (t) => {
  const metrics = createControlPlaneMetrics(() => served);
  const before = new Set(await linesOf(metrics));
  const { xds } = metrics;
  xds.streams('sotw', 3);
  xds.streams('delta', 2);
  xds.streams('sotw', 1);
  xds.responseSent('sotw', 500);
  xds.responseSent('delta', 20_000);
  xds.responseSent('delta', 700);
  xds.acked('sotw');
  xds.acked('delta');
  xds.acked('delta');
  xds.nacked('delta');
  xds.dropped('slow_reader');
  xds.dropped('unauthenticated');
  xds.dropped('slow_reader');
  metrics.adminAnswer('domains', 'GET', 200);
  metrics.adminAnswer('domains', 'GET', 200);
  metrics.adminAnswer('status', 'BREW', 405);
  metrics.webhook(true);
  metrics.webhook(false);
  metrics.webhook(true);
  metrics.notification('url', 'delivered');
  metrics.notification('url', 'delivered');
  metrics.notification('commit_status', 'dropped');
  const news = (await linesOf(metrics)).filter((line) => !before.has(line));
  t.deepEqual(news, [
    'admin_answers_total{route="domains",method="GET",status="200"} 2',
    'admin_answers_total{route="status",method="other",status="405"} 1',
    'webhooks_total{outcome="accepted"} 2',
    'webhooks_total{outcome="refused"} 1',
    'notifications_total{target="url",outcome="delivered"} 2',
    'notifications_total{target="commit_status",outcome="dropped"} 1',
    'xds_streams{mode="sotw"} 1',
    'xds_streams{mode="delta"} 2',
    'xds_responses_total{mode="sotw"} 1',
    'xds_responses_total{mode="delta"} 2',
    'xds_response_bytes_bucket{le="1000"} 2',
    'xds_response_bytes_bucket{le="10000"} 2',
    'xds_response_bytes_bucket{le="100000"} 3',
    'xds_response_bytes_bucket{le="1000000"} 3',
    'xds_response_bytes_bucket{le="10000000"} 3',
    'xds_response_bytes_bucket{le="+Inf"} 3',
    'xds_response_bytes_sum 21200',
    'xds_response_bytes_count 3',
    'xds_acks_total{mode="sotw"} 1',
    'xds_acks_total{mode="delta"} 2',
    'xds_nacks_total{mode="delta"} 1',
    'xds_drops_total{reason="slow_reader"} 2',
    'xds_drops_total{reason="unauthenticated"} 1',
  ]);
});

test('the newest revision has no series while it is not known', async (t) => {
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
