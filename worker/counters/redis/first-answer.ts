// Asks several servers the same thing until one answers: the next is asked when one fails or is slow.
import type { Clock } from '../../../shared/clock.ts';
import { errorText } from '../../../shared/errors.ts';

/** A server that has not answered by then is no longer waited for alone. */
const nextServerMs = 250;

export interface Answered<Server, Answer> {
  readonly server: Server;
  readonly answer: Answer;
}

export interface FirstAnswerDeps<Server, Answer> {
  /** In the order in which they are asked; never empty. */
  readonly servers: readonly Server[];
  /** Rejects when there is no good answer; `signal` aborts when somebody else's has come. */
  readonly ask: (server: Server, signal: AbortSignal) => Promise<Answer>;
  /** For texts. */
  readonly show: (server: Server) => string;
  readonly clock: Clock;
}

/** Rejects with what each server said when none has a good answer. */
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
          failures.push(`${show(server)}: ${errorText(error)}`);
          if (failures.length < servers.length) askNext();
          else reject(new Error(failures.join('; ')));
        },
      );
    };
    askNext();
  });
}
