// One request from its target to its response: route, guards, body, arguments, call, encode. Every
// outcome is a response; nothing is thrown to the mount.
import { isConditional, refuseUnmet, toConditional } from './answer/conditions.ts';
import { encodeResult, type Writing } from './answer/encode.ts';
import type { ReportError } from './answer/error-report.ts';
import { chooseFormat, type Format } from './answer/format.ts';
import { toBodilessHeaders, toHeaderList, withHeaders } from './answer/header-list.ts';
import { prepareErrorResponse, toErrorResponse } from './answer/problem.ts';
import { cancelStream, watchStream } from './answer/stream.ts';
import type { OpenApiDocument } from './controller.ts';
import {
  type Cors,
  corsHeaders,
  isPreflight,
  preflightHeaders,
  refuseForeignOrigin,
} from './cors.ts';
import {
  HttpError,
  NotImplemented,
  notFound,
  Redirect,
  Stop,
  TooManyConnections,
} from './errors.ts';
import { runAfter, runBefore, runOnError } from './folder.ts';
import { askGuards } from './guard.ts';
import type { Limits } from './limits.ts';
import {
  eventStream,
  isEventGenerator,
  openEventStream,
  refuseNoEvents,
} from './live/event-stream.ts';
import type { LiveConnections } from './live/live-connections.ts';
import { openSocket, type SocketClass } from './live/open-socket.ts';
import { type BodyArguments, type BodyReader, noBody } from './request/body.ts';
import { noKeywords, parseUrlencoded } from './request/keywords.ts';
import { isWhole, type RequestLike, type ResponseLike } from './request/request.ts';
import { createIds, LazyDraft, LazyRequest } from './request/routed-request.ts';
import { parseTarget } from './request/target.ts';
import { answerServer, answerWithoutRoute, toNoContent } from './table/no-route.ts';
import type { ClassNode, ModuleNode, Route } from './table/nodes.ts';
import { resolvePath } from './table/resolve.ts';
import { isKnownMethod } from './table/verb.ts';
import type { Xml } from './xml/xml.ts';

type MaybePromise<Value> = Value | Promise<Value>;

/** Never fails. An answer that waits for nothing is there at once: each promise on the way costs more than a step. */
export type Dispatch = (request: RequestLike) => MaybePromise<ResponseLike>;

export interface DispatchDeps {
  readonly table: ModuleNode;
  readonly limits: Limits;
  readonly bodies: BodyReader;
  readonly stringReturn: Writing['stringReturn'];
  /** Where a controller allows it. */
  readonly xml: Xml | undefined;
  readonly strictNames: boolean;
  readonly missingVerb: 405 | 501;
  readonly reportError: ReportError;
  readonly describe: () => OpenApiDocument;
  readonly live: LiveConnections;
}

/** Not thrown: the most frequent answer to those who try paths. */
const nothingHere = prepareErrorResponse(notFound());

/** A method that is about to be called. */
interface Call {
  readonly node: ClassNode;
  readonly route: Route;
  readonly given: RequestLike;
  readonly request: LazyRequest;
  readonly response: LazyDraft;
  readonly query: string;
  readonly positionals: readonly string[];
  readonly cors: Cors | undefined;
  /** The format of the answer; undefined where the client takes neither. */
  readonly format: Format | undefined;
}

