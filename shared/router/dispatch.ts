// One request from its target to its response: route, guards, body, arguments, call, encode. Every
// outcome is a response; nothing is thrown to the mount.
import { randomUUID } from 'node:crypto';
import { type EncodeOptions, encodeResult } from './answer/encode.ts';
import type { ReportError } from './answer/error-report.ts';
import { chooseFormat } from './answer/format.ts';
import { setCommonHeaders, toErrorResponse } from './answer/problem.ts';
import { cancelStream, watchStream } from './answer/stream.ts';
import { type Cors, corsHeaders, isPreflight, preflightHeaders } from './cors.ts';
import { BadRequest, HttpError, NotImplemented, notFound, Redirect, Stop } from './errors.ts';
import type { Limits } from './limits.ts';
import { openEventStream } from './live/event-stream.ts';
import type { LiveConnections } from './live/live-connections.ts';
import { openSocket } from './live/open-socket.ts';
import { refuseForeignOrigin } from './live/origin.ts';
import type { OpenApiDocument } from './openapi/openapi-document.ts';
import type { BodyReader } from './request/body.ts';
import { createKeywords, parseUrlencoded } from './request/keywords.ts';
import type { RequestLike, ResponseDraft, ResponseLike } from './request/request.ts';
import { Routing } from './request/routed-request.ts';
import { parseTarget, toPath } from './request/target.ts';
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

type HeaderList = readonly (readonly [string, string])[];

/** What is known so far of a request, for its answer and the log. */
interface Progress {
  readonly request: Routing;
  /** Headers of every answer to it. */
  headers: HeaderList;
}

const eventStream = 'text/event-stream';
const wellFormedId = /^[A-Za-z0-9._-]{1,64}$/;

