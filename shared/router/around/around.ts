// What surrounds methods: `around(next, request)` is called for every request below a folder, also for those that no
// method answers, and gets the answer to each, refusals and errors too (behaviour: folders).
import type { Around, ResponseLike, RoutedRequest } from '../request/request.ts';
import { SurroundedAnswer } from './surrounded-answer.ts';

/** What is called inside of all, and how its errors are answered. */
export interface Surrounded {
  readonly request: RoutedRequest & { end(): void };
  readonly call: () => Promise<ResponseLike>;
  readonly toResponse: (thrown: unknown) => Promise<{
    readonly response: ResponseLike;
    /** Undefined where it is no error, such as a redirect. */
    readonly error: unknown;
  }>;
}

/** Calls the arounds, the first of them outermost. Never rejects. */
export async function surround(
  arounds: readonly Around[],
  { request, call, toResponse }: Surrounded,
): Promise<SurroundedAnswer> {
  async function failed(thrown: unknown): Promise<SurroundedAnswer> {
    const { response, error } = await toResponse(thrown);
    return new SurroundedAnswer(response, error);
  }

  async function run(at: number): Promise<SurroundedAnswer> {
    const around = arounds[at];
    if (around === undefined) {
      try {
        return new SurroundedAnswer(await call());
      } catch (error) {
        return failed(error);
      }
    }
    let below: Promise<SurroundedAnswer> | undefined;
    let answered: SurroundedAnswer | undefined;
    const next = async () => {
      if (below !== undefined) throw new TypeError('an around calls next() once');
      below = run(at + 1);
      answered = await below;
      return answered;
    };
    let result: SurroundedAnswer;
    try {
      const returned: unknown = await around(next, request);
      result = returned === answered && answered ? answered : replacement(returned, answered);
    } catch (error) {
      result = await failed(error);
    }
    if (below !== undefined && result !== answered) {
      if (answered === undefined) request.end();
      void below.then((dropped) => dropped.end());
    }
    return result;
  }

  /** With the error, so that a page in its place keeps it in the log. */
  function replacement(returned: unknown, answered: SurroundedAnswer | undefined) {
    if (returned instanceof Response) {
      return SurroundedAnswer.from(returned, request.id, answered?.error);
    }
    throw new TypeError('an around returns the answer of next(), or a Response');
  }

  return run(0);
}
