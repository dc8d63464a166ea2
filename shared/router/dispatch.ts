// One request from its target to its response: route, guards, body, arguments, call, encode. Every
// outcome is a response; nothing is thrown to the mount.
import { type EncodeOptions, encodeResult } from './answer/encode.ts';
import { withEntityTag } from './answer/entity-tag.ts';
import type { ReportError } from './answer/error-report.ts';
import { chooseFormat } from './answer/format.ts';
import { toHeaderList, withHeaders } from './answer/header-list.ts';
import { toErrorResponse } from './answer/problem.ts';
import { cancelStream, watchStream } from './answer/stream.ts';
import { type Cors, corsHeaders, isPreflight, preflightHeaders } from './cors.ts';
import { BadRequest, HttpError, NotImplemented, notFound, Redirect, Stop } from './errors.ts';
import { runAfter, runBefore, runOnError } from './folder.ts';
import type { Limits } from './limits.ts';
import { openEventStream } from './live/event-stream.ts';
import type { LiveConnections } from './live/live-connections.ts';
import { openSocket } from './live/open-socket.ts';
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
import { LazyDraft, Routing } from './request/routed-request.ts';
import { parseTarget } from './request/target.ts';
import { resolvePath } from './table/resolve.ts';
import type { ClassNode, ModuleNode, Route } from './table/table.ts';
import { allowedMethods, answeringVerbs, anyVerbs, isKnownMethod } from './table/verb.ts';
import type { Xml } from './xml/xml.ts';

export type Dispatch = (request: RequestLike) => Promise<ResponseLike>;

export interface DispatchDeps {
  readonly table: ModuleNode;
  readonly limits: Limits;
  readonly bodies: BodyReader;
  readonly stringReturn: EncodeOptions['stringReturn'];
  /** Where a controller allows it. */
  readonly xml: Xml | undefined;
  readonly strictNames: boolean;
  readonly missingVerb: 405 | 501;
  readonly reportError: ReportError;
  readonly describe: () => OpenApiDocument;
  readonly live: LiveConnections;
}

const eventStream = 'text/event-stream';

/** Not thrown: the most frequent answer to those who try paths. */
const nothingHere = notFound();

/** What is known so far of a request, for its answer and the log. */
interface Progress {
  readonly given: RequestLike;
  readonly request: Routing;
  /** Headers of every answer to it. */
  headers: HeaderList;
}

/** What a route is called with. */
interface Call {
  readonly progress: Progress;
  readonly query: string;
  readonly positionals: readonly string[];
  readonly cors: Cors | undefined;
}

