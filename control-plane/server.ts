// The composition root of `serve`: store, snapshots, xDS and admin API, put together, started in order
// and stopped in order. Read it top to bottom.
import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../shared/clock.ts';
import { AppError } from '../shared/errors.ts';
import type { HostPort } from '../shared/host-port.ts';
import type { Log } from '../shared/log.ts';
import { readCredentials } from '../shared/router/guard.ts';
import type { Environment } from '../shared/settings/setting.ts';
import { readTlsFiles, type TlsMaterial, type TlsWatch, watchTlsFiles } from '../shared/tls.ts';
import { loadDiscoveryProtos } from '../shared/wire/discovery.ts';
import { loadFleetLink } from '../shared/wire/fleet.ts';
import { loadProtos } from '../shared/wire/protos.ts';
import type { AdminApi } from './admin/admin-api.ts';
import { type AdminServer, createAdminServer } from './admin/admin-server.ts';
import { createAudit } from './admin/audit.ts';
import { createAuthorizer } from './admin/authorize.ts';
import { createEvents } from './admin/events.ts';
import { createExamine } from './admin/examination.ts';
import { openTokenFile, type TokenFile } from './admin/tokens.ts';
import { createWebhook } from './admin/webhook-deps.ts';
import { type Counted, createFleet } from './fleet/fleet.ts';
import { createControlPlaneMetrics } from './metrics/metrics.ts';
import { toOverview } from './metrics/overview.ts';
import { createPeers } from './peers/peers.ts';
import type { Traffic } from './rollout/judgement.ts';
import { openRollout } from './rollout/open-rollout.ts';
import type { ControlPlaneSettings, ListenerSettings } from './settings.ts';
import { createSnapshotCache } from './snapshot/cache.ts';
import { removeStagedFiles } from './store/atomic-file.ts';
import { openStore } from './store/open-store.ts';
import { withPatience } from './store/patient-store.ts';
import { type AdsServer, type Authorization, createAdsServer } from './xds/ads-server.ts';
import type { AdsTls } from './xds/http2-server.ts';
import type { ConnectedWorkers } from './xds/workers.ts';

export interface ControlPlaneDeps {
  readonly settings: ControlPlaneSettings;
  readonly log: Log;
  /** Writes at the level info, whatever the level of `log`. */
  readonly auditLog: Log;
  readonly clock: Clock;
  /** The process's environment, for git. */
  readonly environment: Environment;
}

export interface ControlPlaneAddresses {
  readonly admin: string;
  readonly xds: string;
}

export interface ControlPlane {
  /** Resolves when workers are served, possibly with an earlier revision; rejects with an AppError. */
  start(signal: AbortSignal): Promise<ControlPlaneAddresses | undefined>;
  /** Bounded in time. */
  stop(): Promise<void>;
}

const tlsIntervalMs = 5_000;
/** Another control plane may write into the same directory of rules. */
const stagedByOthersMs = 60_000;
/** How long streams and requests may take to end; streams end with a status that sends workers elsewhere. */
export const stopGraceMs = 2_000;

