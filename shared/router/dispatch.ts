// Processes one request from its target to its response: route, guards, body, arguments, call, encode. Every outcome is
// a response; nothing is thrown to the mount. What surrounds a method is not known here.

import { encodeEarly, encodeResult, isOfGone, type Writing } from './answer/encode.ts';
import type { ReportError } from './answer/error-report.ts';
import { chooseFormat } from './answer/format.ts';
import { prepareErrorResponse, toErrorResponse } from './answer/problem.ts';
import { cancelStream, endUnsent, toBegun, watchStream } from './answer/stream.ts';
import { type Innermost, surround } from './around/around.ts';
import { isConditional, refuseUnmet } from './around/conditions.ts';
import type { OpenApiDocument } from './controller.ts';
import { AccessDenied, HttpError, NotImplemented, notFound, TooManyConnections } from './errors.ts';
import type { Folder } from './folder.ts';
import type { Guard } from './guard.ts';
import type { Limits } from './limits.ts';
import { answerEvents, eventStream } from './live/event-stream.ts';
import type { LiveConnections } from './live/live-connections.ts';
import { answerSocket } from './live/socket.ts';
import { type MaybePromise, settle, then, toNative } from './maybe-promise.ts';
import { kindOf } from './near-names.ts';
import { type BodyArguments, noBody, type ReadBody } from './request/body.ts';
import { ListedHeaders } from './request/listed-headers.ts';
import {
  type Around,
  type Dispatch,
  isBuffered,
  LazyDraft,
  LazyRequest,
  RequestIds,
  type RequestLike,
  type ResponseLike,
  type RoutedRequest,
  withoutBody,
} from './request/request.ts';
import { noKeywords, parseTarget, parseUrlencoded } from './request/target.ts';
import type { ClassNode, ModuleNode, Route } from './table/nodes.ts';
import { answerServer, answerWithoutRoute, resolvePath } from './table/nodes.ts';
import { knownMethods } from './table/verb.ts';

export interface DispatchDeps {
  readonly table: ModuleNode;
  readonly limits: Limits;
  readonly readBody: ReadBody;
  readonly stringReturn: Writing['stringReturn'];
  /** Set if a controller allows it. */
  readonly xml: typeof import('./xml/xml.ts') | undefined;
  readonly strictNames: boolean;
  readonly missingVerb: 405 | 501;
  readonly reportError: ReportError;
  readonly describe: () => OpenApiDocument;
  readonly live: LiveConnections;
}

/** The most frequent answer to scanners. Arounds receive the error itself. */
const answerMissing = prepareErrorResponse(notFound());

/** A request, what its path resolves to, and what surrounds it. */
interface Resolution {
  readonly given: RequestLike;
  readonly request: LazyRequest;
  readonly response: LazyDraft;
  readonly arounds: readonly Around[];
  readonly node: ClassNode | undefined;
  readonly route: Route | undefined;
  readonly query: string;
  readonly positionals: readonly string[];
  /** The target is `*`. */
  readonly isServer: boolean;
  /** Why the target has no meaning. */
  readonly flaw: unknown;
}

/** A method about to be called. */
interface Call extends Resolution {
  readonly node: ClassNode;
  readonly route: Route;
}

