// The cause of each alert of compose/observability/alerts.yaml, as series for promtool.

/** Values by series, in the notation of promtool: `0+1x60` grows each minute. */
export type PromtoolSeries = Readonly<Record<string, string>>;

const calls = 'ratelimit_service_total_requests{grpc_method="ShouldRateLimit",job="w"}';
const failed = (type: string) =>
  `ratelimit_service_should_rate_limit_error{err_type="${type}",job="w"}`;
const times = (le: string) => `ratelimit_decision_duration_seconds_bucket{le="${le}"}`;

/** The cause of each alert. */
export const alertCauses: Readonly<Record<string, PromtoolSeries>> = {
  RatelaneWorkerDown: { 'up{job="sample-ratelane-worker"}': '0x60' },
  RatelaneWorkersGone: { 'up{job="sample-ratelane-worker"}': '1x20 _x40' },
  RatelaneStoreDown: { ratelimit_redis_pool_cx_active: '0x60' },
  RatelaneStoreErrors: { [failed('redis_error')]: '0+10x60', [calls]: '0+600x60' },
  RatelaneBreakerOpen: { ratelimit_per_second_store_breaker_open: '1x60' },
  RatelaneAnsweredWithoutStore: { ratelimit_failure_mode_local: '0+60x60' },
  RatelaneRequestsRefused: { [failed('service_error')]: '0+60x60' },
  RatelaneDecisionsSlow: {
    [times('0.01')]: '0+10x60',
    [times('0.1')]: '0+600x60',
    [times('+Inf')]: '0+600x60',
  },
  RatelaneWorkerBusy: { ratelimit_node_event_loop_busy_percent: '90x60' },
  RatelaneRulesRefused: { ratelimit_service_config_load_error: '0+1x60' },
  RatelaneNoRuleMatches: { 'ratelimit_service_no_match{domain="d",job="w"}': '0+60x60' },
  RatelaneXdsDisconnected: { ratelimit_xds_connected: '0x60' },
  RatelaneWorkersDisagree: {
    'ratelimit_agreement{job="w",instance="a"}': '7x60',
    'ratelimit_agreement{job="w",instance="b"}': '8x60',
  },
  RatelaneClockOffset: { ratelimit_store_clock_offset_ms: '-1500x60' },
  RatelaneMetricNamesFolded: { ratelimit_service_folded_metric_names: '0+1x60' },
  RatelaneProcessReplaced: { ratelimit_processes_replaced: '0+1x60' },
  RatelaneCertificateExpires: {
    'ratelimit_certificate_not_after_timestamp_seconds{port="grpc"}': '600000x60',
  },
  RatelaneCertificateRefused: {
    'ratelane_control_plane_certificate_renewal_refused{use="admin"}': '1x60',
  },
  RatelaneControlPlaneDown: { 'up{job="ratelane-control-plane"}': '0x60' },
  RatelaneControlPlanesGone: { 'up{job="ratelane-control-plane"}': '1x20 _x40' },
  RatelaneRevisionInvalid: { ratelane_control_plane_newest_revision_valid: '0x60' },
  RatelaneRevisionHeldBack: { ratelane_control_plane_newest_revision_held_back: '1x60' },
  RatelaneRolloutPaused: { ratelane_control_plane_rollout_paused: '1x60' },
  RatelaneRecordNotShared: { ratelane_control_plane_record_shared: '0x60' },
  RatelaneRulesStale: { ratelane_control_plane_stale: '1x60' },
  RatelaneRulesPending: { 'ratelane_control_plane_workers{state="pending"}': '2x60' },
  RatelaneFleetShrank: {
    'ratelane_control_plane_workers{state="gone"}': '8x60',
    'ratelane_control_plane_workers{state="in_force"}': '9x60',
  },
  RatelaneWorkersRefuse: { 'ratelane_control_plane_workers{state="refused"}': '1x60' },
};

/** No alert fires. */
export const calmSeries: PromtoolSeries = {
  'up{job="ratelane-worker"}': '1x60',
  'up{job="ratelane-control-plane"}': '1x60',
  ratelimit_redis_pool_cx_active: '10x60',
  ratelimit_store_breaker_open: '0x60',
  ratelimit_failure_mode_allow: '5x60',
  [failed('redis_error')]: '5x60',
  [calls]: '0+600x60',
  [times('0.01')]: '0+600x60',
  [times('+Inf')]: '0+600x60',
  ratelimit_node_event_loop_busy_percent: '30x60',
  ratelimit_service_config_load_error: '1x60',
  ratelimit_xds_connected: '1x60',
  'ratelimit_agreement{job="w",instance="a"}': '7x60',
  'ratelimit_agreement{job="w",instance="b"}': '7x60',
  ratelimit_store_clock_offset_ms: '-20x60',
  ratelimit_processes_replaced: '1x60',
  'ratelimit_certificate_not_after_timestamp_seconds{port="grpc"}': '700000x60',
  'ratelimit_certificate_renewal_refused{port="grpc"}': '0x60',
  'ratelane_control_plane_certificate_not_after_timestamp_seconds{use="admin"}': '700000x60',
  'ratelane_control_plane_certificate_renewal_refused{use="admin"}': '0x60',
  ratelane_control_plane_newest_revision_valid: '1x60',
  ratelane_control_plane_newest_revision_held_back: '0x60',
  ratelane_control_plane_record_shared: '1x60',
  ratelane_control_plane_stale: '0x60',
  'ratelane_control_plane_workers{state="in_force"}': '9x60',
  'ratelane_control_plane_workers{state="pending"}': '0x60',
  'ratelane_control_plane_workers{state="refused"}': '0x60',
  'ratelane_control_plane_workers{state="gone"}': '4x60',
};
