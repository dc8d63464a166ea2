// The worker's HTTP port: decisions as JSON, and the health check (reference-behaviour 4.1).
import { METHODS } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';
import type { Tracer } from '../../shared/tracing.ts';
import { codes } from '../decision/message.ts';
import { toResponseText } from '../decision/message-text.ts';
import type { DecisionOutcome, ShouldRateLimit } from '../decision/should-rate-limit.ts';
import type { Health } from '../health.ts';
import {
  createPlainHttpServer,
  type HttpListener,
  type HttpTarget,
  sendError,
  sendText,
} from './plain-http-server.ts';
import { parseJsonRequest } from './proto-json-reader.ts';
import { toJsonResponse } from './proto-json-writer.ts';
import { createRepeatedLog } from './repeated-log.ts';
import { createBodyReader } from './request-body.ts';

/** The reference has no limit; a request of this size holds more than 100,000 descriptors. */
const maxBodyBytes = 8 * 1024 * 1024;
/** Of all bodies that are being read. */
const maxAllBodiesBytes = 128 * 1024 * 1024;
const maxConnections = 10_000;
/** Above every bound of a decision. */
const stallLimitMs = 60_000;

export interface HttpDeps {
  readonly shouldRateLimit: ShouldRateLimit;
  readonly health: Health;
  readonly log: Log;
  readonly clock: Clock;
  /** Undefined: no spans are made. */
  readonly tracer?: Tracer | undefined;
}

export function createHttpServer(
  { shouldRateLimit, health, log, clock, tracer }: HttpDeps,
  target: HttpTarget,
): HttpListener {
  const failures = createRepeatedLog({ log, clock });
  const readBody = createBodyReader({ maxBytes: maxBodyBytes, maxAllBytes: maxAllBodiesBytes });

  async function decide(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const body = await readBody(request.raw);
    if (body.kind === 'aborted')
      return refuse(reply, 'the caller went away before its request ended');
    if (body.kind === 'too-large') {
      failures.warning(`/json: body of more than ${maxBodyBytes} bytes`);
      return sendError(reply.header('connection', 'close'), 413, 'Request Entity Too Large');
    }
    if (body.kind === 'too-many') {
      failures.warning(`/json: bodies of more than ${maxAllBodiesBytes} bytes at once`);
      return sendError(reply.header('connection', 'close'), 503, 'Service Unavailable');
    }
    const parsed = parseJsonRequest(body.bytes);
    if (!parsed.ok) return refuse(reply, parsed.problem);
    // As in the reference, a request's trace headers mean nothing here (reference-behaviour 11).
    const trace = tracer?.roots();
    const outcome = await new Promise<DecisionOutcome>((resolve) => {
      let isDecided = false;
      const settle = (result: DecisionOutcome) => {
        isDecided = true;
        resolve(result);
      };
      const pending = shouldRateLimit(parsed.request, undefined, settle, trace);
      reply.raw.once('close', () => {
        if (!isDecided) pending?.cancel();
      });
    });
    if (!outcome.ok) return refuse(reply, outcome.error.message);
    const span = trace?.startSpan('ratelimit server', 'NewJsonHandler Remaining Execution', {
      response: toResponseText(outcome.response),
    });
    const json = toJsonResponse(outcome.response);
    span?.end();
    if (json === undefined) {
      failures.warning('/json: the dynamic metadata holds a number that JSON cannot write');
      return sendError(reply, 500, 'Internal Server Error');
    }
    const status = outcome.response.overallCode === codes.overLimit ? 429 : 200;
    // As bytes: to strings fastify adds a charset, which the reference's content type has not.
    return reply.code(status).header('content-type', 'application/json').send(Buffer.from(json));
  }

  /** The caller learns nothing but that; the reason is for the log. */
  function refuse(reply: FastifyReply, reason: string): FastifyReply {
    failures.warning(`/json: ${reason}`);
    return sendError(reply, 400, 'Bad Request');
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
    async stop(graceMs) {
      await listener.stop(graceMs);
      failures.flush();
    },
  };
}
