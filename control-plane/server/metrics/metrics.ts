// The control plane's own metrics, in the Prometheus format. Callers count events; gauges are read from the state at
// each scrape.
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { XdsMetrics } from '../xds/discovery-stream.ts';
import type { Overview } from './overview.ts';

export interface ControlPlaneMetrics {
  readonly xds: XdsMetrics;
  adminAnswer(route: string, method: string, status: number): void;
  webhook(isAccepted: boolean): void;
  notification(target: 'url' | 'commit_status', delivery: 'delivered' | 'failed' | 'dropped'): void;
  /** The text of the exposition format, and its media type. */
  expose(): Promise<{ readonly text: string; readonly mediaType: string }>;
}

const prefix = 'ratelane_control_plane_';

export function createControlPlaneMetrics(overview: () => Overview): ControlPlaneMetrics {
  const registry = new Registry();
  const registers = [registry];
  // Read once for all gauges of a scrape: there may be thousands of workers.
  let now = overview();
  collectDefaultMetrics({ register: registry });

  const counter = <Label extends string>(name: string, help: string, labelNames: Label[]) =>
    new Counter({ name: `${prefix}${name}`, help, labelNames, registers });
  const gauge = (name: string, help: string, read: (given: Overview) => number | undefined) =>
    new Gauge({
      name: `${prefix}${name}`,
      help,
      registers,
      collect() {
        const value = read(now);
        if (value === undefined) this.remove();
        else this.set(value);
      },
    });

  gauge('revision_in_force_timestamp_seconds', 'When the revision in force was made', (given) =>
    toSeconds(given.revisionInForceAtMs),
  );
  gauge('newest_revision_valid', '1 when the newest revision has no errors', ({ newest }) =>
    newest === undefined ? undefined : Number(newest.isValid),
  );
  gauge(
    'newest_revision_held_back',
    '1 when the newest revision removes most limits and waits for an approval',
    ({ newest }) => (newest === undefined ? undefined : Number(newest.isHeldBack)),
  );
  gauge('newest_revision_errors', 'Errors in the newest revision', ({ newest }) => newest?.errors);
  gauge(
    'newest_revision_warnings',
    'Warnings in the newest revision',
    ({ newest }) => newest?.warnings,
  );
  gauge(
    'rollout_workers',
    'Workers that are given a revision whose rollout is under way; 0 when none is',
    ({ rollout }) => rollout?.workers ?? 0,
  );
  gauge(
    'rollout_paused',
    '1 when a rollout waits for an operator: it is paused, or no share of the workers can be made',
    ({ rollout }) => Number(rollout?.isPaused ?? false),
  );
  gauge(
    'rollout_leading',
    '1 when this control plane leads the rollout that is under way',
    ({ rollout }) => Number(rollout?.ledHereSinceMs !== undefined),
  );
  gauge('rollout_leading_since_timestamp_seconds', 'Since when it leads it', ({ rollout }) =>
    toSeconds(rollout?.ledHereSinceMs),
  );
  gauge(
    'record_shared',
    '1 when the revisions taken back, held back or approved are on record beside the rules',
    (given) => Number(given.isRecordShared),
  );
  gauge(
    'record_forgetful',
    '1 when it is in the state directory only, and that was empty at the start',
    (given) => Number(given.isForgetful),
  );
  gauge('domains', 'Domains in force', (given) => given.domains);
  gauge('stale', '1 when the served rules may be older than the rules of the author', (given) =>
    Number(given.isStale),
  );
  gauge('store_reachable', '1 when the last poll of the store succeeded', (given) =>
    Number(given.isStoreReachable),
  );
  gauge('store_last_success_timestamp_seconds', 'The last poll that succeeded', (given) =>
    toSeconds(given.storeSuccessAtMs),
  );
  new Gauge({
    name: `${prefix}certificate_not_after_timestamp_seconds`,
    help: 'When the first certificate in use expires: of the port xds or admin, or of requests to peers',
    labelNames: ['use'] as const,
    registers,
    collect() {
      this.reset();
      for (const [use, { expiryMs }] of Object.entries(now.certificates)) {
        if (expiryMs !== undefined) this.set({ use }, expiryMs / 1000);
      }
    },
  });
  new Gauge({
    name: `${prefix}certificate_renewal_refused`,
    help: '1 while the files of TLS have changed and cannot be used: those in use stay',
    labelNames: ['use'] as const,
    registers,
    collect() {
      this.reset();
      for (const [use, { problem }] of Object.entries(now.certificates)) {
        this.set({ use }, Number(problem !== undefined));
      }
    },
  });
  new Gauge({
    name: `${prefix}workers`,
    help: 'Workers by whether they have the right rules; `gone`: left without a goodbye in the last 5 minutes',
    labelNames: ['state'] as const,
    registers,
    collect() {
      for (const [state, count] of Object.entries(now.workers)) this.set({ state }, count);
    },
  });

  new Counter({
    name: `${prefix}revisions_total`,
    help: 'Revisions that were accepted, refused for their errors, or taken back in their rollout',
    labelNames: ['outcome'] as const,
    registers,
    collect() {
      this.reset();
      for (const [outcome, count] of Object.entries(now.revisions)) {
        this.inc({ outcome }, count);
      }
    },
  });
  const answers = counter('admin_answers_total', 'Answers of the admin API', [
    'route',
    'method',
    'status',
  ]);
  const webhooks = counter('webhooks_total', 'Calls of the webhook', ['outcome']);
  const notifications = counter(
    'notifications_total',
    'Notifications about revisions, by target and whether they were delivered',
    ['target', 'outcome'],
  );
  const streams = new Gauge({
    name: `${prefix}xds_streams`,
    help: 'Open streams, by protocol',
    labelNames: ['mode'] as const,
    registers,
  });
  const responses = counter('xds_responses_total', 'Responses sent', ['mode']);
  const responseBytes = new Histogram({
    name: `${prefix}xds_response_bytes`,
    help: 'Sizes of the responses sent',
    buckets: [1e3, 1e4, 1e5, 1e6, 1e7],
    registers,
  });
  const acks = counter('xds_acks_total', 'Responses accepted by workers', ['mode']);
  const nacks = counter('xds_nacks_total', 'Responses refused by workers', ['mode']);
  const drops = counter('xds_drops_total', 'Streams ended, or not opened', ['reason']);
  for (const mode of ['sotw', 'delta'] as const) streams.set({ mode }, 0);

  return {
    xds: {
      streams: (mode, open) => streams.set({ mode }, open),
      responseSent(mode, bytes) {
        responses.inc({ mode });
        responseBytes.observe(bytes);
      },
      acked: (mode) => acks.inc({ mode }),
      nacked: (mode) => nacks.inc({ mode }),
      dropped: (reason) => drops.inc({ reason }),
    },
    adminAnswer: (route, method, status) =>
      answers.inc({ route, method: toKnownMethod(method), status: String(status) }),
    webhook: (isAccepted) => webhooks.inc({ outcome: isAccepted ? 'accepted' : 'refused' }),
    notification: (target, outcome) => notifications.inc({ target, outcome }),
    async expose() {
      now = overview();
      return { text: await registry.metrics(), mediaType: registry.contentType };
    },
  };
}

function toSeconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1000;
}

/** Clients may send any method, and each one would become a time series. */
function toKnownMethod(method: string): string {
  return ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS'].includes(method) ? method : 'other';
}
