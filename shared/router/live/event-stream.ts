// Server-sent events from the values of a generator (behaviour: events). A value is taken when its reader has room
// for it, so a slow reader slows the generator; a reader who goes away ends it.
import { toHeaderList } from '../answer/header-list.ts';
import { isNodeStream } from '../answer/stream.ts';
import type { Limits } from '../limits.ts';
import type { ResponseLike } from '../request/request.ts';
import type { LazyDraft, LazyRequest } from '../request/routed-request.ts';
import type { LiveConnections } from './live-connections.ts';
import { ServerEvent } from './server-event.ts';

export interface EventStreamOptions {
  /** The time after which a silent stream shows that it lives, and notices a reader who has gone. */
  readonly heartbeatMs: number;
  /** Called once, when no value will be sent any more. */
  readonly onEnd: () => void;
}

export interface EventStream extends AsyncIterable<Uint8Array> {
  /** As if the generator had ended. */
  end(): void;
}

export const eventStream = 'text/event-stream';

/** Undefined for what is sent as it is: a stream, whose chunks are events already, or nothing, which ends them. Throws for
 * what would be JSON to a reader of events, and 503 where too many connections are open. */
export function answerEvents(
  value: unknown,
  request: LazyRequest,
  draft: LazyDraft,
  { live, limits }: { readonly live: LiveConnections; readonly limits: Limits },
): Promise<ResponseLike> | undefined {
  if (isEventGenerator(value)) return sendEvents(value, request, draft, { live, limits });
  const isSent =
    value === undefined ||
    value === null ||
    value instanceof Response ||
    value instanceof ReadableStream ||
    ArrayBuffer.isView(value) ||
    isNodeStream(value);
  if (!isSent) throw new TypeError(`a method that produces ${eventStream} is an async generator`);
  return undefined;
}

function isEventGenerator(value: unknown): value is AsyncGenerator {
  return (
    typeof value === 'object' && value !== null && Symbol.asyncIterator in value && 'next' in value
  );
}

async function sendEvents(
  values: AsyncGenerator,
  request: LazyRequest,
  draft: LazyDraft,
  { live, limits }: { readonly live: LiveConnections; readonly limits: Limits },
): Promise<ResponseLike> {
  let stop = () => {};
  const leave = live.enter(() => stop());
  const stream = await openEventStream(values, {
    heartbeatMs: limits.heartbeatMs,
    onEnd() {
      leave();
      request.end();
    },
  });
  stop = stream.end;
  // What the generator has set before its first event counts too.
  const { status = 200, setHeaders, mediaType } = draft;
  const chosen = setHeaders?.get('content-type') ?? mediaType ?? eventStream;
  if (!chosen.startsWith(eventStream)) {
    stream.end();
    throw new TypeError(`the content type of events is ${eventStream}, not ${chosen}`);
  }
  // A proxy that buffers would keep the events from their reader.
  const own = ['content-type', eventStream, 'x-accel-buffering', 'no'];
  return { status, headers: toHeaderList(own, setHeaders, request.id), body: stream };
}

type Outcome =
  | { readonly result: IteratorResult<unknown> | undefined }
  | { readonly error: unknown };

const encoder = new TextEncoder();
/** Browsers ignore it. */
const heartbeat = encoder.encode(':\n\n');
/** An error before the first event is answered as any error is, unless it takes longer than this. */
const firstWaitMs = 1_000;

/** Starts the generator, and rejects with what it throws before its first event. */
export async function openEventStream(
  values: AsyncIterable<unknown>,
  { heartbeatMs, onEnd }: EventStreamOptions,
): Promise<EventStream> {
  const iterator = values[Symbol.asyncIterator]();
  let isOver = false;
  let isTaking = false;
  /** The outcome that has arrived while no reader waited, and the function that wakes who waits. Promises that live as
   * long as the stream would gather a listener for each wait. */
  let arrived: Outcome | undefined;
  let settle: ((outcome: Outcome) => void) | undefined;

  function arrive(outcome: Outcome): void {
    if (settle === undefined) arrived = outcome;
    else settle(outcome);
    settle = undefined;
  }

  function take(): void {
    isTaking = true;
    iterator.next().then(
      (result) => {
        isTaking = false;
        if (result.done === true) finish();
        arrive({ result });
      },
      (error: unknown) => {
        isTaking = false;
        // It was asked to stop waiting, and has.
        if (isOver) return;
        finish();
        arrive({ error });
      },
    );
  }

  function finish(): void {
    if (isOver) return;
    isOver = true;
    onEnd();
  }

  /** The next value, the end, or undefined where there was none for so long. */
  async function wait(timeoutMs: number): Promise<IteratorResult<unknown> | undefined> {
    if (arrived === undefined) {
      if (isOver) return { done: true, value: undefined };
      if (!isTaking) take();
    }
    const outcome =
      arrived ??
      (await new Promise<Outcome>((resolve) => {
        const timer = setTimeout(() => {
          settle = undefined;
          resolve({ result: undefined });
        }, timeoutMs);
        settle = (given) => {
          clearTimeout(timer);
          resolve(given);
        };
      }));
    arrived = undefined;
    if ('error' in outcome) throw outcome.error;
    return outcome.result;
  }

  /** Not awaited: a generator that waits for something ends after that. */
  function leave(): void {
    finish();
    arrive({ result: { done: true, value: undefined } });
    Promise.resolve(iterator.return?.()).catch(() => {});
  }

  const first = await wait(firstWaitMs);
  let isFirst = true;
  return {
    end: leave,
    [Symbol.asyncIterator]: () => ({
      async next() {
        const result = isFirst ? first : await wait(heartbeatMs);
        isFirst = false;
        if (result === undefined) return { value: heartbeat };
        if (result.done === true) return { done: true, value: undefined };
        try {
          return { value: encoder.encode(toText(result.value)) };
        } catch (error) {
          leave();
          throw error;
        }
      },
      async return() {
        leave();
        return { done: true, value: undefined };
      },
    }),
  };
}

/** JSON has no line breaks outside of texts, and escapes those within. */
function toText(value: unknown): string {
  const { data, options } = value instanceof ServerEvent ? value : new ServerEvent(value);
  const json: string | undefined = JSON.stringify(data);
  if (json === undefined) throw new TypeError('an event has no value that JSON knows');
  const lines = [`data:${json}`];
  if (options.retryMs !== undefined) lines.unshift(`retry:${options.retryMs}`);
  if (options.name !== undefined) lines.unshift(`event:${options.name}`);
  if (options.id !== undefined) lines.unshift(`id:${options.id}`);
  return `${lines.join('\n')}\n\n`;
}
