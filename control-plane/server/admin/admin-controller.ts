// The base class of the admin API's controllers: their dependencies and shared operations.
import Type, { type Static, type TSchema } from 'typebox';
import { AppError, errorFacts } from '../../../shared/errors.ts';
import { runInSlices } from '../../../shared/in-slices.ts';
import { didYouMean, nearestWord } from '../../../shared/nearest-word.ts';
import {
  Controller,
  type ControllerContext,
  HttpError,
  type ModuleTree,
  readCredentials,
  Stop,
  statusTitle,
} from '../../../shared/router/index.ts';
import type { Problem } from '../../../shared/rules/problem/problem.ts';
import type { RuleDocument } from '../../../shared/rules/rule-document.ts';
import { findDocumentsAt, toTimeText } from '../../../shared/rules/rule-end.ts';
import { type CountersJson, countersJson, joinCounters } from '../fleet/counter-answers.ts';
import type { CountersQuestion } from '../fleet/counters.ts';
import {
  itselfStatus,
  type PeerAnswer,
  type PeerCall,
  type PeerWorkers,
} from '../record/peers/peers.ts';
import { inRepository, type Revision, toShortId } from '../store/revision.ts';
import { shortestRevisionPrefix } from '../store/store.ts';
import type { AdminApi } from './admin-api.ts';
import { localCaller } from './authorize.ts';
import {
  type ChangeRequest,
  InvalidRules,
  type MadeChange,
  makeChange,
  type PlannedChange,
  planChangeOf,
} from './change.ts';
import { type FleetJson, toFleetJson, toGoneJson } from './fleet-json.ts';
import { type PeerAnswers, toPeerAnswers } from './joined.ts';
import { creatingFindLift, listingEndedLifts } from './lifted.ts';
import { toLongAnswer } from './long-answer.ts';
import { type ProblemJson, toProblemJson } from './problem-json.ts';
import { toPrefixHint } from './revision-json.ts';

interface AdminContext extends ControllerContext {
  readonly api: AdminApi;
}

/** The argument of methods that change several domains at once. */
export const allowRemoval = Type.Optional(
  Type.Boolean({ description: 'Whether the change may remove most limits, or the last domain' }),
);

export const rollout = Type.Optional(
  Type.Union(
    [Type.Literal('now'), Type.Literal('steps'), Type.Literal('supersede'), Type.Literal('again')],
    {
      description:
        'Where revisions are rolled out in steps: to all workers at once (a message has to give the reason; a rollback gives it itself), in steps also where it goes back to what was in force before, in place of a rollout that is under way, or in steps although its rules were taken back before (a message has to give the reason)',
    },
  ),
);

export interface PreparedChange extends Omit<ChangeRequest, 'author' | 'message'> {
  /** A more precise target than the request's, if it becomes known only during the action. */
  readonly what?: string;
  readonly message: string | undefined;
  /** Whether it is a rollback, which may also restore rules without a record of having been in force. */
  readonly isUndo?: boolean;
}

/** A requested action in the format of the audit log. */
interface AuditEntry {
  readonly who: string;
  what: string;
  /** Revision ids. */
  before: string | undefined;
  after: string | undefined;
  /** The outcome of an action that does not fail. */
  outcome: string;
}

/** How long peers may take to ask their workers; a reset takes three steps. */
export const peersMs = { reading: 2_000, reset: 4_000 };
const searchedRevisions = 1000;
/** How long an answer waits for earlier ones to be sent. */
const longAnswerWaitMs = 10_000;

export class AdminController extends Controller {
  protected readonly api: AdminApi;

  constructor(context: AdminContext) {
    super(context);
    this.api = context.api;
  }

  /** The newest known revision, with its files. */
  protected async readNewest(): Promise<Revision> {
    const { newest, store } = this.api.snapshots.state();
    if (newest === undefined) {
      const reason = store.lastError === undefined ? '' : `: ${store.lastError}`;
      throw this.refuse(503, `no revision has been read from the store yet${reason}`);
    }
    return (await this.findExactly(newest.revision.id)) ?? this.fromStore(this.api.store.read());
  }

