// The application as a WHATWG fetch handler: Request in, Response out (behaviour: mounts).
import { type Dispatch, isBuffered, toHeaders } from '../request/request.ts';

export type Fetch = (request: Request) => Promise<Response>;

/** What a Request cannot express never arrives: dot segments are resolved, `get` is `GET`, TRACE and CONNECT do not
 * exist, GET and HEAD have no body. The peer's address is unknown. */
export function createFetch(dispatch: Dispatch): Fetch {
  return async (request) => {
    const answer = await dispatch({
      method: request.method,
      // A fragment stays with the client; other mounts never receive one.
      target: request.url.replace(/#.*/, ''),
      headers: request.headers,
      body: request.body === null ? undefined : withoutCancel(request.body),
      remoteAddress: undefined,
      scheme: request.url.startsWith('https:') ? 'https' : 'http',
      signal: () => request.signal,
    });
    const { status, body } = answer;
    const headers = toHeaders(answer.headers);
    if (isBuffered(body)) {
      // The type of a response's bytes excludes shared memory, which is never used here.
      return new Response((body as string | Uint8Array<ArrayBuffer> | undefined) ?? null, {
        status,
        headers,
      });
    }
    return new Response(toStream(body, request.signal), { status, headers });
  };
}

/** The server handles an unread body. If it were cancelled here, the form of a Request that a program itself has made
 * would fail where no code catches the error. */
function withoutCancel(body: ReadableStream<Uint8Array>): AsyncIterable<Uint8Array> {
  return { [Symbol.asyncIterator]: () => body.values({ preventCancel: true }) };
}

/** `ReadableStream.from`, which not all servers with this interface have. Some servers neither
 * read nor cancel the stream after the client has disconnected, so the request's signal ends it. */
function toStream(
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): ReadableStream<Uint8Array> {
  const iterator = body[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const leave = () => {
          controller.error(signal.reason);
          void iterator.return?.();
        };
        if (signal.aborted) leave();
        else signal.addEventListener('abort', leave, { once: true });
      },
      async pull(controller) {
        const { done, value } = await iterator.next();
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await iterator.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}