export function createDispatch(deps: DispatchDeps): Dispatch {
  const { table, limits, bodies, stringReturn, strictNames, missingVerb } = deps;
  const { reportError, describe, live } = deps;

  async function answer(given: RequestLike, progress: Progress): Promise<ResponseLike> {
    const { method, headers } = given;
    const target = parseTarget(given.target, limits);
    progress.request.path = toPath(target.parts);
    if (target.isServer) return answerServer(method);
    const match = resolvePath(table, target.parts, { strict: strictNames });
    if (match === undefined) throw isKnownMethod(method) ? notFound() : new NotImplemented();
    const { node, positionals } = match;
    if (node.cors !== undefined && node.verbs.size > 0) {
      progress.headers = corsHeaders(node.cors, headers);
      if (isPreflight(method, headers)) return noContent(preflightHeaders(headers));
    }
    const route = given.isUpgrade === true ? node.verbs.get('CONNECT') : findRoute(node, method);
    if (route === undefined) return answerWithoutRoute(node, method, positionals.length);
    if (route.negotiated) progress.headers = [...progress.headers, ['vary', 'Accept']];
    return callRoute(route, {
      given,
      query: target.query,
      positionals,
      request: progress.request,
      cors: node.cors,
    });
  }

  function answerWithoutRoute(node: ClassNode, method: string, partCount: number): ResponseLike {
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
      if (node.cors === undefined) return noContent([['allow', allow]]);
      throw new BadRequest('a preflight needs Origin and Access-Control-Request-Method');
    }
    if (missingVerb === 501 && node.verbs.size > 0 && partCount === 0) throw new NotImplemented();
    if (missingVerb === 501 || fitting.length === 0) throw notFound();
    throw new HttpError(405, { headers: { allow } });
  }

  async function callRoute(
    route: Route,
    {
      given,
      query,
      positionals,
      request,
      cors,
    }: {
      readonly given: RequestLike;
      readonly query: string;
      readonly positionals: readonly string[];
      readonly request: Routing;
      readonly cors: Cors | undefined;
    },
  ): Promise<ResponseLike> {
    const { mediaType } = route;
    const xml = route.xml ? deps.xml : undefined;
    const format = route.negotiated ? chooseFormat(given.headers.get('accept')) : 'json';
    const encoding: EncodeOptions = {
      stringReturn,
      ...(xml && { xml: { ...xml, asked: format === 'xml' } }),
    };
    const response: ResponseDraft = { status: undefined, headers: new Headers(), mediaType };
    if (route.socket !== undefined) refuseForeignOrigin(given.headers, cors);
    try {
      for (const guard of route.guards) await guard.check(request);
      route.binder.refuseSurplus(positionals.length);
      if (format === undefined) throw new HttpError(406, { detail: 'an answer is JSON or XML' });
      const args = route.binder.bind({
        parts: positionals,
        query: query === '' ? createKeywords() : parseUrlencoded(query, 'query', limits),
        body: await bodies.readBody(given, { taken: route.binder.takesBody, xml }),
      });
      const context = { request, response, describe };
      if (route.socket !== undefined) {
        const report = (status: number, error: unknown) => reportError({ request, status, error });
        const session = await openSocket(route.socket, context, args, { live, limits, report });
        return { status: 101, headers: response.headers, body: undefined, session };
      }
      const value = await route.call(context, args);
      if (route.op?.spec.produces === eventStream && isAsyncGenerator(value)) {
        return await sendEvents(value, request, response);
      }
      return await encodeResult(value, response, encoding);
    } catch (error) {
      if (error instanceof Redirect) return toRedirect(error, response.headers);
      if (!(error instanceof Stop)) throw error;
      return await encodeResult(error.value, { ...response, status: error.status }, encoding);
    }
  }

  async function sendEvents(
    values: AsyncIterable<unknown>,
    request: Routing,
    { status, headers }: ResponseDraft,
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
    headers.set('content-type', eventStream);
    // A proxy that buffers would keep the events from their reader.
    headers.set('x-accel-buffering', 'no');
    return { status: status ?? 200, headers, body: stream };
  }

  return async (given) => {
    const { method, headers } = given;
    const asked = headers.get('x-request-id') ?? '';
    const id = wellFormedId.test(asked) ? asked : randomUUID();
    const request = new Routing(given, id);
    const progress: Progress = { request, headers: [] };
    let response: ResponseLike;
    try {
      response = checkStatus(await answer(given, progress));
      setCommonHeaders(response.headers, id);
    } catch (error) {
      response = toErrorResponse(error, id);
      const isExpected = error instanceof NotImplemented;
      const isOurs =
        response.status >= 500 || (error instanceof Error && error.cause !== undefined);
      if (isOurs && !isExpected) {
        reportError({ request: progress.request, status: response.status, error });
      }
    }
    setHeaders(response.headers, progress.headers);
    const { status, headers: answered, body } = response;
    if (method === 'HEAD') {
      await cancelStream(body);
      return { status, headers: answered, body: undefined };
    }
    if (body === undefined || body instanceof Uint8Array) return response;
    const onError = (error: unknown) => reportError({ request: progress.request, status, error });
    return { status, headers: answered, body: watchStream(body, onError) };
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
function answerServer(method: string): ResponseLike {
  if (method !== 'OPTIONS') throw new BadRequest('the target * goes with OPTIONS only');
  return noContent([['allow', allowedMethods(anyVerbs).join(', ')]]);
}

function noContent(headers: HeaderList): ResponseLike {
  return {
    status: 204,
    headers: new Headers(headers.map(([name, value]) => [name, value])),
    body: undefined,
  };
}

/** With the headers that the method has set: a login sets its cookie, and then leads on. */
function toRedirect({ status, location }: Redirect, given: Headers): ResponseLike {
  if (status < 300 || status > 399) throw new RangeError(`${status} does not redirect`);
  const headers = new Headers(given);
  headers.set('location', location);
  return { status, headers, body: undefined };
}

/** A status that cannot be sent is a defect of the method. */
function checkStatus(response: ResponseLike): ResponseLike {
  const { status } = response;
  if (response.session !== undefined) return response;
  if (Number.isInteger(status) && status >= 200 && status <= 599) return response;
  throw new RangeError(`${status} is no status of an answer`);
}

function setHeaders(headers: Headers, list: HeaderList): void {
  for (const [name, value] of list) {
    if (name === 'vary') headers.append(name, value);
    else headers.set(name, value);
  }
}