export function createControlPlane(deps: ControlPlaneDeps): ControlPlane {
  const { settings, log, clock } = deps;
  const { encode } = createEncoder();
  const store = openStore(deps);
  const build = {
    mergeDomains: settings.mergeDomains,
    maxResponseBytes: settings.xds.maxResponseBytes,
    rollsOut: settings.rollout !== undefined,
  };
  const { stateDirectory } = settings;
  const audit = createAudit(deps.auditLog);
  const peers = settings.peers && createPeers(settings.peers);
  const opened =
    settings.rollout && openRollout({ ...deps, plan: settings.rollout, store, peers, audit });
  const snapshots = createSnapshotCache({
    store: withPatience(store, { clock, log }),
    options: build,
    encode,
    stateDirectory,
    allowsRemoval: settings.allowsRemoval,
    trials: opened,
    log,
    clock,
  });
  let ads: AdsServer | undefined;
  let admin: AdminServer | undefined;
  let awaited: string | undefined = `the store ${store.description}`;
  const workers: ConnectedWorkers = {
    list: () => ads?.workers.list() ?? [],
    vanished: () => ads?.workers.vanished() ?? [],
  };
  const fleet = createFleet({ method: loadFleetLink(), log, clock });
  const rollout = opened?.create({
    snapshots,
    workers,
    readTraffic: createReadTraffic(fleet.counted),
  });
  const metrics = createControlPlaneMetrics(() => toOverview(snapshots, workers, rollout?.state()));
  const events = createEvents({ snapshots, workers, rollout }, clock);
  const open: { close(): void }[] = [];

  async function openTokens(path: string | undefined): Promise<TokenFile | undefined> {
    if (path === undefined) return undefined;
    const tokens = await openTokenFile({ path, log, clock });
    open.push(tokens);
    return tokens;
  }

  function watchTls(
    tls: ListenerSettings['tls'],
    material: TlsMaterial | undefined,
    replace: (material: TlsMaterial) => void,
  ): void {
    if (tls === undefined || material === undefined) return;
    const watch: TlsWatch = watchTlsFiles({
      files: tls,
      material,
      clock,
      intervalMs: tlsIntervalMs,
      onChange(changed) {
        replace(changed);
        log.info(`TLS: ${tls.cert} has changed and is used for new connections`);
      },
      onProblem: (problem) => log.error(`TLS: the previous files stay in use: ${problem}`),
    });
    open.push(watch);
  }

  async function startAdmin(): Promise<string> {
    const { address, tls, tokensFile } = settings.admin;
    const material = await readMaterial(tls);
    const authorizer = createAuthorizer(await openTokens(tokensFile), audit);
    const api: AdminApi = {
      store,
      snapshots,
      workers,
      fleet,
      examine: createExamine({ encode, options: build }),
      rollout,
      peers,
      allowsRemoval: settings.allowsRemoval,
      clock,
      audit,
      callerOf: authorizer.callerOf,
      scopeOf: authorizer.scopeOf,
      events,
      awaited: () => awaited,
      exposeMetrics: metrics.expose,
    };
    const webhook = createWebhook(settings, store, (isAccepted, text) => {
      metrics.webhook(isAccepted);
      if (isAccepted) log.info(text);
      else log.warning(text);
    });
    const onAnswer = metrics.adminAnswer;
    const { guard, isAuthenticated } = authorizer;
    admin = await createAdminServer(
      { api, guard, isAuthenticated, webhook, log, onAnswer },
      { address, tls: material },
    );
    const port = await admin.start();
    watchTls(tls, material, admin.replaceTls);
    return `${tls ? 'https' : 'http'}://${toHostPort({ ...address, port })}`;
  }

  async function startAds(): Promise<string> {
    const { address, tls, tokensFile } = settings.xds;
    const material = await readMaterial(tls);
    const tokens = await openTokens(tokensFile);
    ads = createAdsServer(
      {
        snapshots,
        log,
        clock,
        protos: loadDiscoveryProtos(),
        metrics: metrics.xds,
        methods: new Map([[fleet.path, fleet.open]]),
        ...(tokens && { authorize: (headers) => authorizeWorker(tokens, headers) }),
      },
      {
        host: address.host === '' ? '::' : address.host,
        port: address.port,
        ...(material && { tls: toAdsTls(material) }),
      },
    );
    const port = await ads.start();
    watchTls(tls, material, (changed) => ads?.replaceTls(toAdsTls(changed)));
    return toHostPort({ ...address, port });
  }

  return {
    async start(signal) {
      // Aborts the store's work, so that a stop need not wait for it.
      signal.addEventListener('abort', () => void store.close(), { once: true });
      const adminUrl = await startAdmin();
      await removeLeftovers(settings);
      log.info(`Admin API on ${adminUrl}; rules from ${store.description}`);
      if (signal.aborted) return undefined;
      await opened?.read();
      await snapshots.start();
      rollout?.start();
      awaited = 'the xDS port';
      if (signal.aborted) return undefined;
      const xds = await startAds();
      awaited = undefined;
      log.info(`Workers are served on ${xds} (xDS)`);
      return { admin: adminUrl, xds };
    },
    async stop() {
      awaited = 'nothing: the control plane is stopping';
      for (const each of open) each.close();
      fleet.stop();
      events.stop();
      await ads?.stop(stopGraceMs);
      await admin?.stop(stopGraceMs);
      rollout?.stop();
      await opened?.close();
      await snapshots.close();
      await store.close();
    },
  };
}

/** Removes half-written files of a killed process. */
async function removeLeftovers({ config, stateDirectory }: ControlPlaneSettings): Promise<void> {
  await removeStagedFiles(stateDirectory, 0);
  if (config.kind === 'directory') await removeStagedFiles(config.directory, stagedByOthersMs);
}

function createEncoder() {
  const { rateLimitConfig } = loadProtos();
  return {
    encode: (message: Parameters<typeof rateLimitConfig.serialize>[0]) =>
      rateLimitConfig.serialize(message),
  };
}

/** By node id, what its instances have counted since they were first seen here, under whatever version. */
function createReadTraffic(
  counted: () => ReadonlyMap<string, Counted>,
): () => ReadonlyMap<string, Traffic> {
  let known = new Map<string, { readonly last: Counted; readonly sum: Traffic }>();
  return () => {
    const next: typeof known = new Map();
    const byNode = new Map<string, Traffic>();
    for (const [instance, last] of counted()) {
      const before = known.get(instance);
      const from = before?.last.series === last.series ? before.last : noTraffic;
      const passed = add(last, from, -1);
      const sum = add(before?.sum ?? noTraffic, passed, 1);
      next.set(instance, { last, sum });
      byNode.set(last.nodeId, add(byNode.get(last.nodeId) ?? noTraffic, sum, 1));
    }
    known = next;
    return byNode;
  };
}

const noTraffic: Traffic = { decisions: 0, overLimit: 0, errors: 0 };

function add(one: Traffic, other: Traffic, sign: 1 | -1): Traffic {
  return {
    decisions: one.decisions + sign * other.decisions,
    overLimit: one.overLimit + sign * other.overLimit,
    errors: one.errors + sign * other.errors,
  };
}

async function readMaterial(tls: ListenerSettings['tls']): Promise<TlsMaterial | undefined> {
  if (tls === undefined) return undefined;
  const reading = await readTlsFiles(tls);
  if (!reading.ok) throw new AppError('cannot_start', `TLS: ${reading.problem}`);
  return reading.material;
}

function toAdsTls({ ca, cert, key }: TlsMaterial): AdsTls {
  return {
    certificate: cert?.toString() ?? '',
    key: key?.toString() ?? '',
    ...(ca && { clientAuthorities: ca.toString() }),
  };
}

function authorizeWorker(tokens: TokenFile, headers: IncomingHttpHeaders): Authorization {
  const token = readCredentials(headers.authorization, 'bearer');
  if (token === undefined) return { ok: false, reason: 'a bearer token is required' };
  return tokens.find(token)?.scope === 'xds'
    ? { ok: true }
    : { ok: false, reason: 'the bearer token is not known here' };
}

function toHostPort({ host, port }: HostPort): string {
  return `${host.includes(':') ? `[${host}]` : host || '0.0.0.0'}:${port}`;
}
