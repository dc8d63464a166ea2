// An answer whose JSON may be long: it is written and sent in parts, while others are served.
import { ownTurn } from '../../../shared/in-slices.ts';
import { writingJson } from '../store/json-in-slices.ts';

/** The value itself where its JSON is one part. */
export function toLongAnswer<Value extends object>(value: Value): Value | Response {
  const parts = writingJson(value);
  const first = parts.next();
  const second = parts.next();
  if (first.done || second.done) return value;
  const begun = [first.value, second.value];
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
