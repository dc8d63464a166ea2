// One call of the admin API, bounded in time and size. The commands interpret the answers.
import { request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { SecureContext } from 'node:tls';
import { errorText } from '../../shared/errors.ts';
import { withoutNodeAdvice } from '../../shared/tls.ts';
import { trimEnd } from '../../shared/trim-end.ts';

export interface AdminCall {
  readonly method: 'GET' | 'POST';
  /** With the query. */
  readonly path: string;
  readonly body?: unknown;
  /** How long to wait for an answer; at most, and by default, `longestCallMs`. */
  readonly timeoutMs?: number;
  /** A longer answer is none; at most, and by default, `largestAnswerBytes`. */
  readonly maxAnswerBytes?: number;
}

export interface AdminAnswer {
  readonly status: number;
  /** The body as JSON; undefined when it is not JSON. */
  readonly value: unknown;
  /** The header. */
  readonly date: string | undefined;
}

export type AdminCallResult =
  | { readonly ok: true; readonly answer: AdminAnswer }
  /** There was no answer: the reason, and whether the time ran out. */
  | { readonly ok: false; readonly message: string; readonly isTimeout: boolean };

export interface AdminClient {
  /** Human-readable. */
  readonly url: string;
  call(call: AdminCall): Promise<AdminCallResult>;
}

export interface AdminClientOptions {
  readonly url: URL;
  readonly token: string | undefined;
  /** Certificates for https: those that are trusted, and the one that is presented. */
  readonly secureContext: SecureContext | undefined;
  /** The name in the certificate, where it is not the host of the URL. */
  readonly serverName?: string | undefined;
}

/** A push to a slow Git host takes its time. */
const longestCallMs = 120_000;
const largestAnswerBytes = 256 * 1024 * 1024;

export function createAdminClient(options: AdminClientOptions): AdminClient {
  const { url, token, secureContext, serverName } = options;
  const secure = {
    ...(secureContext && { secureContext }),
    ...(serverName !== undefined && { servername: serverName }),
  };
  const base = trimEnd(url.href, '/');

  async function call(
    { method, path, body, maxAnswerBytes = largestAnswerBytes }: AdminCall,
    signal: AbortSignal,
  ): Promise<AdminAnswer> {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const answered = Promise.withResolvers<AdminAnswer>();
    const options = {
      method,
      signal,
      headers: {
        accept: 'application/json',
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(text !== undefined && {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(text),
        }),
      },
    };
    const request =
      url.protocol === 'https:'
        ? requestHttps(`${base}${path}`, { ...options, agent: new HttpsAgent(secure) })
        : requestHttp(`${base}${path}`, { ...options, agent: false });
    request.on('error', answered.reject);
    request.on('response', (response) => {
      const chunks: Buffer[] = [];
      let size = 0;
      response.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size > maxAnswerBytes) request.destroy(new Error('the answer is too large'));
        else chunks.push(chunk);
      });
      response.on('error', answered.reject);
      response.on('end', () => {
        const status = response.statusCode ?? 0;
        const value = parse(Buffer.concat(chunks).toString());
        // Such as a proxy's maintenance page.
        if (value === undefined && status < 300) {
          answered.reject(new Error(`what answers is no control plane (HTTP ${status}, no JSON)`));
        } else answered.resolve({ status, value, date: response.headers.date });
      });
    });
    request.end(text);
    return answered.promise;
  }

  return {
    url: base,
    async call(given) {
      // Rounded, because timers take no fraction.
      const timeoutMs = Math.ceil(Math.min(given.timeoutMs ?? longestCallMs, longestCallMs));
      const signal = AbortSignal.timeout(timeoutMs);
      try {
        return { ok: true, answer: await call(given, signal) };
      } catch (error) {
        // The request's own error then only mentions an abort.
        const seconds = Math.round(timeoutMs / 100) / 10;
        const isTimeout = signal.aborted;
        const reason = isTimeout ? `no answer within ${seconds}s` : toReason(error);
        const hint = isTimeout ? otherHint : hintOf(error, url.protocol);
        const message = `the admin API at ${base} cannot be reached: ${reason}\nhint: ${hint}`;
        return { ok: false, message, isTimeout };
      }
    },
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const otherHint =
  'is a control plane serving there? --admin-url (or RATELANE_ADMIN_URL) names another';
const untrusted: ReadonlySet<unknown> = new Set([
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
]);

/** Error codes of an answer that is no TLS. */
const notTls = new Set<unknown>([
  'ERR_SSL_WRONG_VERSION_NUMBER',
  'ERR_SSL_PACKET_LENGTH_TOO_LONG',
  'EPROTO',
]);

function hintOf(error: unknown, protocol: string): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (untrusted.has(code)) {
    return '--ca (or RATELANE_ADMIN_CA) names a file with the CA of its certificate';
  }
  if (code === 'ECONNRESET' && protocol === 'http:') {
    return 'it may have TLS: write https:// in --admin-url (or RATELANE_ADMIN_URL)';
  }
  if (protocol === 'https:' && notTls.has(code)) {
    return 'it may have no TLS: write http:// in --admin-url (or RATELANE_ADMIN_URL)';
  }
  return otherHint;
}

function toReason(error: unknown): string {
  // Several addresses of one name fail together, and their error has no text of its own.
  if (error instanceof AggregateError) return error.errors.map(errorText).join('; ');
  return withoutNodeAdvice(errorText(error));
}
