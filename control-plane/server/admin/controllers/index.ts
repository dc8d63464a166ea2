// The root of the admin API: health, metrics, workers and their versions, and the OpenAPI description.
import Type from 'typebox';
import { type Fields, op, open } from '../../../../shared/router/index.ts';
import { orNull } from '../../api-shape.ts';
import { shortestRevisionPrefix } from '../../store/store.ts';
import { AdminController } from '../admin-controller.ts';
import { fleetJson, toFleet, workerStateJson } from '../fleet-json.ts';
import { askingPeer, missingJson } from '../joined.ts';
import { toStatus } from '../status.ts';
import {
  type AskedJson,
  listInstances,
  type OwnStatus,
  statusJson,
  toOwnStatus,
} from '../status-report.ts';

const health = Type.Object({ status: Type.String(), detail: Type.String() }, { title: 'Health' });

export class Healthcheck extends AdminController {
  static override readonly guard = open();
  static readonly GET = op({
    summary: 'Whether workers are served, or what that waits for',
    description:
      'For a readiness probe. 503 also while no revision could be in force yet: workers go to another control plane then. An unreachable store does not matter while an earlier revision is served.',
    returns: { 200: health, 503: health },
  });

  GET() {
    const { api } = this;
    const hasRules = api.snapshots.ruleSet !== undefined;
    const awaited = api.awaited() ?? (hasRules ? undefined : 'a revision that can be in force');
    if (awaited === undefined) return { status: 'ok', detail: 'workers are served' };
    this.response.status = 503;
    return { status: 'starting', detail: awaited };
  }
}

export class Metrics extends AdminController {
  static readonly GET = op({
    summary: 'Metrics in the text format of Prometheus',
    produces: 'text/plain',
    returns: { 200: Type.String() },
  });

  async GET() {
    const { text, mediaType } = await this.api.exposeMetrics();
    this.response.mediaType = mediaType;
    return text;
  }
}

export class Openapi_json extends AdminController {
  static readonly GET = op({
    summary: 'This description',
    returns: { 200: Type.Object({}, { additionalProperties: true }) },
  });

  GET() {
    return this.describe();
  }
}

export class Access extends AdminController {
  static readonly GET = op({
    summary: 'Who the caller is, and what the caller may do',
    returns: {
      200: Type.Object(
        {
          name: Type.String({ description: 'Of the token; local where none is needed' }),
          scope: Type.Union([Type.Literal('read'), Type.Literal('write')]),
          rollout: Type.Boolean({ description: 'Whether revisions are rolled out in steps' }),
          xdsPort: orNull(
            Type.Integer({ description: 'Where workers get their rules; null until it is open' }),
          ),
          folder: Type.String({
            description: 'Of the rules in their repository, such as `rules/`; empty at its root',
          }),
          sourceUrl: orNull(
            Type.String({
              description:
                'The address at which files of the rules can be read, with `{file}`, `{line}` and `{revision}`',
            }),
          ),
        },
        { title: 'Access' },
      ),
    },
  });

  GET() {
    const { api, request } = this;
    return {
      name: api.callerOf(request),
      scope: api.scopeOf(request),
      rollout: api.rollout.plan !== undefined,
      xdsPort: api.xdsPort() ?? null,
      folder: api.repositoryFolder,
      sourceUrl: api.sourceUrl?.replace('{file}', `${api.repositoryFolder}{file}`) ?? null,
    };
  }
}

/** How long a client waits for a poll of the store; after that, it receives the last known state. */
const askTimeoutMs = 5_000;

export class Status extends AdminController {
  static readonly GET = op({
    summary: 'Whether the newest revision is in force everywhere',
    query: Type.Object({
      look: Type.Boolean({
        default: false,
        description: 'Poll for a newer revision first, for at most 5 seconds',
      }),
      revision: Type.Optional(
        Type.String({
          minLength: shortestRevisionPrefix,
          maxLength: 64,
          description: 'Report where this revision is, in `asked`; its beginning is enough',
        }),
      ),
      workers: Type.Boolean({
        default: false,
        description: 'Include the workers one by one, in `fleet`',
      }),
      peer: askingPeer,
    }),
    returns: { 200: statusJson },
    failures: { 409: undefined, 503: undefined },
  });

  async GET({ look, revision, workers, peer }: Fields<typeof Status.GET>) {
    const query = revision === undefined ? '' : `&revision=${encodeURIComponent(revision)}`;
    // A peer follows its store by itself: a poll could take longer than the time limit for its answer.
    const path = `/status?look=false&workers=${workers}${query}`;
    const answers = await this.askEachPeer(path, statusJson, peer, {}, listInstances);
    const own = await this.readOwn(look, revision);
    const isAlone = this.api.peers === undefined || peer !== undefined;
    const status = toStatus(own, isAlone ? undefined : answers, { revision, workers });
    if (peer === undefined) return status;
    // The control plane that asks judges all workers together.
    const { verdict, text } = own;
    return { ...own, ...status, verdict, text };
  }

  private async readOwn(look: boolean, revision: string | undefined): Promise<OwnStatus> {
    const { store, snapshots, fleet, rollout, clock } = this.api;
    const hasAnswered = look && (await this.askStore());
    return toOwnStatus({
      asked: revision === undefined ? null : await this.locate(revision, hasAnswered),
      setAside: await this.api.listSetAside(),
      storeDescription: store.description,
      state: snapshots.state(),
      fleet: this.readFleet(),
      linked: fleet.list(),
      nowMs: clock.wallMs(),
      rollout: rollout.state(),
      rolloutWarning: rollout.warning(),
      memory: rollout.memory(),
      clockProblem: this.api.clockProblem(),
    });
  }

  /** True when the store has answered in time. */
  private async askStore(): Promise<boolean> {
    const { store, clock } = this.api;
    const timeout = Promise.withResolvers<boolean>();
    const cancel = clock.after(askTimeoutMs, () => timeout.resolve(false));
    const asked = store.trigger().then(() => store.status().reachable);
    const hasAnswered = await Promise.race([asked, timeout.promise]);
    cancel();
    return hasAnswered;
  }

  private async locate(revision: string, hasAnswered: boolean): Promise<AskedJson> {
    const { store, snapshots } = this.api;
    const newest = snapshots.state().newest?.revision.id;
    if (newest === undefined) return { id: revision, place: 'not_known' };
    const found = await this.fromStore(store.locate(revision, newest));
    if (found === undefined) return { id: revision, place: hasAnswered ? 'missing' : 'not_known' };
    const { id, isIncluded } = found;
    return { id, place: id === newest ? 'newest' : isIncluded ? 'superseded' : 'apart' };
  }
}

const workersJson = Type.Object({ ...fleetJson.properties, missing: missingJson });

export class Workers extends AdminController {
  static readonly GET = op({
    summary: 'Every connected worker, and its rules',
    description:
      'With the links that no rollout is judged by, which have no stream of rules of the same instance and node id, and with the workers whose connection broke without a goodbye in the last hour.',
    query: Type.Object({
      state: Type.Optional(workerStateJson),
      peer: askingPeer,
    }),
    returns: { 200: workersJson },
    failures: { 409: undefined },
  });

  async GET({ state, peer }: Fields<typeof Workers.GET>) {
    const { values, missing } = await this.askPeers('/workers', workersJson, peer);
    const all = toFleet([this.readFleet(), ...values]);
    return {
      ...all,
      workers: all.workers.filter((worker) => state === undefined || worker.state === state),
      missing,
    };
  }
}
