// Processes one request from its target to its response: route, guards, body, arguments, call, encode. Every outcome is
// a response; nothing is thrown to the mount. What surrounds a method is not known here.

import { encodeEarly, encodeResult, type Writing } from './answer/encode.ts';
import type { ReportError } from './answer/error-report.ts';
import { chooseFormat } from './answer/format.ts';
import { prepareErrorResponse, toErrorResponse } from './answer/problem.ts';
import { cancelStream, endUnsent, toBegun, watchStream } from './answer/stream.ts';
import { surround } from './around/around.ts';
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
  isWhole,
  LazyDraft,
  LazyRequest,
  RequestIds,
  type RequestLike,
  type ResponseLike,
  type RoutedRequest,
} from './request/request.ts';
import { noKeywords, parseTarget, parseUrlencoded } from './request/target.ts';
import type { ClassNode, ModuleNode, Route } from './table/nodes.ts';
import { answerServer, answerWithoutRoute, resolvePath } from './table/nodes.ts';
import { knownMethods } from './table/verb.ts';
import { limitTime } from './time-limit.ts';

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

/** What a path resolves to, and what surrounds it. */
interface Place {
  readonly arounds: readonly Around[];
  readonly node: ClassNode | undefined;
  readonly route: Route | undefined;
  readonly query: string;
  readonly positionals: readonly string[];
  /** The target is `*`. */
  readonly isServer: boolean;
}

/** A method about to be called. */
interface Call {
  readonly node: ClassNode;
  readonly route: Route;
  readonly given: RequestLike;
  readonly request: LazyRequest;
  readonly response: LazyDraft;
  readonly query: string;
  readonly positionals: readonly string[];
}

export function createDispatch(deps: DispatchDeps): Dispatch {
  const { table, limits, stringReturn, strictNames, missingVerb } = deps;
  const { reportError, describe, live } = deps;
  const ids = new RequestIds();
  const jsonAlone: Writing = { stringReturn, xml: undefined };

  function answer(given: RequestLike, request: LazyRequest): MaybePromise<ResponseLike> {
    let place: Place;
    try {
      place = findPlace(given, request);
    } catch (error) {
      if (table.arounds.length === 0) throw error;
      return answerInside(table.arounds, request, () => {
        throw error;
      });
    }
    const { arounds } = place;
    if (arounds.length === 0) return answerPlace(given, request, place);
    return answerInside(arounds, request, () => answerPlace(given, request, place));
  }

  /** Throws if the target is malformed. */
  function findPlace(given: RequestLike, request: LazyRequest): Place {
    const { parts, query, isServer } = parseTarget(given.target, limits);
    request.setParts(parts);
    const { module, node, positionals } = resolvePath(table, parts, { strict: strictNames });
    const socket = given.isUpgrade === true ? node?.verbs.get('CONNECT') : undefined;
    // Otherwise the request to upgrade is ignored (RFC 9110, section 7.8).
    if (socket !== undefined) request.method = 'CONNECT';
    const route = socket ?? node?.answers.get(given.method);
    const { arounds } = route ?? node ?? module;
    return { arounds, node, route, query, positionals, isServer };
  }

  function answerPlace(
    given: RequestLike,
    request: LazyRequest,
    { arounds, node, route, query, positionals, isServer }: Place,
  ): MaybePromise<ResponseLike> {
    const { method } = given;
    if (isServer) return answerServer(method, request.id);
    if (node === undefined) {
      if (!knownMethods.has(method)) throw new NotImplemented();
      if (arounds.length > 0) throw notFound();
      return answerMissing(request.id);
    }
    if (route === undefined) {
      const partCount = positionals.length;
      return answerWithoutRoute(node, { method, partCount, missingVerb, requestId: request.id });
    }
    const response = new LazyDraft(route.mediaType);
    return answerMethod({ node, route, given, request, response, query, positionals });
  }

  function answerMethod(call: Call): MaybePromise<ResponseLike> {
    const { response, request } = call;
    return settle(
      () => prepare(call),
      (body) => callMethod(call, body),
      (error) => encodeEarly(error, response, request, writingOf(call)),
    );
  }

  function prepare(call: Call): MaybePromise<BodyArguments> {
    const { route, given, request } = call;
    const asked = inTurn(route.guards, (guard) => askGuard(guard, request));
    return then(asked, () => {
      refuseMisfit(call);
      const ran = inTurn(route.folders, (folder) => runBefore(folder, request));
      return then(ran, () => {
        if (!route.isConditional || !isConditional(given.headers)) return readBody(call);
        return refuseUnmet(given.headers, () => answerCurrent(call)).then(() => readBody(call));
      });
    });
  }

  /** The answer to GET on the path of an unsafe method; undefined if absent. */
  async function answerCurrent(call: Call): Promise<ResponseLike | undefined> {
    const route = call.node.verbs.get('GET');
    if (route === undefined) return undefined;
    const current: Call = { ...call, route, response: new LazyDraft(route.mediaType), query: '' };
    try {
      refuseMisfit(current);
      return await settle(
        () => noBody,
        (body) => callMethod(current, body),
        (error) => encodeEarly(error, current.response, current.request, writingOf(current)),
      );
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
      taken: route.binder.takesBody,
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
      const report = (status: number, error: unknown) => reportError({ request, status, error });
      const answer = answerSocket(route.socket, context, args, { live, limits, report });
      return limitTime(answer, limits.methodTimeoutMs, request);
    }
    const value = toNative(route.handler.apply(new route.controller(context), args));
    const answer = then(value, (known) => encode(call, known));
    // The time limit does not apply to events, which wait for something to happen.
    if (route.op?.spec.produces === eventStream) return answer;
    return limitTime(answer, limits.methodTimeoutMs, request);
  }

  function encode(call: Call, value: unknown): MaybePromise<ResponseLike> {
    const { route, request, response } = call;
    // An error that is returned instead of thrown would be sent like a value.
    if (value instanceof Error) throw value;
    if (route.op?.spec.produces === eventStream) {
      const events = answerEvents(value, request, response, { live, limits: route.limits });
      if (events !== undefined) return events;
    }
    return then(encodeResult(value, response, request, writingOf(call)), (answer) => {
      const { body } = answer;
      if (isWhole(body)) return answer;
      return toBegun(body).then((begun) => ({ ...answer, body: begun }));
    });
  }

  function writingOf({ route, given }: Call): Writing {
    const { filters } = route;
    if (!route.xml || deps.xml === undefined)
      return filters ? { ...jsonAlone, filters } : jsonAlone;
    const asked = route.negotiated && chooseFormat(given.headers.get('accept')) === 'xml';
    return { stringReturn, xml: { ...deps.xml, asked }, filters };
  }

  async function answerInside(
    arounds: readonly Around[],
    request: LazyRequest,
    call: () => MaybePromise<ResponseLike>,
  ): Promise<ResponseLike> {
    const answered = await surround(arounds, {
      request,
      call: () => then(call(), checkStatus),
      async toResponse(thrown) {
        try {
          const draft = new LazyDraft(undefined);
          return { response: await encodeEarly(thrown, draft, request, jsonAlone) };
        } catch (error) {
          const known = error ?? new TypeError(`${error} was thrown`);
          return { response: toErrorResponse(error, request.id), error: known };
        }
      },
    });
    if (answered.error !== undefined) report(answered.error, answered.status, request);
    return answered.toResponse();
  }

  function fail(error: unknown, request: LazyRequest): ResponseLike {
    const response = toErrorResponse(error, request.id);
    report(error, response.status, request);
    return response;
  }

  /** Logs failures that are ours. */
  function report(error: unknown, status: number, request: LazyRequest): void {
    const isExpected = error instanceof NotImplemented || error instanceof TooManyConnections;
    const isOurs = status >= 500 || (error instanceof Error && error.cause !== undefined);
    if (isOurs && !isExpected) reportError({ request, status, error });
  }

  /** Removes the body for HEAD, and reports a stream that fails. */
  function finish(
    { method }: RequestLike,
    request: LazyRequest,
    response: ResponseLike,
  ): MaybePromise<ResponseLike> {
    const { status, headers, body } = checkStatus(response);
    if (method === 'HEAD') return withoutBody(response);
    if (isWhole(body)) return response;
    const onError = (error: unknown) => reportError({ request, status, error });
    const length = new ListedHeaders(headers).get('content-length');
    return { status, headers, body: watchStream(body, length, onError) };
  }

  return function dispatch(given) {
    const request = new LazyRequest(given, ids);
    const end = (answered: ResponseLike) => finish(given, request, answered);
    return settle(
      () => answer(given, request),
      end,
      (error) => end(fail(error, request)),
    );
  };
}

