// An answer whose JSON may be long: it is written and sent in parts, while others are served.
import { ownTurn } from '../../../shared/in-slices.ts';
import { writingJson } from '../store/json-in-slices.ts';

/** Of answers that hold all files of a revision, or what two of them differ in, until they are read. */
export const mostLongAnswers = 8;
/** An answer that no caller reads is given up. */
const unreadMs = 30_000;

/** The value itself where its JSON is one part. `onEnd` is called once, when nothing of the value is to be sent any more. */
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

/** For what is long: also with generators in place of lists, whose items are made when they are sent. */
export function streamJson(value: object): Response {
  return stream(writingJson(value), [], () => {});
}

/** `begun` are the first parts. */
function stream(parts: Iterator<string, void>, begun: string[], onEnd: () => void): Response {
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
      controller.enqueue(encoder.encode(part));
      timer = setTimeout(() => {
        controller.error(new Error(`nothing of the answer was read for ${unreadMs / 1000}s`));
        end();
      }, unreadMs).unref();
    },
    cancel: end,
  });
  return new Response(body, { headers: { 'content-type': 'application/json;charset=UTF-8' } });
}
