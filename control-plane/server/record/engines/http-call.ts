// One HTTP request to an engine, of JSON, bounded in time by its caller and in size here.
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { EngineTls } from './engine-access.ts';

export interface HttpCall {
  readonly method: 'GET' | 'POST' | 'PATCH';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly tls: EngineTls;
  readonly signal: AbortSignal;
}

export interface HttpAnswer {
  readonly status: number;
  /** Undefined where the body is not JSON. */
  readonly value: unknown;
  /** The header. */
  readonly date: string | undefined;
}

/** Above the largest value of etcd and of a ConfigMap, in base64. */
const maxAnswerBytes = 4 * 1024 * 1024;
const maxMessageLength = 300;

/** On a connection of its own. Rejects where there is no answer. */
export function callHttp(url: URL, call: HttpCall): Promise<HttpAnswer> {
  const { method, headers, body, tls, signal } = call;
  const text = body === undefined ? undefined : JSON.stringify(body);
  const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>();
  const options = {
    method,
    signal,
    agent: false as const,
    headers: {
      accept: 'application/json',
      ...(text !== undefined && {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
      }),
      ...headers,
    },
  };
  const request =
    url.protocol === 'https:'
      ? requestHttps(url, { ...options, ...tls })
      : requestHttp(url, options);
  request.on('error', reject);
  request.on('response', (response) => {
    const chunks: Buffer[] = [];
    let size = 0;
    response.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxAnswerBytes) request.destroy(new Error('the answer is too large'));
      else chunks.push(chunk);
    });
    response.on('error', reject);
    response.on('end', () => {
      const value = parse(Buffer.concat(chunks).toString());
      resolve({ status: response.statusCode ?? 0, value, date: response.headers.date });
    });
  });
  request.end(text);
  return promise;
}

/** What an engine says of a call that failed: `HTTP 403: etcdserver: permission denied`. */
export function showFailure({ status, value }: HttpAnswer): string {
  const message =
    typeof value === 'object' && value !== null && 'message' in value ? value.message : undefined;
  return typeof message === 'string'
    ? `HTTP ${status}: ${message.slice(0, maxMessageLength)}`
    : `HTTP ${status}`;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