export function createDispatch(deps: DispatchDeps): Dispatch {
  const { table, limits, bodies, stringReturn, strictNames, missingVerb } = deps;
  const { reportError, describe, live } = deps;
  const createId = createIds();
  const jsonAlone: Writing = { stringReturn, xml: undefined };

  function answer(given: RequestLike, request: LazyRequest): MaybePromise<ResponseLike> {
    const { method, headers } = given;
    const { parts, query, isServer } = parseTarget(given.target, limits);
    request.setParts(parts);
    if (isServer) return answerServer(method, request.id);
    const match = resolvePath(table, parts, { strict: strictNames });
    if (match === undefined) {
      if (isKnownMethod(method)) return nothingHere(request.id);
      throw new NotImplemented();
    }
    const { node, positionals } = match;
    const { cors } = node;
    if (cors !== undefined && node.verbs.size > 0) {
      request.answerHeaders = corsHeaders(cors, headers);
      if (isPreflight(method, headers)) return toNoContent(preflightHeaders(headers), request.id);
    }
    const route = given.isUpgrade === true ? node.verbs.get('CONNECT') : node.answers.get(method);
    if (route === undefined) {
      const partCount = positionals.length;
      return answerWithoutRoute(node, { method, partCount, missingVerb, requestId: request.id });
    }
    let format: Format | undefined = 'json';
    if (route.negotiated) {
      request.answerHeaders = [...request.answerHeaders, 'vary', 'Accept'];
      format = chooseFormat(headers.get('accept'));
    }
    const response = new LazyDraft(route.mediaType);
    const call: Call = { node, route, given, request, response, query, positionals, cors, format };
    if (route.folders.length > 0) return callInFolders(call);
    return route.waits || given.body !== undefined ? callInTurn(call) : callAtOnce(call);
  }

  /** A method without anything to wait for before it. */
  function callAtOnce(call: Call): MaybePromise<ResponseLike> {
    try {
      refuseMisfit(call);
      const value = callMethod(call, noBody);
      return isThenable(value) ? answerLater(call, value) : encode(call, value);
    } catch (error) {
      return answerEarly(call, error);
    }
  }

  async function answerLater(call: Call, value: PromiseLike<unknown>): Promise<ResponseLike> {
    try {
      return await encode(call, await value);
    } catch (error) {
      return answerEarly(call, error);
    }
  }

  async function callInTurn(call: Call): Promise<ResponseLike> {
    const { route, given, request } = call;
    const { folders, socket } = route;
    try {
      if (socket !== undefined) refuseForeignOrigin(given.headers, call.cors);
      if (route.guards.length > 0) await askGuards(route.guards, request);
      refuseMisfit(call);
      if (folders.length > 0) await runBefore(folders, request);
      if (route.isConditional && isConditional(given.headers)) {
        refuseUnmet(given.headers, await readCurrent(call));
      }
      const body = await readBody(call);
      if (socket !== undefined) return await openSession(socket, call, body);
      const value = callMethod(call, body);
      return await encode(call, isThenable(value) ? await value : value);
    } catch (error) {
      return answerEarly(call, error);
    }
  }

  async function callInFolders(call: Call): Promise<ResponseLike> {
    const { request } = call;
    const { folders } = call.route;
    let answered: ResponseLike;
    try {
      answered = checkStatus(await callInTurn(call));
    } catch (error) {
      answered = fail(await runOnError(folders, error, request), request);
    }
    return answered.session === undefined ? runAfter(folders, answered, request) : answered;
  }

  /** What GET is answered on the path of an unsafe method; undefined where nothing is there. */
  async function readCurrent(call: Call): Promise<ResponseLike | undefined> {
    const route = call.node.verbs.get('GET');
    if (route === undefined) return undefined;
    const response = new LazyDraft(route.mediaType);
    const reading: Call = { ...call, route, response, query: '' };
    try {
      refuseMisfit(reading);
      const value = await callMethod(reading, noBody);
      const current = await encodeResult(value, response, call.request, writingOf(reading));
      await cancelStream(current.body);
      return current.status < 300 ? current : undefined;
    } catch (error) {
      if (error instanceof HttpError && (error.status === 404 || error.status === 410)) {
        return undefined;
      }
      throw error;
    }
  }

  /** Refuses what is wrong before anything of the body is known. */
  function refuseMisfit({ route, positionals, format }: Call): void {
    route.binder.refuseSurplus(positionals.length);
    if (format === undefined) throw new HttpError(406, { detail: 'an answer is JSON or XML' });
  }

  function readBody({ route, given }: Call): MaybePromise<BodyArguments> {
    const { unparsed } = route;
    if (given.body === undefined && unparsed === undefined) return noBody;
    return bodies.readBody(given, {
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
        : parseUrlencoded(query, 'query', route.limits, binder.names);
    return binder.bind(positionals, keywords, body);
  }

  function callMethod(call: Call, body: BodyArguments): unknown {
    const { route, request, response } = call;
    const { methodTimeoutMs } = route.limits;
    const args = bind(call, body);
    const controller = new route.controller({ request, response, describe });
    const value = route.handler.apply(controller, args);
    if (methodTimeoutMs === Number.POSITIVE_INFINITY || !isThenable(value)) return value;
    return withinTime(value, methodTimeoutMs, () => request.end());
  }

  async function openSession(
    socket: SocketClass,
    call: Call,
    body: BodyArguments,
  ): Promise<ResponseLike> {
    const { request, response } = call;
    const report = (status: number, error: unknown) => reportError({ request, status, error });
    const context = { request, response, describe };
    const session = await openSocket(socket, context, bind(call, body), { live, limits, report });
    const headers = toHeaderList([], response.setHeaders, request.id);
    return { status: 101, headers, body: undefined, session };
  }

  function encode(call: Call, value: unknown): MaybePromise<ResponseLike> {
    const { route, given, request, response } = call;
    const spec = route.op?.spec;
    if (spec?.produces === eventStream) {
      if (isEventGenerator(value)) return sendEvents(value, request, response);
      refuseNoEvents(value);
    }
    const writing = writingOf(call);
    if (spec?.etag !== true || route.isConditional) {
      return encodeResult(value, response, request, writing);
    }
    // No caller asks with the tag of what must not be kept.
    if (response.setHeaders?.has('cache-control') !== true) {
      response.headers.set('cache-control', 'private, no-cache');
    }
    return tagEntity(encodeResult(value, response, request, writing), given.headers);
  }

  async function sendEvents(
    values: AsyncGenerator,
    request: LazyRequest,
    draft: LazyDraft,
  ): Promise<ResponseLike> {
    let stop = () => {};
    const leave = live.enter(() => stop());
    const stream = await openEventStream(values, {
      heartbeatMs: limits.heartbeatMs,
      onEnd() {
        leave();
        request.end();
      },
    });
    stop = stream.end;
    // What the generator has set before its first event counts too.
    const { status = 200, setHeaders, mediaType } = draft;
    const chosen = setHeaders?.get('content-type') ?? mediaType ?? eventStream;
    if (!chosen.startsWith(eventStream)) {
      stream.end();
      throw new TypeError(`the content type of events is ${eventStream}, not ${chosen}`);
    }
    // A proxy that buffers would keep the events from their reader.
    const own = ['content-type', eventStream, 'x-accel-buffering', 'no'];
    const headers = toHeaderList(own, setHeaders, request.id);
    return { status, headers, body: stream };
  }

  function writingOf({ route, format }: Call): Writing {
    if (!route.xml || deps.xml === undefined) return jsonAlone;
    return { stringReturn, xml: { ...deps.xml, asked: format === 'xml' } };
  }

  /** Answers a method that was ended by `Stop` or `Redirect`; any other error is thrown on. */
  function answerEarly(call: Call, error: unknown): MaybePromise<ResponseLike> {
    const { request, response } = call;
    if (error instanceof Redirect) return toRedirect(error, response, request);
    if (!(error instanceof Stop)) throw error;
    response.status = error.status;
    return encodeResult(error.value, response, request, writingOf(call));
  }

  /** The answer to what was thrown, which is reported where the failure is ours. */
  function fail(error: unknown, request: LazyRequest): ResponseLike {
    const response = toErrorResponse(error, request.id);
    const isExpected = error instanceof NotImplemented || error instanceof TooManyConnections;
    const isOurs = response.status >= 500 || (error instanceof Error && error.cause !== undefined);
    if (isOurs && !isExpected) reportError({ request, status: response.status, error });
    return response;
  }

  /** Adds the headers of every answer, and leaves the body out for HEAD. */
  function finish(
    given: RequestLike,
    request: LazyRequest,
    response: ResponseLike,
  ): MaybePromise<ResponseLike> {
    const { status, body } = response;
    const headers = withHeaders(response.headers, request.answerHeaders);
    if (given.method === 'HEAD') return withoutBody({ status, headers, body });
    if (isWhole(body)) return headers === response.headers ? response : { ...response, headers };
    const onError = (error: unknown) => reportError({ request, status, error });
    return { status, headers, body: watchStream(body, onError) };
  }

  async function finishLater(
    given: RequestLike,
    request: LazyRequest,
    answered: Promise<ResponseLike>,
  ): Promise<ResponseLike> {
    let response: ResponseLike;
    try {
      response = checkStatus(await answered);
    } catch (error) {
      response = fail(error, request);
    }
    return finish(given, request, response);
  }

  return function dispatch(given) {
    const request = new LazyRequest(given, createId);
    let response: ResponseLike;
    try {
      const answered = answer(given, request);
      if (answered instanceof Promise) return finishLater(given, request, answered);
      response = checkStatus(answered);
    } catch (error) {
      response = fail(error, request);
    }
    return finish(given, request, response);
  };
}

async function withoutBody({ status, headers, body }: ResponseLike): Promise<ResponseLike> {
  await cancelStream(body);
  return { status, headers, body: undefined };
}

async function tagEntity(
  encoded: MaybePromise<ResponseLike>,
  headers: RequestLike['headers'],
): Promise<ResponseLike> {
  return toConditional(await encoded, headers);
}

/** With the headers that the method has set: a login sets its cookie, and then leads on. */
function toRedirect(
  { status, location }: Redirect,
  response: LazyDraft,
  request: LazyRequest,
): ResponseLike {
  if (status < 300 || status > 399) throw new RangeError(`${status} does not redirect`);
  response.headers.set('location', location);
  const headers = toBodilessHeaders(response.headers, request, status);
  return { status, headers, body: undefined };
}

/** A status that cannot be sent is a defect of the method. */
function checkStatus(response: ResponseLike): ResponseLike {
  const { status } = response;
  if (response.session !== undefined) return response;
  if (Number.isInteger(status) && status >= 200 && status <= 599) return response;
  throw new RangeError(`${status} is no status of an answer`);
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value;
}

/**
 * The same value; rejects with 503 when the time is over, after calling `onOver`. What comes later is dropped (behaviour:
 * time-of-a-method).
 */
function withinTime<Value>(
  value: PromiseLike<Value>,
  timeMs: number,
  onOver: () => void,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new HttpError(503, { cause: new Error(`no answer within ${timeMs} ms`) }));
      onOver();
    }, timeMs);
    value.then(resolve, reject).then(
      () => clearTimeout(timer),
      () => clearTimeout(timer),
    );
  });
}
