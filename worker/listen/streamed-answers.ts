// Long answers of a port, written piece by piece to a bounded number of concurrent readers: a slow reader, or one that
// does not read at all, holds one piece rather than the complete answer.
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../../shared/clock.ts';
import { sendError } from './plain-http-server.ts';

/** Limit of answers being written, so that slow readers do not accumulate. */
export const maxAnswers = 8;
export const answerLimitMs = 60_000;
const waitingBytes = 64 * 1024;

export class StreamedAnswers {
  readonly #clock: Pick<Clock, 'after'>;
  #open = 0;

  constructor(clock: Pick<Clock, 'after'>) {
    this.#clock = clock;
  }

  /** `write` starts the answer; if it throws, nothing was sent. */
  send(
    request: FastifyRequest,
    reply: FastifyReply,
    contentType: string,
    write: () => AsyncIterable<string>,
  ): FastifyReply {
    if (this.#open >= maxAnswers) {
      return sendError(reply, 503, `${maxAnswers} others are being answered; try again later`);
    }
    if (request.method === 'HEAD') return reply.header('content-type', contentType).send();
    const pieces = write();
    reply.header('content-type', contentType);
    const body = Readable.from(pieces, { objectMode: false, highWaterMark: waitingBytes });
    this.#open++;
    const cancelLimit = this.#clock.after(answerLimitMs, () => body.destroy());
    body.once('close', () => {
      this.#open--;
      cancelLimit();
    });
    return reply.send(body);
  }
}
