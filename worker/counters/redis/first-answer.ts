// Asks several servers the same thing until one answers: the next is asked when one fails or is slow.
import type { Clock } from '../../../shared/clock.ts';
import { errorText } from '../../../shared/errors.ts';

/** How long to wait for a server before the next is asked as well. */
const nextServerMs = 250;

export interface Answered<Server, Answer> {
  readonly server: Server;
  readonly answer: Answer;
}

export interface FirstAnswerDeps<Server, Answer> {
  /** Asked in this order; never empty. */
  readonly servers: readonly Server[];
  /** Rejects when there is no usable answer; `signal` aborts when another server has answered. */
  readonly ask: (server: Server, signal: AbortSignal) => Promise<Answer>;
  /** Names a server in texts. */
  readonly show: (server: Server) => string;
  readonly clock: Clock;
}

/** Rejects with the failure of each server when none has a usable answer. */
export function findFirstAnswer<Server, Answer>(
  { servers, ask, show, clock }: FirstAnswerDeps<Server, Answer>,
  signal: AbortSignal,
): Promise<Answered<Server, Answer>> {
  return new Promise((resolve, reject) => {
    const settled = new AbortController();
    const either = AbortSignal.any([settled.signal, signal]);
    const failures: string[] = [];
    let asked = 0;
    let cancelNext: (() => void) | undefined;
    const askNext = () => {
      cancelNext?.();
      const server = servers[asked];
      if (server === undefined) return;
      asked++;
      cancelNext = clock.after(nextServerMs, askNext);
      ask(server, either).then(
        (answer) => {
          cancelNext?.();
          settled.abort();
          resolve({ server, answer });
        },
        (error: unknown) => {
          // Those that were given up fail as well.
          if (settled.signal.aborted) return;
          failures.push(`${show(server)}: ${errorText(error)}`);
          if (failures.length < servers.length && !signal.aborted) {
            askNext();
            return;
          }
          cancelNext?.();
          settled.abort();
          reject(new Error(failures.join('; ')));
        },
      );
    };
    askNext();
  });
}
