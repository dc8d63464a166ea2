// The worker's HTTP port: decisions as JSON, and the health check (behaviour: json-endpoint).
import { METHODS } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';
import { createRepeatedLog } from '../../shared/repeated-log.ts';
import { codes, type RateLimitRequest } from '../decision/message.ts';
import { toResponseText } from '../decision/message-text.ts';
import { maxRequestBytes, type RequestBounds } from '../decision/request-bounds.ts';
import {
  Decision,
  type DecisionOutcome,
  type ShouldRateLimit,
} from '../decision/should-rate-limit.ts';
import { LargeRequests, largeRequestBytes } from '../grpc/large-requests.ts';
import type { Health } from '../health.ts';
import type { Duration } from '../metrics.ts';
import type { SpanParent, Tracer } from '../tracing/tracer.ts';
import type { LeavingPort } from './leaving.ts';
import {
  createPlainHttpServer,
  type HttpListener,
  type HttpTarget,
  sendError,
  sendText,
} from './plain-http-server.ts';
import { type JsonRequest, parseJsonRequest } from './proto-json-reader.ts';
import { toJsonResponse } from './proto-json-writer.ts';
import { createBodyReader } from './request-body.ts';

/** Limit of the bytes of all bodies being read. */
export const maxAllBodiesBytes = 32 * 1024 * 1024;
export const maxConnections = 10_000;
/** Above every time limit of a decision. */
const stallLimitMs = 60_000;

export interface HttpDeps {
  readonly shouldRateLimit: ShouldRateLimit;
  readonly requestBounds?: RequestBounds;
  /** Shared turns of large requests; by default the port has its own. */
  readonly largeRequests?: LargeRequests;
  readonly health: Health;
  readonly log: Log;
  readonly clock: Clock;
  /** The duration of decisions. */
  readonly duration: Duration;
  /** Called for a request that cannot be parsed. */
  readonly onUndecodable?: () => void;
  /** Undefined if no spans are made. */
  readonly tracer?: Tracer | undefined;
}

type Answer =
  | DecisionOutcome
  | (JsonRequest & { readonly ok: false })
  /** Its turn would be too late, or the caller has disconnected. */
  | 'too-many'
  | 'aborted';

class HttpDecision extends Decision {
  readonly #settle: (outcome: DecisionOutcome) => void;

  constructor(
    request: RateLimitRequest,
    receivedMs: number,
    trace: SpanParent | undefined,
    settle: (outcome: DecisionOutcome) => void,
  ) {
    super(request, receivedMs, undefined, trace);
    this.#settle = settle;
  }

  answer(outcome: DecisionOutcome): void {
    this.#settle(outcome);
  }
}

export function createHttpServer(
  {
    shouldRateLimit,
    requestBounds,
    health,
    log,
    clock,
    duration,
    tracer,
    onUndecodable = () => {},
    largeRequests = new LargeRequests(() => clock.monotonicMs()),
  }: HttpDeps,
  target: HttpTarget,
): HttpListener & LeavingPort {
  const failures = createRepeatedLog({ clock, write: log.warning, again: 'in-time' });
  let asked = 0;
  const readBody = createBodyReader({ maxBytes: maxRequestBytes, maxAllBytes: maxAllBodiesBytes });

  function report(reason: string): void {
    failures.report(`/json: ${reason}`, reason);
  }

  async function decide(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    asked++;
    const startMs = clock.monotonicMs();
    const body = await readBody(request.raw);
    if (body.kind === 'aborted') return refuseAborted(reply);
    if (body.kind === 'too-large') {
      report(`body of more than ${maxRequestBytes} bytes`);
      onUndecodable();
      return sendError(reply.header('connection', 'close'), 413, 'Request Entity Too Large');
    }
    if (body.kind === 'too-many') return refuseBusy(reply, 'being read');
    // As in the reference, a request's trace headers are ignored here (behaviour: spans).
    const trace = tracer?.roots();
    const answer = await find(body.bytes, reply, trace);
    if (answer === 'aborted') return refuseAborted(reply);
    if (answer === 'too-many') return refuseBusy(reply, 'waiting for their turn');
    duration.observe((clock.monotonicMs() - startMs) / 1000);
    if (!answer.ok) {
      if ('error' in answer) return refuse(reply, answer.error.message);
      onUndecodable();
      // The caller of a well-formed request is shown which limit it exceeds.
      return refuse(reply, answer.problem, answer.isTooLarge ? answer.problem : undefined);
    }
    const { response } = answer;
    const span = trace?.startSpan('ratelimit server', 'NewJsonHandler Remaining Execution', {
      response: toResponseText(response),
    });
    const json = toJsonResponse(response);
    span?.end();
    if (json === undefined) {
      report('the dynamic metadata holds a number that JSON cannot write');
      return sendError(reply, 500, 'Internal Server Error');
    }
    const status = response.overallCode === codes.overLimit ? 429 : 200;
    // As bytes: for strings fastify adds a charset, which the reference's content type lacks.
    return reply.code(status).header('content-type', 'application/json').send(Buffer.from(json));
  }

  /** Reads the request and decides; a large one waits for its turn. */
  function find(
    bytes: Buffer,
    reply: FastifyReply,
    trace: SpanParent | undefined,
  ): Promise<Answer> {
    const receivedMs = clock.monotonicMs();
    return new Promise((resolve, reject) => {
      let pending: Decision | undefined;
      const settle = (answer: Answer) => {
        pending = undefined;
        largeRequests.over(turn);
        resolve(answer);
      };
      const begin = () => {
        try {
          const parsed = parseJsonRequest(bytes, requestBounds);
          if (parsed.ok) {
            const decision = new HttpDecision(parsed.request, receivedMs, trace, settle);
            pending = decision;
            shouldRateLimit(decision);
          } else settle(parsed);
        } catch (error) {
          largeRequests.over(turn);
          reject(error);
        }
      };
      const turn = { bytes: bytes.length, begin };
      reply.raw.once('close', () => {
        if (pending === undefined) settle('aborted');
        else pending.cancel();
      });
      if (bytes.length <= largeRequestBytes) begin();
      else if (!largeRequests.add(turn)) settle('too-many');
    });
  }

  function refuseAborted(reply: FastifyReply): FastifyReply {
    return refuse(reply, 'the caller disconnected before its request ended');
  }

  function refuseBusy(reply: FastifyReply, which: string): FastifyReply {
    report(`too many bodies are ${which}`);
    return sendError(reply.header('connection', 'close'), 503, 'Service Unavailable');
  }

  /** Answers the caller with only `text`, and logs the reason. */
  function refuse(reply: FastifyReply, reason: string, text = 'Bad Request'): FastifyReply {
    report(reason);
    return sendError(reply, 400, text);
  }

  const listener = createPlainHttpServer(
    { name: 'HTTP', ...target, stallLimitMs, maxConnections, log, clock },
    (server) => {
      server.route({ method: METHODS, url: '/json', handler: decide });
      server.route({
        method: METHODS,
        url: '/healthcheck',
        handler: (_request, reply) =>
          health.healthy ? sendText(reply, 200, 'OK') : reply.code(500).send(),
      });
      server.setNotFoundHandler((_request, reply) => sendError(reply, 404, '404 page not found'));
    },
  );
  return {
    start: () => listener.start(),
    get asked() {
      return asked;
    },
    turnAway() {
      listener.turnAway();
      // Callers that open a connection for each request are usually not connected.
      return asked > 0;
    },
    async stop(graceMs) {
      await listener.stop(graceMs);
      failures.flush();
    },
  };
}
