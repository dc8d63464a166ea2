// Server-sent events from the values of a generator (behaviour: events). A value is requested when its reader has room
// for it, so a slow reader slows the generator; a reader that disconnects ends it.
import { Readable } from 'node:stream';
import { isGenerator, isOpenFile } from '../answer/encode.ts';
import { toJsonText } from '../answer/json-text.ts';
import { isNodeStream, toBegun, toBody } from '../answer/stream.ts';
import type { Limits } from '../limits.ts';
import { toHeaderList } from '../request/listed-headers.ts';
import type { LazyDraft, LazyRequest, ResponseLike } from '../request/request.ts';
import type { LiveConnections } from './live-connections.ts';
import { ServerEvent } from './server-event.ts';

export const eventStream = 'text/event-stream';

/** Undefined for values that are sent unchanged: a stream, whose chunks are already events, or nothing, which ends the
 * events. Throws for a value that would be sent as JSON to a reader of events, and 503 if too many connections are
 * open. */
export function answerEvents(
  value: unknown,
  request: LazyRequest,
  draft: LazyDraft,
  { live, limits }: { readonly live: LiveConnections; readonly limits: Limits },
): Promise<ResponseLike> | undefined {
  const isSent =
    value === undefined ||
    value === null ||
    value instanceof Response ||
    value instanceof ReadableStream ||
    value instanceof Blob ||
    isOpenFile(value) ||
    ArrayBuffer.isView(value) ||
    isNodeStream(value);
  if (isSent) return undefined;
  if (!isGenerator(value) || !(Symbol.asyncIterator in value)) {
    throw new TypeError(`a method that produces ${eventStream} is an async generator`);
  }
  return sendEvents(value[Symbol.asyncIterator](), request, draft, { live, limits });
}

async function sendEvents(
  values: AsyncIterator<unknown>,
  request: LazyRequest,
  draft: LazyDraft,
  { live, limits }: { readonly live: LiveConnections; readonly limits: Limits },
): Promise<ResponseLike> {
  let stop = () => {};
  const leave = live.enter(() => stop());
  const stream = new EventStream(values, limits.heartbeatMs, () => {
    leave();
    request.end();
  });
  stop = () => stream.end();
  const body = await toBegun(toBody(stream));
  // Includes headers that the generator has set before its first event.
  const { status = 200, setHeaders, mediaType } = draft;
  const chosen = setHeaders?.get('content-type') ?? mediaType ?? eventStream;
  if (!chosen.startsWith(eventStream)) {
    stream.end();
    throw new TypeError(`the content type of events is ${eventStream}, not ${chosen}`);
  }
  // A proxy that buffers would delay the events.
  const own = ['content-type', eventStream, 'x-accel-buffering', 'no'];
  return { status, headers: toHeaderList(own, setHeaders, request.id), body };
}

/** A comment, which browsers ignore. */
const heartbeat = ':\n\n';

/** Requests a value when its reader has room for it, one at a time. */
export class EventStream extends Readable {
  readonly #values: AsyncIterator<unknown>;
  readonly #onEnd: () => void;
  readonly #beat: NodeJS.Timeout;
  #isReading = false;
  #isOver = false;

  /** After `heartbeatMs` of silence, sends a comment to show that the stream is alive and to detect a reader that has
   * disconnected. `onEnd` is called once, when no further value will be sent. */
  constructor(values: AsyncIterator<unknown>, heartbeatMs: number, onEnd: () => void) {
    super({ highWaterMark: 0 });
    this.#values = values;
    this.#onEnd = onEnd;
    this.#beat = setTimeout(() => this.#showLife(), heartbeatMs);
  }

  /** Ends the stream as if the generator had ended. */
  end(): void {
    this.#finish();
    this.push(null);
  }

  override _read(): void {
    if (!this.#isReading && !this.#isOver) void this.#pushNext();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#finish();
    done(error);
  }

  async #pushNext(): Promise<void> {
    this.#isReading = true;
    try {
      const text = await this.#next();
      this.#isReading = false;
      if (this.#isOver) return;
      if (text === undefined) {
        this.end();
        return;
      }
      this.push(text);
      this.#beat.refresh();
    } catch (error) {
      // A generator that was asked to stop waiting may fail because of it.
      if (!this.#isOver) this.destroy(error as Error);
    }
  }

  /** The next event; undefined at the end. */
  async #next(): Promise<string | undefined> {
    const { done, value } = await this.#values.next();
    if (value instanceof Error) throw value;
    return done === true ? undefined : toText(value);
  }

  #showLife(): void {
    this.#beat.refresh();
    if (!this.#isOver && this.readableLength === 0) this.push(heartbeat);
  }

  /** Not awaited: a generator that is waiting ends only afterwards. */
  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#beat);
    this.#onEnd();
    Promise.resolve(this.#values.return?.()).catch(() => {});
  }
}

/** JSON has no line breaks outside texts, and escapes those inside. */
function toText(value: unknown): string {
  const { data, options } = value instanceof ServerEvent ? value : new ServerEvent(value);
  const lines = [`data:${toJsonText(data)}`];
  if (options.retryMs !== undefined) lines.unshift(`retry:${options.retryMs}`);
  if (options.name !== undefined) lines.unshift(`event:${options.name}`);
  if (options.id !== undefined) lines.unshift(`id:${options.id}`);
  return `${lines.join('\n')}\n\n`;
}
