// The composition root of `serve`: store, snapshots, xDS and admin API, put together, started in order
// and stopped in order. Read it top to bottom.
import type { IncomingHttpHeaders } from 'node:http';
import { hostname } from 'node:os';
import type { Clock } from '../../shared/clock.ts';
import { AppError } from '../../shared/errors.ts';
import type { HostPort } from '../../shared/host-port.ts';
import type { Log } from '../../shared/log.ts';
import { watchOpenFiles } from '../../shared/open-files.ts';
import { readCredentials } from '../../shared/router/index.ts';
import { yamlLibrary } from '../../shared/rules/yaml/yaml-text.ts';
import type { Environment } from '../../shared/settings/setting.ts';
import { readTlsFiles, type TlsFiles, type TlsMaterial, TlsWatch } from '../../shared/tls.ts';
import { loadDiscoveryProtos } from '../../shared/wire/discovery.ts';
import { loadFleetLink } from '../../shared/wire/fleet.ts';
import { loadProtos } from '../../shared/wire/protos.ts';
import type { AdminApi } from './admin/admin-api.ts';
import { maxBodyBytes } from './admin/admin-app.ts';
import { type AdminServer, createAdminServer } from './admin/admin-server.ts';
import { createAuthorizer } from './admin/authorize.ts';
import { createChangeTurns } from './admin/change-turns.ts';
import { createEvents } from './admin/events.ts';
import { createExamine, createReading } from './admin/examination.ts';
import { watchFleet } from './admin/fleet-events.ts';
import { mostLongAnswers } from './admin/long-answer.ts';
import { watchWorkers } from './admin/status.ts';
import { openTokenFile, parsePeerToken, parseTokens, type TokenFile } from './admin/tokens.ts';
import type { WebhookDeps } from './admin/webhook-route.ts';
import { ComparedClocks } from './compared-clocks.ts';
import { addConsoleRoutes } from './console/console-routes.ts';
import { createFleet } from './fleet/fleet.ts';
import { TrafficHistory } from './fleet/traffic-history.ts';
import { createActivity } from './history/activity/activity.ts';
import { type Audit, createAudit } from './history/activity/audit.ts';
import { openStoredActivity } from './history/activity/stored-activity.ts';
import { createMarks } from './history/last-hour/marks.ts';
import { markRevisions } from './history/last-hour/revision-marks.ts';
import { openStoredHour } from './history/last-hour/stored-hour.ts';
import { createControlPlaneMetrics } from './metrics/metrics.ts';
import { toOverview } from './metrics/overview.ts';
import { createNotifying } from './notify/notifying.ts';
import { createExchangeAsk, reportNews } from './record/peers/exchange.ts';
import { createPeers } from './record/peers/peers.ts';
import { noSteps } from './record/record.ts';
import { openRollout } from './rollout/open-rollout.ts';
import { handOverMs } from './rollout/rollout.ts';
import type { ControlPlaneSettings, ListenerSettings } from './settings.ts';
import { Building, KnownBuilds } from './snapshot/building.ts';
import { SnapshotCache } from './snapshot/cache.ts';
import { StateOwner } from './state-owner.ts';
import { removeStagedFiles } from './store/atomic-file.ts';
import { openStore } from './store/open-store.ts';
import { SharedSemaphore } from './store/semaphore.ts';
import { listSetAside } from './store/set-aside.ts';
import { createWorkThread } from './work-thread.ts';
import { AdsServer, type AdsTls, type Authorization } from './xds/ads-server.ts';
import { type ConnectedWorkers, markUnused } from './xds/workers.ts';

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

export const tlsIntervalMs = 5_000;
/** The purposes of TLS files, by their names in metrics. */
const tlsUses = {
  xds: 'new connections',
  admin: 'new connections',
  peers: 'questions to peers',
} as const;
const noTlsFiles: TlsFiles = { ca: undefined, cert: undefined, key: undefined };
/** A younger staged file is left alone: another control plane may be writing it into the same directory of rules. */
const stagedByOthersMs = 60_000;
/** How long the examination of what a caller asks about may take. */
const examinationMs = 30_000;
/** How long streams and requests may take to end; streams end with a status that sends workers elsewhere. */
const stopGraceMs = 2_000;
/** How long the last files may take to write. */
const lastWritesMs = 1_000;
/** The time limit of the whole stop: the record is handed over while the admin port closes, then the streams end. */
export const stopTimeoutMs = Math.max(handOverMs, stopGraceMs) + stopGraceMs + lastWritesMs;

export function createControlPlane(deps: ControlPlaneDeps): ControlPlane {
  return new RunningControlPlane(deps);
}