  /** `id` may be a prefix. 404 when the store has no such revision, or several. */
  protected async findRevision(id: string): Promise<Revision> {
    const found = await this.findExactly(id);
    if (found !== undefined) return found;
    if (id.length >= shortestRevisionPrefix) {
      const history = await this.fromStore(this.api.store.history(searchedRevisions));
      const ids = new Set(history.filter((each) => each.id.startsWith(id)).map((each) => each.id));
      const [only] = ids;
      if (ids.size > 1)
        throw new HttpError(404, { detail: `${ids.size} revisions begin with ${id}` });
      const revision = only === undefined ? undefined : await this.findExactly(only);
      if (revision !== undefined) return revision;
    }
    const detail = `the store has no revision ${id}, or no longer has it${toPrefixHint(id)}`;
    throw new HttpError(404, { detail });
  }

  /** The full id of a revision; unchanged when no revision's id begins with it. */
  protected expandRevision(id: string): Promise<string> {
    return this.findRevision(id).then(
      (found) => found.id,
      (error: unknown) => {
        if (error instanceof HttpError && error.status === 404) return id;
        throw error;
      },
    );
  }

  /** The documents in force, without the rules that have ended (behaviour: rules-that-end). */
  protected readDocumentsNow(): Promise<readonly RuleDocument[]> {
    const { snapshots, clock } = this.api;
    return runInSlices(findDocumentsAt(snapshots.documents, clock.wallMs()));
  }

  private findExactly(id: string): Promise<Revision | undefined> {
    return this.fromStore(this.api.store.readRevision(id));
  }

  /** Makes the change and writes the audit log in every case. `prepare` does everything that may refuse the change.
   * `endedLifts`: the lifts that an undo ends. */
  protected change(
    asked: string,
    prepare: () => Promise<PreparedChange>,
  ): Promise<MadeChange & { readonly endedLifts: string[] }> {
    return this.audited(asked, async (entry) => {
      const request = await prepare();
      const { rollout: way } = request;
      if ((way === 'now' || way === 'again') && request.message === undefined) {
        throw new HttpError(400, { detail: `rollout ${way}: the message has to give the reason` });
      }
      entry.what = request.what ?? asked;
      const message =
        request.message ?? `${entry.what.charAt(0).toUpperCase()}${entry.what.slice(1)}`;
      const author = { name: entry.who, email: '' };
      const change = { ...request, author, message };
      const ended = await this.endTrial(change, `undone by ${entry.who}: ${message}`);
      // Logged even if the change itself fails.
      if (ended !== undefined) entry.what += `; revision ${toShortId(ended)} is no longer on trial`;
      const made = await makeChange(this.api, change);
      const { documentsBefore, documentsAfter } = made;
      const nowMs = this.api.clock.wallMs();
      const endedLifts =
        request.isUndo === true
          ? await runInSlices(listingEndedLifts(documentsBefore, documentsAfter, nowMs))
          : [];
      if (endedLifts.length > 0) entry.what += `; lifts that end with it: ${endedLifts.join(', ')}`;
      entry.before = made.before.id;
      entry.after = made.after.id;
      return { ...made, endedLifts };
    });
  }

  /** Ends the trial of a revision that is undone. The store may be slow or fail, which must not leave that revision on
   * the workers on trial. A refused change undoes nothing. Resolves with the revision that was on trial, if it no
   * longer is. */
  private async endTrial(
    request: PreparedChange & ChangeRequest,
    reason: string,
  ): Promise<string | undefined> {
    const { rollout, snapshots } = this.api;
    const { isUndo = false } = request;
    const { trial, inForce } = snapshots.state();
    if (trial === undefined && !isUndo) return undefined;
    const planned = await this.readNewest()
      .then((newest) => planChangeOf(newest, this.api, request))
      .catch(() => {
        // The state of the store decides whether the change itself is refused or made.
      });
    if (!planned || planned.change.put.length + planned.change.delete.length === 0)
      return undefined;
    const { content } = planned.examined;
    if (content === undefined || content === trial?.content) return undefined;
    const isBack = request.rollout !== 'steps' && rollout.wasInForce(content);
    if (!isUndo && !isBack && content !== inForce?.content) return undefined;
    rollout.undo(reason, request.author.name);
    return trial?.revision.id;
  }

  /** The result of the change without making it; refused for the same reasons as the change, except that the store may
   * be unreachable: who sees what an undo changes asks for it next, and that takes the trial back (`endTrial`). */
  protected async plan(request: Omit<ChangeRequest, 'author'>): Promise<PlannedChange> {
    const author = { name: this.api.callerOf(this.request), email: '' };
    try {
      return await planChangeOf(await this.api.store.read(), this.api, { ...request, author });
    } catch (error) {
      throw this.toAnswer(error);
    }
  }

