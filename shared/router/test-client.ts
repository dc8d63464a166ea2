// For tests: an application made of classes, and requests to it without a server.

import type { ErrorReport } from './answer/error-report.ts';
import { type App, type AppOptions, createApp } from './app.ts';
import { type RequestLike, toHeaders } from './request/request.ts';

export interface TestAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Undefined where the text is no JSON. */
  readonly json: unknown;
}

export interface TestClient {
  readonly app: App;
  /** What the application reported, oldest first. */
  readonly reports: readonly ErrorReport[];
  /** A body that is no text is sent as JSON. */
  send(
    method: string,
    target: string,
    options?: { readonly headers?: Readonly<Record<string, string>>; readonly body?: unknown },
  ): Promise<TestAnswer>;
}

/** Every method is public unless the options say otherwise, and what the start warns of is not printed. */
export async function createTestClient(
  modules: Readonly<Record<string, Readonly<Record<string, unknown>>>>,
  options: AppOptions = {},
): Promise<TestClient> {
  const reports: ErrorReport[] = [];
  const app = await createApp({
    loadModules: () => new Map(Object.entries(modules)),
    reportError: (report) => reports.push(report),
    warn: () => {},
    ...options,
  });
  return {
    app,
    reports,
    async send(method, target, { headers = {}, body } = {}) {
      const isText = typeof body === 'string';
      const type: Record<string, string> =
        body === undefined || isText ? {} : { 'content-type': 'application/json' };
      const request: RequestLike = {
        method,
        target,
        headers: new Headers({ ...type, ...headers }),
        body: body === undefined ? undefined : toChunks(isText ? body : JSON.stringify(body)),
        remoteAddress: undefined,
      };
      const answer = await app.dispatch(request);
      const pieces: Uint8Array[] = [];
      if (typeof answer.body === 'string') pieces.push(Buffer.from(answer.body));
      else if (answer.body instanceof Uint8Array) pieces.push(answer.body);
      else for await (const piece of answer.body ?? []) pieces.push(piece);
      const text = Buffer.concat(pieces).toString();
      return { status: answer.status, headers: toHeaders(answer.headers), text, json: parse(text) };
    },
  };
}

async function* toChunks(text: string): AsyncIterable<Uint8Array> {
  yield Buffer.from(text);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
