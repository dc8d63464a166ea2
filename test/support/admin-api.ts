// The admin API over a real socket and a real store, without workers.
import { randomUUID } from 'node:crypto';
import type { ExecutionContext } from 'ava';
import { createAdminServer } from '../../control-plane/server/admin/admin-server.ts';
import { createAuthorizer } from '../../control-plane/server/admin/authorize.ts';
import { createChangeTurns } from '../../control-plane/server/admin/change-turns.ts';
import { createEvents } from '../../control-plane/server/admin/events.ts';
import { createExamine, createReading } from '../../control-plane/server/admin/examination.ts';
import { mostLongAnswers } from '../../control-plane/server/admin/long-answer.ts';
import { parseTokens, type TokenSet } from '../../control-plane/server/admin/tokens.ts';
import { addConsoleRoutes } from '../../control-plane/server/console/console-routes.ts';
import { createFleet, type Fleet } from '../../control-plane/server/fleet/fleet.ts';
import { TrafficHistory } from '../../control-plane/server/fleet/traffic-history.ts';
import { createActivity } from '../../control-plane/server/history/activity/activity.ts';
import { type Audit, createAudit } from '../../control-plane/server/history/activity/audit.ts';
import { createMarks } from '../../control-plane/server/history/last-hour/marks.ts';
import { createControlPlaneMetrics } from '../../control-plane/server/metrics/metrics.ts';
import { toOverview } from '../../control-plane/server/metrics/overview.ts';
import type { PeerSource } from '../../control-plane/server/record/peers/peer-list.ts';
import { createPeers, type Peers } from '../../control-plane/server/record/peers/peers.ts';
import { RecordKeeper, unsharedTiming } from '../../control-plane/server/record/record-keeper.ts';
import { toRevisionMemory } from '../../control-plane/server/record/record-state.ts';
import { Rollout } from '../../control-plane/server/rollout/rollout.ts';
import { Building } from '../../control-plane/server/snapshot/building.ts';
import { SnapshotCache } from '../../control-plane/server/snapshot/cache.ts';
import { createDirectoryStore } from '../../control-plane/server/store/directory-store.ts';
import { SharedSemaphore } from '../../control-plane/server/store/semaphore.ts';
import type { ConfigStore } from '../../control-plane/server/store/store.ts';
import type { WebhookSettings } from '../../control-plane/server/store/webhook.ts';
import { createWorkThread } from '../../control-plane/server/work-thread.ts';
import type { ConnectedWorkers } from '../../control-plane/server/xds/workers.ts';
import { type Clock, systemClock } from '../../shared/clock.ts';
import { loadFleetLink } from '../../shared/wire/fleet.ts';
import { loadProtos } from '../../shared/wire/protos.ts';
import { eventually } from './eventually.ts';
import { createMemoryText } from './record-texts.ts';
import { createRecordedLog } from './recorded-log.ts';
import { createRulesFolder } from './rules-folder.ts';

const encode = loadProtos().rateLimitConfig.serialize;

export interface AdminApiOptions {
  /** Default: every worker gets a new revision at once. */
  /** As in `--rollout`. */
  readonly steps?: string;
  /** Texts by file name in the directory. */
  readonly files: Readonly<Record<string, string>>;
  /** Replaces that directory. */
  readonly store?: ConfigStore;
  /** Default: far more than a test's rules need. */
  readonly maxResponseBytes?: number;
  readonly peers?: readonly PeerSource[];
  /** The time limit for each answer of a peer, in place of the query's own. */
  readonly peerAnswerMs?: number;
  /** By default none are connected. */
  readonly workers?: Pick<ConnectedWorkers, 'list'>;
  /** Replaces parts of a fleet without links. */
  readonly fleet?: Partial<Fleet>;
  /** A directory of recorded decisions. */
  readonly recordings?: string;
  readonly clockProblem?: string;
  /** Instead of a free one. */
  readonly port?: number;
  /** In the format of the token file; without it no token is required. */
  readonly tokens?: string;
  /** Instead of the system's. */
  readonly clock?: Clock;
  /** Default: each call is refused. */
  readonly webhook?: WebhookSettings;
}