/** Runs each step after the previous one. */
function inTurn<Item>(
  items: readonly Item[],
  run: (item: Item) => MaybePromise<void>,
  at = 0,
): MaybePromise<void> {
  const item = items[at];
  if (item === undefined) return undefined;
  return then(run(item), () => inTurn(items, run, at + 1));
}

/** Rethrows what the guard throws; throws 403 for a value that does not admit the request, or 401 if the guard
 * authenticates and the request has no credentials. */
function askGuard(guard: Guard, request: RoutedRequest): MaybePromise<void> {
  return then(toNative(guard.check(request)), (verdict: unknown) => {
    if (verdict === undefined || verdict === true) return;
    const cause = new TypeError(
      `the check of a guard returned ${kindOf(verdict)}; throw AccessDenied or an HttpError to refuse, return nothing to let the request pass`,
    );
    const { headers } = request;
    if (!guard.authenticates || headers.has('authorization') || headers.has('cookie')) {
      throw new HttpError(403, { detail: 'access denied', cause });
    }
    throw new AccessDenied({ scheme: guard.security?.scheme['scheme'] ?? 'bearer', cause });
  });
}

/** Stores what a folder's `before` returns. Throws if that is not an object: a `false` that was intended to refuse
 * would admit every caller. */
function runBefore(folder: Folder, request: RoutedRequest): MaybePromise<void> {
  return then(toNative(folder.before?.(request)), (found: unknown) => {
    if (found === undefined) return;
    if (found instanceof Error) throw found;
    if (typeof found !== 'object' || found === null || found instanceof Response) {
      throw new TypeError(
        `the before of a folder returned ${kindOf(found)}; it returns an object or nothing, and throws to refuse`,
      );
    }
    Object.assign(request.state, found);
  });
}

async function withoutBody({ status, headers, body }: ResponseLike): Promise<ResponseLike> {
  await cancelStream(body);
  return { status, headers, body: undefined };
}

/** An invalid status is a bug in the method. */
function checkStatus(response: ResponseLike): ResponseLike {
  const { status, session } = response;
  if (session !== undefined && status === 101) return response;
  if (Number.isInteger(status) && status >= 200 && status <= 599) return response;
  void endUnsent(response);
  throw new RangeError(`${status} is no status of an answer`);
}