export function createDispatch(deps: DispatchDeps): Dispatch {
  const { table, limits, bodies, stringReturn, strictNames, missingVerb } = deps;
  const { reportError, describe, live } = deps;

  function answer(progress: Progress): ResponseLike | Promise<ResponseLike> {
    const { given, request } = progress;
    const { method, headers } = given;
    const target = parseTarget(given.target, limits);
    request.setParts(target.parts);
    if (target.isServer) return answerServer(method, request.id);
    const match = resolvePath(table, target.parts, { strict: strictNames });
    if (match === undefined && isKnownMethod(method)) {
      return toErrorResponse(nothingHere, request.id);
    }
    if (match === undefined) throw new NotImplemented();
    const { node, positionals } = match;
    if (node.cors !== undefined && node.verbs.size > 0) {
      progress.headers = corsHeaders(node.cors, headers);
      if (isPreflight(method, headers)) return noContent(preflightHeaders(headers), request.id);
    }
    const route = given.isUpgrade === true ? node.verbs.get('CONNECT') : findRoute(node, method);
    if (route === undefined) {
      return answerWithoutRoute(node, { method, partCount: positionals.length, id: request.id });
    }
    if (route.negotiated) progress.headers = [...progress.headers, 'vary', 'Accept'];
    const run = route.folders.length === 0 ? callRoute : callInFolders;
    return run(route, { progress, query: target.query, positionals, cors: node.cors });
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

  async function callRoute(
    route: Route,
    { progress, query, positionals, cors }: Call,
  ): Promise<ResponseLike> {
    const { given, request } = progress;
    const { binder, folders } = route;
    const { methodTimeoutMs } = route.limits;
    const xml = route.xml ? deps.xml : undefined;
    const format = route.negotiated ? chooseFormat(given.headers.get('accept')) : 'json';
    const encoding: EncodeOptions = {
      stringReturn,
      requestId: request.id,
      xml: xml && { ...xml, asked: format === 'xml' },
    };
    const response = new LazyDraft(route.mediaType);
    if (route.socket !== undefined) refuseForeignOrigin(given.headers, cors);
    try {
      for (const guard of route.guards) await guard.check(request);
      binder.refuseSurplus(positionals.length);
      if (folders.length > 0) await runBefore(folders, request);
      if (format === undefined) throw new HttpError(406, { detail: 'an answer is JSON or XML' });
      const args = binder.bind({
        parts: positionals,
        query: query === '' ? noKeywords : parseUrlencoded(query, 'query', route.limits),
        body:
          given.body === undefined
            ? noBody
            : await bodies.readBody(given, { taken: binder.takesBody, xml, limits: route.limits }),
      });
      const context = { request, response, describe };
      if (route.socket !== undefined) {
        const report = (status: number, error: unknown) => reportError({ request, status, error });
        const session = await openSocket(route.socket, context, args, { live, limits, report });
        const headers = toHeaderList([], response.setHeaders, request.id);
        return { status: 101, headers, body: undefined, session };
      }
      const called = route.call(context, args);
      const value = !isThenable(called)
        ? called
        : methodTimeoutMs === Number.POSITIVE_INFINITY
          ? await called
          : await withinTime(called, methodTimeoutMs, () => request.end());
      if (route.op?.spec.produces === eventStream && isAsyncGenerator(value)) {
        return await sendEvents(value, request, response);
      }
      const encoded = await encodeResult(value, response, encoding);
      return route.op?.spec.etag === true
        ? withEntityTag(encoded, given.headers.get('if-none-match'))
        : encoded;
    } catch (error) {
      if (error instanceof Redirect) return toRedirect(error, response, request.id);
      if (!(error instanceof Stop)) throw error;
      response.status = error.status;
      return await encodeResult(error.value, response, encoding);
    }
  }

  async function callInFolders(route: Route, call: Call): Promise<ResponseLike> {
    const { request } = call.progress;
    let answer: ResponseLike;
    try {
      answer = checkStatus(await callRoute(route, call));
    } catch (error) {
      answer = fail(await runOnError(route.folders, error, request), request);
    }
    return answer.session === undefined ? runAfter(route.folders, answer, request) : answer;
  }

  /** The answer for what was thrown, which is reported if it is a failure of ours. */
  function fail(error: unknown, request: Routing): ResponseLike {
    const response = toErrorResponse(error, request.id);
    const isExpected = error instanceof NotImplemented;
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

  return async (given) => {
    const request = new Routing(given);
    const progress: Progress = { given, request, headers: [] };
    let response: ResponseLike;
    try {
      response = checkStatus(await answer(progress));
    } catch (error) {
      response = fail(error, request);
    }
    const { status, body, session } = response;
    const headers = withHeaders(response.headers, progress.headers);
    if (given.method === 'HEAD') {
      await cancelStream(body);
      return { status, headers, body: undefined };
    }
    if (session !== undefined) return { status, headers, body, session };
    if (isWhole(body)) return { status, headers, body };
    const onError = (error: unknown) => reportError({ request, status, error });
    return { status, headers, body: watchStream(body, onError) };
  };
}

/** Not a stream, whose chunks are events already. */
function isAsyncGenerator(value: unknown): value is AsyncGenerator {
  return (
    typeof value === 'object' && value !== null && Symbol.asyncIterator in value && 'next' in value
  );
}

function findRoute(node: ClassNode, method: string): Route | undefined {
  for (const verb of answeringVerbs(method)) {
    const route = node.verbs.get(verb);
    if (route !== undefined) return route;
  }
  return undefined;
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
