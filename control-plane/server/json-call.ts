// One HTTP request of JSON, bounded in time by its caller and in size here, on a connection of its own.
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { ConnectionOptions } from 'node:tls';
import { errorText } from '../../shared/errors.ts';
import { withoutNodeAdvice } from '../../shared/tls.ts';

export interface JsonCall {
  readonly method: 'GET' | 'POST' | 'PATCH';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly tls: Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'secureContext' | 'servername'>;
  readonly maxAnswerBytes: number;
  readonly signal: AbortSignal;
}

export interface JsonAnswer {
  readonly status: number;
  /** The body as JSON; undefined when it is not JSON. */
  readonly value: unknown;
  /** The header. */
  readonly date: string | undefined;
}

/** Rejects where there is no answer. */
export function callJson(url: URL, call: JsonCall): Promise<JsonAnswer> {
  const { method, headers, body, tls, maxAnswerBytes, signal } = call;
  const text = body === undefined ? undefined : JSON.stringify(body);
  const { promise, resolve, reject } = Promise.withResolvers<JsonAnswer>();
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

/** Why there was no answer. Human-readable. */
export function toCallProblem(error: unknown): string {
  // Several addresses of one name fail together, and their error has no text of its own.
  if (error instanceof AggregateError) return error.errors.map(errorText).join('; ');
  return withoutNodeAdvice(errorText(error));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
