// An answer whose JSON may be long: it is written and sent in parts, while other requests are served.
import { ownTurn } from '../../../shared/in-slices.ts';
import { writingJson } from '../store/json-in-slices.ts';

/** The most simultaneous answers with all files of a revision, or the differences of two, until they are read. */
export const mostLongAnswers = 8;
/** An answer that its caller does not read is aborted. */
const unreadMs = 30_000;

/** The value itself if its JSON is one part. `onEnd` is called once, when no more of the value will be sent. */
export async function toLongAnswer<Value extends object>(
  value: Value,
  onEnd = () => {},
): Promise<Value | Response> {
  await ownTurn();
  const parts = writingJson(value);
  const first = parts.next();
  const second = parts.next();
  if (!first.done && !second.done) return stream(parts, [first.value, second.value], onEnd);
  onEnd();
  return value;
}

/** For long values: lists may be generators, whose items are created when they are sent. */
export function streamJson(value: object): Response {
  return stream(writingJson(value), [], () => {});
}

type Part = string | Uint8Array;

/** `begun` are the first parts. */
function stream(parts: Iterator<Part, void>, begun: Part[], onEnd: () => void): Response {
  const encoder = new TextEncoder();
  let hasEnded = false;
  let timer: NodeJS.Timeout | undefined;
  const end = () => {
    clearTimeout(timer);
    if (!hasEnded) onEnd();
    hasEnded = true;
  };
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      clearTimeout(timer);
      await ownTurn();
      if (hasEnded) return;
      const part = begun.shift() ?? parts.next().value;
      if (part === undefined) {
        controller.close();
        end();
        return;
      }
      controller.enqueue(typeof part === 'string' ? encoder.encode(part) : part);
      timer = setTimeout(() => {
        controller.error(new Error(`nothing of the answer was read for ${unreadMs / 1000}s`));
        end();
      }, unreadMs).unref();
    },
    cancel: end,
  });
  return new Response(body, { headers: { 'content-type': 'application/json;charset=UTF-8' } });
}