class RunningControlPlane implements ControlPlane {
  readonly #deps: ControlPlaneDeps;
  readonly #parts: Parts;
  readonly #files: WatchedFiles;
  readonly #open: { close(): void }[] = [];
  #ads: AdsServer | undefined;
  #admin: AdminServer | undefined;
  /** Every caller can ask for health: only the log has the store's address. */
  #awaited: string | undefined = 'the store of the rules';
  #xdsPort: number | undefined;

  constructor(deps: ControlPlaneDeps) {
    this.#deps = deps;
    this.#files = new WatchedFiles(deps);
    this.#parts = createParts(deps, this.#files.certificates, () => this.#ads?.workers);
  }

  async start(signal: AbortSignal): Promise<ControlPlaneAddresses | undefined> {
    const { settings, log, clock } = this.#deps;
    const parts = this.#parts;
    const { store, snapshots, owner, storedActivity, storedHour } = parts;
    // Aborts the store's work, so that a stop need not wait for it.
    signal.addEventListener('abort', () => void store.close(), { once: true });
    this.#open.push(this.#files, watchOpenFiles({ clock, log }));
    const admin = await this.#startAdmin();
    await removeLeftovers(settings);
    log.info(`Admin API on ${admin}; rules from ${store.description}`);
    if (signal.aborted) return undefined;
    await parts.notifying?.check();
    await owner.start();
    await parts.opened.read();
    await storedActivity.read();
    const servedBefore = await storedHour.read();
    await snapshots.start();
    this.#watchEvents(servedBefore);
    parts.rollout.start();
    storedHour.start();
    storedActivity.start();
    this.#awaited = 'the xDS port';
    if (signal.aborted) return undefined;
    const xds = await this.#startAds();
    this.#awaited = undefined;
    log.info(`Workers are served on ${xds} (xDS)`);
    return { admin, xds };
  }

  async stop(): Promise<void> {
    const parts = this.#parts;
    this.#awaited = 'nothing: the control plane is stopping';
    for (const each of this.#open) each.close();
    // Before any worker leaves: another control plane continues the rollout, and no caller reads that there are no workers.
    await Promise.all([parts.rollout.stop(), this.#admin?.stop(stopGraceMs)]);
    parts.notifying?.stop();
    parts.fleet.stop();
    await this.#ads?.stop(stopGraceMs);
    await parts.storedHour.stop();
    await parts.storedActivity.stop();
    await parts.owner.stop();
    await parts.examining.close();
    await parts.opened.close();
    await parts.snapshots.close();
    await parts.store.close();
  }

  /** `servedBefore`: the revision in force at the end of the process before. */
  #watchEvents(servedBefore: string | undefined): void {
    const { settings, log, clock } = this.#deps;
    const { store, snapshots, workers, fleet, marks, activity, peers } = this.#parts;
    const events = watchFleet({ snapshots, workers, fleet, marks, activity, log, clock });
    this.#open.push({ close: markRevisions(snapshots, marks, servedBefore) }, events);
    if (peers && (settings.peersTokenFile || !settings.admin.tokensFile)) {
      const ask = createExchangeAsk(peers, settings.peersTokenFile);
      this.#open.push(
        { close: reportNews(store, ask) },
        { close: watchWorkers(ask, clock, events.noteAnswers) },
      );
    }
  }

  async #startAdmin(): Promise<string> {
    const { settings, log, clock } = this.#deps;
    const { address, tls, tokensFile, isLoopback } = settings.admin;
    const parts = this.#parts;
    const { store, clocks, metrics } = parts;
    const files = this.#files;
    const material = tls && (await readMaterial(tls, 'TLS'));
    await this.#readPeersTls();
    const tokens = await files.openTokens('--admin-tokens-file', tokensFile);
    const { peersTokenFile } = settings;
    const peerToken = await files.openTokens('--peers-token-file', peersTokenFile, parsePeerToken);
    const authorizer = createAuthorizer({ tokens, peerToken, isLoopback, audit: parts.auditToLog });
    const api: AdminApi = {
      ...parts.ofApi,
      reading: createReading(parts.examining),
      turns: createChangeTurns(clock),
      longAnswers: new SharedSemaphore(mostLongAnswers, mostLongAnswers / 2),
      listSetAside: () => listSetAside(settings.stateDirectory),
      clockProblem: () => clocks.problem,
      allowsRemoval: settings.allowsRemoval,
      recordings: settings.recordings,
      sourceUrl: settings.sourceUrl,
      clock,
      callerOf: authorizer.callerOf,
      scopeOf: authorizer.scopeOf,
      mayGoOn: authorizer.mayGoOn,
      awaited: () => this.#awaited,
      xdsPort: () => this.#xdsPort,
      exposeMetrics: metrics.expose,
    };
    const webhook: WebhookDeps = {
      ...{ settings: settings.webhook, store },
      onCall(isAccepted, text) {
        metrics.webhook(isAccepted);
        if (isAccepted) log.info(text);
        else log.warning(text);
      },
    };
    const onAnswer = metrics.adminAnswer;
    const { guard, isAuthenticated } = authorizer;
    const admin = await createAdminServer(
      { api, guard, isAuthenticated, webhook, addConsole: addConsoleRoutes, log, onAnswer },
      { address, tls: material },
    );
    this.#admin = admin;
    const port = await admin.start();
    files.watchTls('admin', tls, material, admin.replaceTls);
    return `${tls ? 'https' : 'http'}://${toHostPort({ ...address, port })}`;
  }

