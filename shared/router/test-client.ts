// For tests: an application made of classes, and requests to it without a server.

import type { ErrorReport } from './answer/error-report.ts';
import { type App, type AppOptions, createApp } from './app.ts';
import { isBuffered, type RequestLike, toHeaders } from './request/request.ts';

export interface TestAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Undefined if the text is not JSON. */
  readonly json: unknown;
}

export interface TestClient {
  readonly app: App;
  /** The errors that the application reported, oldest first. */
  readonly reports: readonly ErrorReport[];
  /** Texts, forms, blobs and bytes are sent unchanged, with the type that `fetch` would set for the last three; any
   * other body is sent as JSON. */
  send(
    method: string,
    target: string,
    options?: { readonly headers?: Readonly<Record<string, string>>; readonly body?: unknown },
  ): Promise<TestAnswer>;
}

/** An application made from a folder of controllers, as for `serve`, or from modules by their paths. Warnings of the
 * start are not printed. */
export async function createTestClient(
  modules: string | Readonly<Record<string, Readonly<Record<string, unknown>>>>,
  options: AppOptions = {},
): Promise<TestClient> {
  const reports: ErrorReport[] = [];
  const app = await createApp({
    ...(typeof modules === 'string'
      ? { controllerPrefix: modules }
      : { loadModules: () => new Map(Object.entries(modules)) }),
    reportError: (report) => reports.push(report),
    warn: () => {},
    ...options,
  });
  return {
    app,
    reports,
    async send(method, target, { headers = {}, body } = {}) {
      const sent = body === undefined ? undefined : toSent(body);
      const type = typeof body === 'string' ? null : sent?.headers.get('content-type');
      const request: RequestLike = {
        method,
        target,
        headers: new Headers({ ...(type && { 'content-type': type }), ...headers }),
        body: sent && toChunk(sent),
        remoteAddress: undefined,
      };
      const { status, headers: list, body: given } = await app.dispatch(request);
      const bytes = isBuffered(given) ? (given ?? '') : Buffer.concat(await Array.fromAsync(given));
      const text = typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString();
      return { status, headers: toHeaders(list), text, json: parse(text) };
    },
  };
}

/** Sends the form as one buffer: a streamed form that is left early fails on its own, where no code catches the
 * error. */
async function* toChunk(sent: Response): AsyncGenerator<Uint8Array, void> {
  yield new Uint8Array(await sent.arrayBuffer());
}

const sentAsTheyAre = [FormData, Blob, URLSearchParams, Uint8Array];

function toSent(body: unknown): Response {
  const isSentAsItIs = typeof body === 'string' || sentAsTheyAre.some((one) => body instanceof one);
  return isSentAsItIs ? new Response(body as string) : Response.json(body);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
