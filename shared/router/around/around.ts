// What surrounds methods: `around(next, request)` is called for every request below a folder, also for those that no
// method answers, and gets the answer to each, refusals and errors too (behaviour: folders).
import type { MaybePromise } from '../maybe-promise.ts';
import type { Around, ResponseLike, RoutedRequest } from '../request/request.ts';
import { SurroundedAnswer } from './surrounded-answer.ts';

/** What is called inside of all, and how its errors are answered. */
export interface Surrounded {
  readonly request: RoutedRequest & { end(): void };
  readonly call: () => MaybePromise<ResponseLike>;
  readonly toResponse: (thrown: unknown) => Promise<{
    readonly response: ResponseLike;
    /** Undefined where it is no error, such as a redirect. */
    readonly error?: unknown;
  }>;
}

/** Calls the arounds, the first of them outermost. Never rejects. What none of them returns is ended; the request is, too,
 * where an answer was not waited for. */
export async function surround(
  arounds: readonly Around[],
  { request, call, toResponse }: Surrounded,
): Promise<SurroundedAnswer> {
  const made: SurroundedAnswer[] = [];
  let unanswered = 0;
  let isOver = false;

  function keep(answer: SurroundedAnswer): SurroundedAnswer {
    if (isOver) void answer.end();
    else made.push(answer);
    return answer;
  }

  async function run(at: number): Promise<SurroundedAnswer> {
    unanswered += 1;
    try {
      const around = arounds[at];
      if (around === undefined) {
        const answered = call();
        return keep(new SurroundedAnswer(answered instanceof Promise ? await answered : answered));
      }
      let isCalled = false;
      const next = () => {
        if (isCalled) throw new TypeError('an around calls next() once');
        isCalled = true;
        return run(at + 1);
      };
      const returned: unknown = await around(next, request);
      if (returned instanceof SurroundedAnswer && made.includes(returned)) return returned;
      if (returned instanceof Response) {
        // With the error, so that a page in its place keeps it in the log.
        return keep(SurroundedAnswer.from(returned, request.id, made.at(-1)?.error));
      }
      throw new TypeError('an around returns the answer of next(), or a Response');
    } catch (thrown) {
      const { response, error } = await toResponse(thrown);
      return keep(new SurroundedAnswer(response, error));
    } finally {
      unanswered -= 1;
    }
  }

  const result = await run(0);
  isOver = true;
  if (unanswered > 0) request.end();
  for (const answer of made) if (answer !== result) void answer.end();
  return result;
}
