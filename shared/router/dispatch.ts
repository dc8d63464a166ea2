// One request from its target to its response: route, guards, body, arguments, call, encode. Every
// outcome is a response; nothing is thrown to the mount.
import { encodeResult, type Writing } from './answer/encode.ts';
import { withEntityTag } from './answer/entity-tag.ts';
import type { ReportError } from './answer/error-report.ts';
import { chooseFormat, type Format } from './answer/format.ts';
import { toHeaderList, withHeaders } from './answer/header-list.ts';
import { prepareErrorResponse, toErrorResponse } from './answer/problem.ts';
import { cancelStream, watchStream } from './answer/stream.ts';
import type { BodyArguments } from './arguments/bind.ts';
import { type Cors, corsHeaders, isPreflight, preflightHeaders } from './cors.ts';
import {
  BadRequest,
  HttpError,
  NotImplemented,
  notFound,
  Redirect,
  Stop,
  TooManyConnections,
} from './errors.ts';
import { runAfter, runBefore, runOnError } from './folder.ts';
import type { Limits } from './limits.ts';
import { openEventStream } from './live/event-stream.ts';
import type { LiveConnections } from './live/live-connections.ts';
import { openSocket, type SocketClass } from './live/open-socket.ts';
import { refuseForeignOrigin } from './live/origin.ts';
import type { OpenApiDocument } from './openapi/openapi-document.ts';
import { type BodyReader, noBody } from './request/body.ts';
import { withinTime } from './request/deadline.ts';
import { noKeywords, parseUrlencoded } from './request/keywords.ts';
import {
  type HeaderList,
  isWhole,
  type RequestLike,
  type ResponseLike,
} from './request/request.ts';
import { createIds, LazyDraft, Routing } from './request/routed-request.ts';
import { parseTarget } from './request/target.ts';
import { resolvePath } from './table/resolve.ts';
import type { ClassNode, ModuleNode, Route } from './table/table.ts';
import { allowedMethods, anyVerbs, isKnownMethod } from './table/verb.ts';
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

const eventStream = 'text/event-stream';
const noHeaders: HeaderList = [];

/** Not thrown: the most frequent answer to those who try paths. */
const nothingHere = prepareErrorResponse(notFound());

/** What is known so far of a request, for its answer and the log. */
interface Progress {
  readonly given: RequestLike;
  readonly request: Routing;
  /** Headers of every answer to it. */
  headers: HeaderList;
}

/** A method on its way to be called. */
interface Call {
  readonly route: Route;
  readonly given: RequestLike;
  readonly request: Routing;
  readonly query: string;
  readonly positionals: readonly string[];
  readonly cors: Cors | undefined;
  /** What the answer is to be written in; undefined where the client takes neither. */
  readonly format: Format | undefined;
  readonly draft: LazyDraft;
}