  /** After the files of the admin port, which may be these as well: their problems have its name. */
  async #readPeersTls(): Promise<void> {
    const { peers } = this.#parts;
    const tls = this.#deps.settings.peers?.tls;
    if (peers === undefined || tls === undefined) return;
    const own = await readMaterial({ ...tls, ca: undefined }, '--peers-cert and --peers-key');
    const trusted = await readMaterial({ ...noTlsFiles, ca: tls.ca }, '--peers-ca');
    const material = { ...own, ca: trusted.ca };
    peers.replaceTls(material);
    this.#files.watchTls('peers', tls, material, peers.replaceTls);
  }

  async #startAds(): Promise<string> {
    const { settings, log, clock } = this.#deps;
    const { address, tls, tokensFile } = settings.xds;
    const { snapshots, metrics, fleet } = this.#parts;
    const material = tls && (await readMaterial(tls, 'TLS'));
    const tokens = await this.#files.openTokens('--xds-tokens-file', tokensFile);
    const ads = new AdsServer(
      {
        ...{ snapshots, log, clock, protos: loadDiscoveryProtos(), metrics: metrics.xds },
        methods: new Map([[fleet.path, fleet.open]]),
        ...(tokens && { authorize: (headers) => authorizeWorker(tokens, headers) }),
      },
      {
        host: address.host === '' ? '::' : address.host,
        port: address.port,
        ...(material && { tls: toAdsTls(material) }),
      },
    );
    this.#ads = ads;
    const port = await ads.start();
    snapshots.onChange(() => ads.refresh());
    this.#xdsPort = port;
    this.#files.watchTls('xds', tls, material, (changed) => ads.replaceTls(toAdsTls(changed)));
    return toHostPort({ ...address, port });
  }
}

type Parts = ReturnType<typeof createParts>;

/** What is the same from the start to the end. `findWorkers`: undefined until the xDS port is open. */
function createParts(
  deps: ControlPlaneDeps,
  certificates: WatchedFiles['certificates'],
  findWorkers: () => ConnectedWorkers | undefined,
) {
  const { settings, log, clock } = deps;
  const { stateDirectory } = settings;
  const store = openStore(deps);
  const auditToLog = createAudit(deps.auditLog);
  const activity = createActivity(clock);
  const audit: Audit = (change) => {
    auditToLog(change);
    activity.note(change);
  };
  const clocks = new ComparedClocks(clock, log);
  const peers = settings.peers && createPeers({ ...settings.peers, clocks });
  const { building, examining, thread } = createBuilding(deps);
  const examine = createExamine(examining);
  const repositoryFolder = toRepositoryFolder(settings);
  const notifying = createNotifying({
    ...{ settings: settings.notify, store, examine, repositoryFolder, log, clock },
    onEnd: (target, delivery) => metrics.notification(target, delivery),
  });
  const onOutcome = notifying?.notify;
  const opened = openRollout({ ...deps, store, peers, clocks, audit, onOutcome });
  const snapshots = new SnapshotCache({
    ...{ store, repositoryFolder, building, stateDirectory, memory: opened.memory, log, clock },
    allowsRemoval: settings.allowsRemoval,
  });
  const stored = { ...deps, stateDirectory, store: store.description };
  const storedActivity = openStoredActivity({ ...stored, activity });
  const history = new TrafficHistory(clock);
  const marks = createMarks(clock);
  const readInForce = () => snapshots.state().inForce?.revision.id;
  const storedHour = openStoredHour({ ...stored, history, marks, readInForce });
  const name = `${hostname()}:${settings.admin.address.port}, process ${process.pid}`;
  const owner = new StateOwner({ stateDirectory, name, log, clock });
  const fleet = createFleet({ method: loadFleetLink(), history, log, clock });
  const workers: ConnectedWorkers = {
    list: () => markUnused(findWorkers()?.list() ?? [], fleet.counted(), clock.monotonicMs()),
    vanished: () => findWorkers()?.vanished() ?? [],
  };
  const rollout = opened.create({ snapshots, workers, readCounted: fleet.counted });
  const metrics = createControlPlaneMetrics(() =>
    toOverview(snapshots, workers, rollout, certificates, clock.monotonicMs()),
  );
  const events = createEvents({ snapshots, workers, rollout }, clock);
  const ofApi = {
    ...{ store, snapshots, workers, fleet, activity, marks, examine, thread, rollout, peers },
    ...{ repositoryFolder, audit, events },
  };
  return {
    ...{ ...ofApi, ofApi, auditToLog, clocks, examining, notifying, opened },
    ...{ storedActivity, storedHour, owner, metrics },
  };
}