  /** Performs the action and writes the audit log in every case; `act` adds details to the entry that become known only
   * then. */
  protected async audited<Done>(
    asked: string,
    act: (entry: AuditEntry) => Promise<Done>,
  ): Promise<Done> {
    const { api } = this;
    const entry: AuditEntry = {
      who: api.callerOf(this.request),
      what: asked,
      before: api.snapshots.state().newest?.revision.id,
      after: undefined,
      outcome: 'done',
    };
    const note = (outcome: string) =>
      api.audit({
        ...entry,
        address: this.request.remoteAddress,
        requestId: this.request.id,
        outcome,
      });
    try {
      const done = await act(entry);
      note(entry.outcome);
      return done;
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      const isAnswer = error instanceof HttpError || error instanceof Stop;
      note(isAnswer ? `${error.status}: ${text}` : text);
      throw this.toAnswer(error);
    }
  }

  /** What the peers answer to the same question; nothing when a peer asks (`peer` is its id), and without peers. Sends
   * a POST if there is a body. The promise never rejects. */
  protected askPeers<Schema extends TSchema>(
    path: string,
    schema: Schema,
    peer: string | undefined,
    asked: Pick<PeerCall, 'body' | 'timeoutMs'> = {},
  ): Promise<PeerAnswers<Static<Schema>>> {
    return this.askEachPeer(path, schema, peer, asked).then(toPeerAnswers);
  }

  /** Like `askPeers`, with one answer for each peer. */
  protected askEachPeer<Schema extends TSchema>(
    path: string,
    schema: Schema,
    peer: string | undefined,
    asked: Pick<PeerCall, 'body' | 'timeoutMs'> = {},
    listWorkers?: (answer: Static<Schema>) => PeerWorkers | undefined,
  ): Promise<PeerAnswer<Static<Schema>>[]> {
    this.refuseItself(peer);
    const { peers } = this.api;
    if (peers === undefined || peer !== undefined) return Promise.resolve([]);
    const token = readCredentials(this.request.headers.get('authorization') ?? undefined, 'bearer');
    const method = asked.body === undefined ? 'GET' : 'POST';
    return peers.ask({ method, path, ...asked }, schema, token, listWorkers);
  }

  /** Throws 409 when the control plane has called itself. */
  protected refuseItself(peer: string | undefined): void {
    if (peer === undefined || peer !== this.api.peers?.id) return;
    throw new HttpError(itselfStatus, { detail: 'the control plane has asked itself' });
  }

  /** Asks the workers of all control planes. 503 when no worker has a link, 404 when no worker has the requested node
   * id; a peer receives the answers of this control plane's workers, which may be an empty list. */
  protected async askCounters(
    path: '/counters' | '/resets',
    asked: Omit<CountersQuestion, 'reset'>,
    peer: string | undefined,
  ): Promise<CountersJson> {
    const { fleet, peers } = this.api;
    const reset = path === '/resets';
    const timeoutMs = reset ? peersMs.reset : peersMs.reading;
    const asking = this.askPeers(path, countersJson, peer, { body: asked, timeoutMs });
    const linked = fleet.list();
    const own = await fleet.askCounters({ ...asked, reset });
    const { values, missing } = await asking;
    const joined = { ...joinCounters([own, ...values]), missing };
    if (peer !== undefined) return joined;
    if (joined.answers.length > 0) return { ...joined, lifted: await this.findLifted(asked) };
    const [away] = missing;
    if (away !== undefined) {
      const text = `no worker of this control plane was asked, and peer ${away.url} does not answer`;
      throw this.refuse(503, `${text} (${away.error})`);
    }
    const { worker } = asked;
    const where = peers === undefined ? 'this control plane' : 'a control plane';
    if (worker === undefined) {
      throw this.refuse(503, `no worker has a link to ${where} (CONFIG_FLEET_LINK)`);
    }
    const ids = linked.map(({ hello }) => hello.nodeId);
    const hint = didYouMean(nearestWord(worker, ids), '; ') ?? '';
    const detail = `no worker with the node id ${worker} has a link to ${where}${hint}`;
    throw new HttpError(404, { detail });
  }

