// An answer whose JSON may be long: it is written and sent in parts, while others are served.
import { ownTurn } from '../../../shared/in-slices.ts';
import { writingJson } from '../store/json-in-slices.ts';

/** The value itself where its JSON is one part. */
export async function toLongAnswer<Value extends object>(value: Value): Promise<Value | Response> {
  await ownTurn();
  const parts = writingJson(value);
  const first = parts.next();
  const second = parts.next();
  return first.done || second.done ? value : stream(parts, [first.value, second.value]);
}

/** For what is long: also with generators in place of lists, whose items are made when they are sent. */
export function streamJson(value: object): Response {
  return stream(writingJson(value), []);
}

/** `begun` are the first parts. */
function stream(parts: Iterator<string, void>, begun: string[]): Response {
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      await ownTurn();
      const part = begun.shift() ?? parts.next().value;
      if (part === undefined) controller.close();
      else controller.enqueue(encoder.encode(part));
    },
  });
  return new Response(body, { headers: { 'content-type': 'application/json;charset=UTF-8' } });
}