/** Stopped when the test ends. */
export async function startAdminApi(t: ExecutionContext, api: AdminApiOptions) {
  const rules = createRulesFolder(t);
  const stateDirectory = createRulesFolder(t).path;
  for (const [name, text] of Object.entries(api.files)) rules.write(name, text);
  const options = {
    mergeDomains: false,
    maxResponseBytes: api.maxResponseBytes ?? 16_000_000,
    rollsOut: api.steps !== undefined,
  };
  const log = createRecordedLog();
  const clock = api.clock ?? systemClock;
  const store =
    api.store ??
    createDirectoryStore({ options: { directory: rules.path, stateDirectory }, log, clock });
  const keeper = new RecordKeeper({
    shared: undefined,
    timing: unsharedTiming,
    own: createMemoryText(),
    steps: api.steps ?? '',
    id: 'this',
    name: 'this:1',
    log,
    clock,
  });
  const thread = createWorkThread({ clock });
  const examining = new Building({
    ...{ encode, clock, thread },
    options: { ...options, advises: true },
  });
  t.teardown(() => examining.close());
  const snapshots = new SnapshotCache({
    store,
    building: new Building({ options, encode, clock }),
    stateDirectory,
    allowsRemoval: false,
    memory: () => toRevisionMemory(keeper.state),
    log,
    clock,
  });
  const workers = { vanished: () => [], list: () => [], ...api.workers };
  const history = new TrafficHistory(clock);
  const fleet = { ...createFleet({ method: loadFleetLink(), history, log, clock }), ...api.fleet };
  const marks = createMarks(clock);
  const rollout = new Rollout({
    reportsOutcomes: false,
    snapshots,
    workers,
    readCounted: fleet.counted,
    keeper,
    askPeers: undefined,
    store,
    drawId: randomUUID,
    onEvent() {},
    log,
    clock,
  });
  const metrics = createControlPlaneMetrics(() => toOverview(snapshots, workers, rollout));
  const activity = createActivity(clock);
  const auditToLog = createAudit(log);
  const audit: Audit = (change) => {
    auditToLog(change);
    activity.note(change);
  };
  const authorizer = createAuthorizer({
    tokens: toTokens(api.tokens),
    peerToken: undefined,
    isLoopback: true,
    audit,
  });
  const events = createEvents({ snapshots, workers, rollout }, clock);
  const server = await createAdminServer(
    {
      api: {
        store,
        snapshots,
        workers,
        fleet,
        activity,
        marks,
        examine: createExamine(examining),
        reading: createReading(examining),
        thread,
        turns: createChangeTurns(clock),
        longAnswers: new SharedSemaphore(mostLongAnswers, mostLongAnswers),
        rollout,
        peers:
          api.peers && withAnswerMs(createPeers({ sources: api.peers, dnsProtocol: 'http:' }), api),
        clockProblem: () => api.clockProblem,
        allowsRemoval: false,
        recordings: api.recordings,
        repositoryFolder: '',
        sourceUrl: undefined,
        clock,
        audit,
        callerOf: authorizer.callerOf,
        scopeOf: authorizer.scopeOf,
        mayGoOn: authorizer.mayGoOn,
        events,
        awaited: () => undefined,
        xdsPort: () => undefined,
        listSetAside: async () => [],
        exposeMetrics: metrics.expose,
      },
      guard: authorizer.guard,
      isAuthenticated: authorizer.isAuthenticated,
      webhook: {
        settings: api.webhook ?? { secret: '', secretFile: undefined },
        store,
        onCall() {},
      },
      addConsole: addConsoleRoutes,
      log,
      onAnswer: metrics.adminAnswer,
    },
    { address: { host: '127.0.0.1', port: api.port ?? 0 }, tls: undefined },
  );
  t.teardown(async () => {
    await rollout.stop();
    await server.stop(100);
    await snapshots.close();
    await store.close();
  });
  await keeper.start();
  await snapshots.start();
  // A start does not wait for a slow store.
  if (api.store === undefined)
    await eventually('the files are read', () => snapshots.state().newest !== undefined);
  rollout.start();
  const port = await server.start();
  const url = `http://127.0.0.1:${port}`;
  return { url, port, log, rules, store, marks, snapshots, ask: asking(url) };
}

export type AdminApi = Awaited<ReturnType<typeof startAdminApi>>;

export interface Asking {
  readonly yaml?: string;
  readonly json?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers of many shapes
  readonly body: any;
}

/** JSON in the reply is parsed. */
function asking(url: string) {
  return async (method: string, path: string, asked: Asking = {}): Promise<Reply> => {
    const { yaml, json, headers } = asked;
    const type = yaml === undefined ? 'application/json' : 'application/yaml';
    const body = yaml ?? (json === undefined ? undefined : JSON.stringify(json));
    const answer = await fetch(`${url}${path}`, {
      method,
      ...(body !== undefined && { body }),
      headers: { ...(body !== undefined && { 'content-type': type }), ...headers },
    });
    const text = await answer.text();
    const isJson = answer.headers.get('content-type')?.includes('json') === true;
    return {
      status: answer.status,
      headers: answer.headers,
      body: isJson ? JSON.parse(text) : text,
    };
  };
}

function withAnswerMs(peers: Peers, { peerAnswerMs: timeoutMs }: AdminApiOptions): Peers {
  if (timeoutMs === undefined) return peers;
  return {
    ...peers,
    ask: (question, ...others) => peers.ask({ ...question, timeoutMs }, ...others),
  };
}

function toTokens(text: string | undefined): TokenSet | undefined {
  if (text === undefined) return undefined;
  const result = parseTokens(text, 'tokens');
  if (!result.ok) throw new Error(result.problems.join('; '));
  return result.tokens;
}