  /** Which of the descriptors are lifted by the rules in force. */
  private async findLifted({
    domain,
    descriptors,
  }: Pick<CountersQuestion, 'domain' | 'descriptors'>): Promise<
    NonNullable<CountersJson['lifted']>
  > {
    const { snapshots, clock } = this.api;
    const findLift = await runInSlices(creatingFindLift(snapshots.documents, clock.wallMs()));
    return descriptors.flatMap((entries, descriptor) => {
      const untilMs = findLift(domain, entries);
      return untilMs === undefined ? [] : [{ descriptor, until: toTimeText(untilMs) }];
    });
  }

  /** The workers of this control plane. */
  protected readFleet(): FleetJson {
    const { workers, snapshots, fleet, clock } = this.api;
    const now = { wallMs: clock.wallMs(), monotonicMs: clock.monotonicMs() };
    const gone = toGoneJson(workers.vanished(), now);
    return toFleetJson(workers.list(), fleet.list(), gone, snapshots);
  }

  /** For a value that occupies much memory until its JSON is read: only a few are built at once, the others wait. */
  protected async sendLong<Value extends object>(
    make: () => Promise<Value>,
  ): Promise<Value | Response> {
    const waited = AbortSignal.timeout(longAnswerWaitMs);
    const signal = AbortSignal.any([waited, this.request.signal]);
    const caller = this.api.callerOf(this.request);
    const own = caller === localCaller ? undefined : caller;
    const slot = await this.api.longAnswers.acquire(signal, own).catch((error: unknown) => {
      if (!waited.aborted) throw error;
      const detail = 'other long answers are still being read; try again';
      throw new HttpError(429, { detail, headers: { 'retry-after': '10' } });
    });
    const leave = () => void slot[Symbol.asyncDispose]();
    try {
      return await toLongAnswer(await make(), leave);
    } catch (error) {
      leave();
      throw error;
    }
  }

  protected fromStore<Value>(answer: Promise<Value>): Promise<Value> {
    return answer.catch((error: unknown) => {
      throw this.toRefusal(error);
    });
  }

  /** An error to throw: `application/problem+json` with `problems` besides the usual members. `detail` is sent to the
   * client even with a status of 500 and above, so it must not contain secrets or unexpected texts. */
  protected refuse(status: number, detail: string, problems?: readonly Problem[]): Error {
    const body = {
      type: 'about:blank',
      title: statusTitle(status),
      ...{ status, detail, requestId: this.request.id },
      ...(problems && { problems: this.toProblems(problems) }),
    };
    const headers = { 'content-type': 'application/problem+json' };
    const stop = new Stop(status, new Response(JSON.stringify(body), { status, headers }));
    // The message is for the audit log.
    stop.message = detail;
    return stop;
  }

  /** Converts problems, with the file names that status, history and notifications use: those in the repository. */
  protected toProblems(problems: readonly Problem[]): ProblemJson[] {
    const { repositoryFolder } = this.api;
    return problems.map((each) => toProblemJson(inRepository(each, repositoryFolder)));
  }

  private toAnswer(error: unknown): unknown {
    return error instanceof InvalidRules
      ? this.refuse(422, error.message, error.problems)
      : this.toRefusal(error);
  }

  /** Messages of stores are human-readable, without secrets. */
  private toRefusal(error: unknown): unknown {
    if (!(error instanceof AppError)) return error;
    const { adminStatus } = errorFacts[error.code];
    return adminStatus === undefined || adminStatus === 500
      ? error
      : this.refuse(adminStatus, error.message);
  }
}

type AdminControllerClass = Pick<typeof AdminController, 'guard'> &
  (new (
    context: AdminContext,
  ) => AdminController);

/** Binds the controllers of `tree` to `api`. */
export function bindControllers(tree: ModuleTree, api: AdminApi): ModuleTree {
  const bind = (value: unknown): unknown =>
    isAdminController(value) ? withApi(value, api) : value;
  return new Map(
    [...tree].map(([name, exports]) => [
      name,
      Object.fromEntries(Object.entries(exports).map(([key, value]) => [key, bind(value)])),
    ]),
  );
}

function isAdminController(value: unknown): value is AdminControllerClass {
  return typeof value === 'function' && value.prototype instanceof AdminController;
}

/** The statics, which declare the arguments, are inherited; but each class declares `open()` itself. */
function withApi(controller: AdminControllerClass, api: AdminApi): AdminControllerClass {
  return class extends controller {
    static override readonly guard = controller.guard ?? [];

    constructor(context: ControllerContext) {
      super({ ...context, api });
    }
  };
}