export function createDispatch(deps: DispatchDeps): Dispatch {
  const { table, limits, bodies, stringReturn, strictNames, missingVerb } = deps;
  const { reportError, describe, live } = deps;
  const createId = createIds();
  const jsonAlone: Writing = { stringReturn, xml: undefined };

  function answer(progress: Progress): MaybePromise<ResponseLike> {
    const { given, request } = progress;
    const { method, headers } = given;
    const target = parseTarget(given.target, limits);
    request.setParts(target.parts);
    if (target.isServer) return answerServer(method, request.id);
    const match = resolvePath(table, target.parts, { strict: strictNames });
    if (match === undefined && isKnownMethod(method)) {
      return nothingHere(request.id);
    }
    if (match === undefined) throw new NotImplemented();
    const { node, positionals } = match;
    if (node.cors !== undefined && node.verbs.size > 0) {
      progress.headers = corsHeaders(node.cors, headers);
      if (isPreflight(method, headers)) return noContent(preflightHeaders(headers), request.id);
    }
    const route = given.isUpgrade === true ? node.verbs.get('CONNECT') : node.answers.get(method);
    if (route === undefined) {
      return answerWithoutRoute(node, { method, partCount: positionals.length, id: request.id });
    }
    if (route.negotiated) progress.headers = [...progress.headers, 'vary', 'Accept'];
    const call: Call = {
      route,
      given,
      request,
      query: target.query,
      positionals,
      cors: node.cors,
      format: route.negotiated ? chooseFormat(headers.get('accept')) : 'json',
      draft: new LazyDraft(route.mediaType),
    };
    if (route.folders.length > 0) return callInFolders(call);
    return route.waits || given.body !== undefined ? callInTurn(call) : callAtOnce(call);
  }

  function answerWithoutRoute(
    node: ClassNode,
    {
      method,
      partCount,
      id,
    }: { readonly method: string; readonly partCount: number; readonly id: string },
  ): ResponseLike {
    if (!isKnownMethod(method)) throw new NotImplemented();
    const fitting = [...node.verbs].filter(
      ([verb, { binder }]) => verb !== 'CONNECT' && binder.fits(partCount),
    );
    if (fitting.length === 0 && node.verbs.get('CONNECT')?.binder.fits(partCount) === true) {
      const headers = { upgrade: 'websocket', connection: 'Upgrade' };
      throw new HttpError(426, { headers, detail: 'this is a WebSocket' });
    }
    const allow = allowedMethods(fitting.map(([verb]) => verb)).join(', ');
    if (method === 'OPTIONS' && fitting.length > 0) {
      if (node.cors === undefined) return noContent(['allow', allow], id);
      throw new BadRequest('a preflight needs Origin and Access-Control-Request-Method');
    }
    if (missingVerb === 501 && node.verbs.size > 0 && partCount === 0) throw new NotImplemented();
    if (missingVerb === 501 || fitting.length === 0) throw notFound();
    throw new HttpError(405, { headers: { allow } });
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

  async function callInTurn(call: Call): Promise<ResponseLike> {
    const { route, given, request } = call;
    const { binder, folders, socket } = route;
    try {
      if (socket !== undefined) refuseForeignOrigin(given.headers, call.cors);
      for (const guard of route.guards) {
        const passing = guard.check(request);
        if (passing !== undefined) await passing;
      }
      refuseMisfit(call);
      if (folders.length > 0) await runBefore(folders, request);
      const body =
        given.body === undefined
          ? noBody
          : await bodies.readBody(given, {
              taken: binder.takesBody,
              raw: route.op?.spec.raw === true,
              xml: route.xml ? deps.xml : undefined,
              limits: route.limits,
            });
      if (socket !== undefined) return await openSession(socket, call, body);
      const value = callMethod(call, body);
      return await encode(call, isThenable(value) ? await value : value);
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

  /** What is wrong before anything of the body is known. */
  function refuseMisfit({ route, positionals, format }: Call): void {
    route.binder.refuseSurplus(positionals.length);
    if (format === undefined) throw new HttpError(406, { detail: 'an answer is JSON or XML' });
  }

  function bind({ route, query, positionals }: Call, body: BodyArguments): unknown[] {
    const { binder, limits } = route;
    const keywords =
      query === '' ? noKeywords : parseUrlencoded(query, 'query', limits, binder.names);
    return binder.bind(positionals, keywords, body);
  }

  function callMethod(call: Call, body: BodyArguments): unknown {
    const { route, request, draft } = call;
    const { methodTimeoutMs } = route.limits;
    const args = bind(call, body);
    const instance = new route.controller({ request, response: draft, describe });
    const value = route.handler.apply(instance, args);
    if (methodTimeoutMs === Number.POSITIVE_INFINITY || !isThenable(value)) return value;
    return withinTime(value, methodTimeoutMs, () => request.end());
  }

  async function openSession(
    socket: SocketClass,
    call: Call,
    body: BodyArguments,
  ): Promise<ResponseLike> {
    const { request, draft } = call;
    const report = (status: number, error: unknown) => reportError({ request, status, error });
    const context = { request, response: draft, describe };
    const session = await openSocket(socket, context, bind(call, body), { live, limits, report });
    const headers = toHeaderList([], draft.setHeaders, request.id);
    return { status: 101, headers, body: undefined, session };
  }

  function encode(call: Call, value: unknown): MaybePromise<ResponseLike> {
    const { route, given, request, draft } = call;
    if (route.op?.spec.produces === eventStream && isAsyncGenerator(value)) {
      return sendEvents(value, request, draft);
    }
    const encoded = encodeResult(value, draft, request.id, writingOf(call));
    if (route.op?.spec.etag !== true) return encoded;
    return tagEntity(encoded, given.headers.get('if-none-match'));
  }

  function writingOf({ route, format }: Call): Writing {
    if (!route.xml || deps.xml === undefined) return jsonAlone;
    return { stringReturn, xml: { ...deps.xml, asked: format === 'xml' } };
  }

  /** For what ends a method early; any other error goes on. */
  function answerEarly(call: Call, error: unknown): MaybePromise<ResponseLike> {
    const { request, draft } = call;
    if (error instanceof Redirect) return toRedirect(error, draft, request.id);
    if (!(error instanceof Stop)) throw error;
    draft.status = error.status;
    return encodeResult(error.value, draft, request.id, writingOf(call));
  }

  async function callInFolders(call: Call): Promise<ResponseLike> {
    const { route, request } = call;
    let answer: ResponseLike;
    try {
      answer = checkStatus(await callInTurn(call));
    } catch (error) {
      answer = fail(await runOnError(route.folders, error, request), request);
    }
    return answer.session === undefined ? runAfter(route.folders, answer, request) : answer;
  }

  /** The answer for what was thrown, which is reported if it is a failure of ours. */
  function fail(error: unknown, request: Routing): ResponseLike {
    const response = toErrorResponse(error, request.id);
    const isExpected = error instanceof NotImplemented || error instanceof TooManyConnections;
    const isOurs = response.status >= 500 || (error instanceof Error && error.cause !== undefined);
    if (isOurs && !isExpected) reportError({ request, status: response.status, error });
    return response;
  }

  async function sendEvents(
    values: AsyncIterable<unknown>,
    request: Routing,
    { status, setHeaders }: LazyDraft,
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
    // A proxy that buffers would keep the events from their reader.
    const own = ['content-type', eventStream, 'x-accel-buffering', 'no'];
    const headers = toHeaderList(own, setHeaders, request.id);
    return { status: status ?? 200, headers, body: stream };
  }

  function finish(
    { given, request, headers: more }: Progress,
    response: ResponseLike,
  ): MaybePromise<ResponseLike> {
    const { status, body, session } = response;
    if (given.method === 'HEAD') return withoutBody(response, more);
    if (isWhole(body)) {
      return more.length === 0
        ? response
        : { ...response, headers: withHeaders(response.headers, more) };
    }
    const headers = withHeaders(response.headers, more);
    if (session !== undefined) return { status, headers, body, session };
    const onError = (error: unknown) => reportError({ request, status, error });
    return { status, headers, body: watchStream(body, onError) };
  }

  async function finishLater(
    progress: Progress,
    answered: Promise<ResponseLike>,
  ): Promise<ResponseLike> {
    let response: ResponseLike;
    try {
      response = checkStatus(await answered);
    } catch (error) {
      response = fail(error, progress.request);
    }
    return finish(progress, response);
  }

  return (given) => {
    const request = new Routing(given, createId);
    const progress: Progress = { given, request, headers: noHeaders };
    let response: ResponseLike;
    try {
      const answered = answer(progress);
      if (answered instanceof Promise) return finishLater(progress, answered);
      response = checkStatus(answered);
    } catch (error) {
      response = fail(error, request);
    }
    return finish(progress, response);
  };
}

async function withoutBody(
  { status, headers, body }: ResponseLike,
  more: HeaderList,
): Promise<ResponseLike> {
  await cancelStream(body);
  return { status, headers: withHeaders(headers, more), body: undefined };
}

async function tagEntity(
  encoded: MaybePromise<ResponseLike>,
  ifNoneMatch: string | null,
): Promise<ResponseLike> {
  return withEntityTag(await encoded, ifNoneMatch);
}

/** Not a stream, whose chunks are events already. */
function isAsyncGenerator(value: unknown): value is AsyncGenerator {
  return (
    typeof value === 'object' && value !== null && Symbol.asyncIterator in value && 'next' in value
  );
}

/** `OPTIONS *` asks what the server supports; no other method has this target. */
function answerServer(method: string, requestId: string): ResponseLike {
  if (method !== 'OPTIONS') throw new BadRequest('the target * goes with OPTIONS only');
  return noContent(['allow', allowedMethods(anyVerbs).join(', ')], requestId);
}

function noContent(headers: HeaderList, requestId: string): ResponseLike {
  return { status: 204, headers: toHeaderList(headers, undefined, requestId), body: undefined };
}

/** With the headers that the method has set: a login sets its cookie, and then leads on. */
function toRedirect(
  { status, location }: Redirect,
  response: LazyDraft,
  requestId: string,
): ResponseLike {
  if (status < 300 || status > 399) throw new RangeError(`${status} does not redirect`);
  response.headers.set('location', location);
  return { status, headers: toHeaderList([], response.headers, requestId), body: undefined };
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