/** `building` is for revisions of the store, `examining` for what a caller asks about. */
function createBuilding({ settings, clock }: ControlPlaneDeps) {
  // At the start: the first unusual file would block all streams for as long as the library takes to load.
  yamlLibrary();
  const options = {
    mergeDomains: settings.mergeDomains,
    maxResponseBytes: settings.xds.maxResponseBytes,
    rollsOut: settings.rollout !== '' && settings.rollout !== noSteps,
    advises: true,
  };
  const encode = loadProtos().rateLimitConfig.serialize;
  const shared = { options, encode, clock, known: new KnownBuilds(options) };
  const asked = { deadlineMs: examinationMs, mostWaiting: maxBodyBytes };
  const thread = createWorkThread({ clock, ...asked });
  return {
    building: new Building(shared),
    examining: new Building({ ...shared, thread }),
    thread,
  };
}

/** Token and TLS files, which are read again when they change. */
class WatchedFiles {
  readonly certificates: Partial<Record<keyof typeof tlsUses, TlsWatch>> = {};
  readonly #deps: Pick<ControlPlaneDeps, 'log' | 'clock'>;
  readonly #open: { close(): void }[] = [];

  constructor(deps: Pick<ControlPlaneDeps, 'log' | 'clock'>) {
    this.#deps = deps;
  }

  async openTokens(
    setting: string,
    path: string | undefined,
    parse = parseTokens,
  ): Promise<TokenFile | undefined> {
    if (path === undefined) return undefined;
    const { log, clock } = this.#deps;
    const tokens = await openTokenFile({ path, setting, parse, log, clock });
    this.#open.push(tokens);
    return tokens;
  }

  watchTls(
    name: keyof typeof tlsUses,
    tls: ListenerSettings['tls'],
    material: TlsMaterial | undefined,
    replace: (material: TlsMaterial) => void,
  ): void {
    const { log, clock } = this.#deps;
    const use = tlsUses[name];
    if (tls === undefined || material === undefined) return;
    const watch = new TlsWatch({
      ...{ files: tls, material, clock, intervalMs: tlsIntervalMs },
      onChange(changed) {
        replace(changed);
        log.info(`TLS: ${tls.cert ?? tls.ca} has changed and is used for ${use}`);
      },
      onProblem: (problem) =>
        log.error(`TLS: the previous files stay in use for ${use}: ${problem}`),
    });
    this.#open.push(watch);
    this.certificates[name] = watch;
  }

  close(): void {
    for (const each of this.#open) each.close();
  }
}

/** Removes half-written files of a killed process. */
async function removeLeftovers({ config, stateDirectory }: ControlPlaneSettings): Promise<void> {
  await removeStagedFiles(stateDirectory, 0);
  if (config.kind === 'directory') await removeStagedFiles(config.directory, stagedByOthersMs);
}

/** '' or such as `rules/`. */
function toRepositoryFolder({ config }: ControlPlaneSettings): string {
  const parts = config.kind === 'git' ? config.path.split('/') : [];
  return parts
    .filter((part) => part !== '' && part !== '.')
    .map((part) => `${part}/`)
    .join('');
}

/** `what` names the files in the message about a problem. */
async function readMaterial(files: TlsFiles, what: string): Promise<TlsMaterial> {
  const reading = await readTlsFiles(files);
  if (!reading.ok) throw new AppError('cannot_start', `${what}: ${reading.problem}`);
  return reading.material;
}

function toAdsTls({ ca, cert, key }: TlsMaterial): AdsTls {
  return {
    certificate: cert?.toString() ?? '',
    key: key?.toString() ?? '',
    ...(ca && { clientCa: ca.toString() }),
  };
}

function authorizeWorker(tokens: TokenFile, headers: IncomingHttpHeaders): Authorization {
  const token = readCredentials(headers.authorization, 'bearer');
  if (token === undefined) return { ok: false, reason: 'a bearer token is required' };
  const reasonAgainst = () =>
    tokens.find(token)?.scope === 'xds' ? undefined : 'unknown bearer token';
  const reason = reasonAgainst();
  return reason === undefined ? { ok: true, reasonAgainst } : { ok: false, reason };
}

function toHostPort({ host, port }: HostPort): string {
  return `${host.includes(':') ? `[${host}]` : host || '0.0.0.0'}:${port}`;
}