export function createDispatch(deps: DispatchDeps): Dispatch {
  const { table, limits, stringReturn, strictNames, missingVerb } = deps;
  const { reportError, describe, live } = deps;
  const ids = new RequestIds();
  const jsonAlone: Writing = { stringReturn, xml: undefined };
  /** Where a malformed target leads. */
  const nothing = {
    node: undefined,
    route: undefined,
    query: '',
    positionals: [],
    isServer: false,
  };
  const nowhere = { ...nothing, arounds: table.arounds, response: new LazyDraft(undefined) };

  function resolve(given: RequestLike): Resolution {
    const request = new LazyRequest(given, ids);
    try {
      const { parts, query, isServer } = parseTarget(given.target, limits);
      request.setParts(parts);
      const { module, node, positionals } = resolvePath(table, parts, { strict: strictNames });
      const socket = given.isUpgrade === true ? node?.verbs.get('CONNECT') : undefined;
      // Otherwise the request to upgrade is ignored (RFC 9110, section 7.8).
      if (socket !== undefined) request.method = 'CONNECT';
      const route = socket ?? node?.answers.get(given.method);
      const { arounds } = route ?? node ?? module;
      const response = new LazyDraft(route?.mediaType);
      const flaw = undefined;
      return { given, request, response, arounds, node, route, query, positionals, isServer, flaw };
    } catch (flaw) {
      return { ...nowhere, given, request, flaw };
    }
  }

  function answer(resolution: Resolution): MaybePromise<ResponseLike> {
    const { given, request, arounds, node, positionals, isServer, flaw } = resolution;
    const { method } = given;
    if (flaw !== undefined) throw flaw;
    if (isServer) return answerServer(method, request.id);
    if (isCall(resolution)) return settle(resolution, prepare, callMethod, answerEarly);
    if (node === undefined) {
      if (!knownMethods.has(method)) throw new NotImplemented();
      if (arounds.length > 0) throw notFound();
      return answerMissing(request.id);
    }
    const partCount = positionals.length;
    return answerWithoutRoute(node, { method, partCount, missingVerb, requestId: request.id });
  }

  function prepare(call: Call): MaybePromise<BodyArguments> {
    const { route, request } = call;
    const asked = then(call, inTurn(route.guards, request, askGuard), runFolders);
    return then(call, limitTime(asked, route.limits.methodTimeoutMs, request), prepareBody);
  }

  function runFolders(call: Call): MaybePromise<void> {
    refuseMisfit(call);
    return inTurn(call.route.folders, call.request, runBefore);
  }

  function prepareBody(call: Call): MaybePromise<BodyArguments> {
    const { headers } = call.given;
    if (!call.route.isConditional || !isConditional(headers)) return readBody(call);
    return then(call, refuseUnmet(headers, answerCurrent.bind(undefined, call)), readBody);
  }

  /** The answer to GET on the path of an unsafe method; undefined if absent. */
  async function answerCurrent(call: Call): Promise<ResponseLike | undefined> {
    const route = call.node.verbs.get('GET');
    if (route === undefined) return undefined;
    const current: Call = { ...call, route, response: new LazyDraft(route.mediaType), query: '' };
    try {
      refuseMisfit(current);
      return await settle(current, () => noBody, callMethod, answerEarly);
    } catch (error) {
      if (error instanceof HttpError && (error.status === 404 || error.status === 410)) {
        return undefined;
      }
      throw error;
    }
  }

  /** Refuses everything that can be refused before the body is read. */
  function refuseMisfit({ route, positionals, given }: Call): void {
    route.binder.refuseSurplus(positionals.length);
    if (route.negotiated && chooseFormat(given.headers.get('accept')) === undefined) {
      throw new HttpError(406, { detail: 'an answer is JSON or XML' });
    }
  }

  function readBody(call: Call): MaybePromise<BodyArguments> {
    const { route, given } = call;
    const { unparsed } = route;
    if (given.body === undefined && unparsed === undefined) return noBody;
    return deps.readBody(given, {
      isAccepted: route.binder.acceptsBody,
      unparsed,
      xml: route.xml ? deps.xml : undefined,
      limits: route.limits,
    });
  }

  function bind({ route, query, positionals }: Call, body: BodyArguments): unknown[] {
    const { binder } = route;
    const keywords =
      query === '' || !binder.readsQuery
        ? noKeywords
        : parseUrlencoded(query, 'query', route.limits, binder.query);
    return binder.bind(positionals, keywords, body);
  }

  function callMethod(call: Call, body: BodyArguments): MaybePromise<ResponseLike> {
    const { route, request, response } = call;
    const { limits } = route;
    const args = bind(call, body);
    const context = { request, response, describe };
    if (route.socket !== undefined) {
      const report = (status: number, error: unknown) => {
        if (!isOfGone(error, request)) reportError({ request, status, error });
      };
      const answer = answerSocket(route.socket, context, args, { live, limits, report });
      return limitTime(answer, limits.methodTimeoutMs, request, endUnsent);
    }
    const value = toNative(route.handler.apply(new route.controller(context), args));
    const answer = then(call, value, encode);
    // The time limit does not apply to events, which wait for something to happen.
    if (route.op?.spec.produces === eventStream) return answer;
    return limitTime(answer, limits.methodTimeoutMs, request, endUnsent);
  }

  function encode(call: Call, value: unknown): MaybePromise<ResponseLike> {
    const { route, request, response } = call;
    // An error that is returned instead of thrown would be sent like a value.
    if (value instanceof Error) throw value;
    if (route.op?.spec.produces === eventStream) {
      const events = answerEvents(value, request, response, { live, limits: route.limits });
      if (events !== undefined) return events;
    }
    return then(call, encodeResult(value, response, request, writingOf(call)), begin);
  }

  function answerEarly(call: Call, error: unknown): MaybePromise<ResponseLike> {
    return encodeEarly(error, call.response, call.request, writingOf(call));
  }

  function writingOf({ route, given }: Call): Writing {
    const { filters } = route;
    if (!route.xml || deps.xml === undefined)
      return filters ? { ...jsonAlone, filters } : jsonAlone;
    const asked = route.negotiated && chooseFormat(given.headers.get('accept')) === 'xml';
    return { stringReturn, xml: { ...deps.xml, asked }, filters };
  }

  /** Of arounds. */
  const innermost: Innermost<Resolution> = {
    call: (resolution) =>
      then(resolution, answer(resolution), (_resolution, response) => checkStatus(response)),
    async toResponse({ request }, thrown) {
      try {
        const draft = new LazyDraft(undefined);
        return { response: await encodeEarly(thrown, draft, request, jsonAlone) };
      } catch (error) {
        const known = error ?? new TypeError(`${error} was thrown`);
        return { response: toErrorResponse(error, request.id), error: known };
      }
    },
    report,
    finish,
    fail,
  };

  function fail(resolution: Resolution, error: unknown): MaybePromise<ResponseLike> {
    const response = toErrorResponse(error, resolution.request.id);
    report(resolution, error, response.status);
    return finish(resolution, response);
  }

  /** Logs failures that are ours. */
  function report({ request }: Resolution, error: unknown, status: number): void {
    const isExpected = error instanceof NotImplemented || error instanceof TooManyConnections;
    const isOurs = status >= 500 || (error instanceof Error && error.cause !== undefined);
    if (isOurs && !isExpected) reportError({ request, status, error });
  }

  /** Removes the body for HEAD, and reports a stream that fails. */
  function finish({ given, request }: Resolution, response: ResponseLike): ResponseLike {
    const { status, headers, body } = checkStatus(response);
    if (given.method === 'HEAD' || withoutBody.has(status)) return leaveBody(response);
    if (isBuffered(body)) return response;
    const onError = (error: unknown) => reportError({ request, status, error });
    const length = new ListedHeaders(headers).get('content-length');
    return { status, headers, body: watchStream(body, length, onError) };
  }

  return function dispatch(given) {
    const resolution = resolve(given);
    if (resolution.arounds.length > 0) return surround(resolution, innermost);
    return settle(resolution, answer, finish, fail);
  };
}

