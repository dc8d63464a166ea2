// Asks several servers the same question until one answers: the next one is asked when one fails or is slow.
import type { Clock } from '../../../shared/clock.ts';
import { errorText } from '../../../shared/errors.ts';

/** How long to wait for a server before the next one is asked as well. */
const nextServerMs = 250;

export interface Answered<Server, Answer> {
  readonly server: Server;
  readonly answer: Answer;
}

export interface FirstAnswerDeps<Server, Answer> {
  /** The servers in the order in which they are asked; never empty. */
  readonly servers: readonly Server[];
  /** Rejects when there is no usable answer; `signal` aborts when another server has answered. */
  readonly ask: (server: Server, signal: AbortSignal) => Promise<Answer>;
  /** The name of a server in texts. */
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
          // Aborted attempts fail as well.
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
