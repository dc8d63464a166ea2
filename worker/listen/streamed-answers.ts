// Long answers of a port, written piece by piece to as many readers at once as are allowed: one who is slow, or does not
// read at all, holds a piece and not a whole answer.
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../../shared/clock.ts';
import { sendError } from './plain-http-server.ts';

/** Limit of answers being written, so that slow readers do not pile them up. */
export const maxAnswers = 8;
export const answerLimitMs = 60_000;
const waitingBytes = 64 * 1024;

export class StreamedAnswers {
  readonly #clock: Pick<Clock, 'after'>;
  #open = 0;

  constructor(clock: Pick<Clock, 'after'>) {
    this.#clock = clock;
  }

  /** `write` begins the answer; where it throws, nothing has been sent. */
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