function isCall(resolution: Resolution): resolution is Call {
  return resolution.route !== undefined;
}

/** Waits for the first chunk of a stream. */
function begin(_call: Call, answer: ResponseLike): MaybePromise<ResponseLike> {
  const { body } = answer;
  if (isBuffered(body)) return answer;
  return then(answer, toBegun(body), (response, begun) => ({ ...response, body: begun }));
}

/** Asks about each item after the previous one. */
function inTurn<Item>(
  items: readonly Item[],
  request: RoutedRequest,
  ask: (request: RoutedRequest, item: Item) => MaybePromise<void>,
  from = 0,
): MaybePromise<void> {
  for (let at = from; at < items.length; at += 1) {
    const asked = ask(request, items[at] as Item);
    if (!(asked instanceof Promise)) continue;
    return then([items, request, ask, at + 1] as const, asked, (rest) => inTurn(...rest));
  }
  return undefined;
}

function askGuard(request: RoutedRequest, guard: Guard): MaybePromise<void> {
  return then({ request, guard }, toNative(guard.check(request)), judge);
}

/** Throws 403 for a value that does not admit the request, or 401 if the guard authenticates and the request has no
 * credentials. */
function judge(
  { request, guard }: { readonly request: RoutedRequest; readonly guard: Guard },
  verdict: unknown,
): void {
  if (verdict === undefined || verdict === true) return;
  const cause = new TypeError(
    `the check of a guard returned ${kindOf(verdict)}; throw AccessDenied or an HttpError to refuse, return nothing to let the request pass`,
  );
  const { headers } = request;
  if (!guard.authenticates || headers.has('authorization') || headers.has('cookie')) {
    throw new HttpError(403, { detail: 'access denied', cause });
  }
  throw new AccessDenied({ scheme: guard.security?.scheme['scheme'] ?? 'bearer', cause });
}

function runBefore(request: RoutedRequest, folder: Folder): MaybePromise<void> {
  return folder.before && then(request, toNative(folder.before(request)), storeFound);
}

/** Throws if what a folder's `before` returned is not an object: a `false` that was intended to refuse would admit
 * every caller. */
function storeFound(request: RoutedRequest, found: unknown): void {
  if (found === undefined) return;
  if (found instanceof Error) throw found;
  if (typeof found !== 'object' || found === null || found instanceof Response) {
    throw new TypeError(
      `the before of a folder returned ${kindOf(found)}; it returns an object or nothing, and throws to refuse`,
    );
  }
  Object.assign(request.state, found);
}

const ofBody = ['content-type', 'content-length'];

/** Does not wait for the end of a stream: a silent generator ends at its next value. Only an answer to HEAD has headers
 * of a body that is not sent; a 204 can have none (RFC 9110, section 8.6). */
function leaveBody({ status, headers, body }: ResponseLike): ResponseLike {
  cancelStream(body);
  const listed = new ListedHeaders(headers);
  if (withoutBody.has(status)) for (const name of ofBody) listed.delete(name);
  return { status, headers: listed.list, body: undefined };
}

/** An invalid status is a bug in the method. */
function checkStatus(response: ResponseLike): ResponseLike {
  const { status, session } = response;
  if (session !== undefined && status === 101) return response;
  if (Number.isInteger(status) && status >= 200 && status <= 599) return response;
  endUnsent(response);
  throw new RangeError(`${status} is no status of an answer`);
}

/** The time limit of a method (behaviour: time-of-a-method). When the limit has passed, the request's signal is aborted, and the promise rejects with 503. */
function limitTime<Value>(
  value: MaybePromise<Value>,
  timeMs: number,
  request: LazyRequest,
  onLate?: (value: Value) => void,
): MaybePromise<Value> {
  if (timeMs === Number.POSITIVE_INFINITY || !(value instanceof Promise)) return value;
  const over = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    over.reject(new HttpError(503, { cause: new Error(`no answer within ${timeMs} ms`) }));
    value.then(onLate, () => {});
    request.end();
  }, timeMs);
  return Promise.race([value, over.promise]).finally(() => clearTimeout(timer));
}
