// One call of the admin API, bounded in time and size. The commands interpret the answers.
import type { SecureContext } from 'node:tls';
import { trimEnd } from '../../shared/trim-end.ts';
import { callJson, type JsonAnswer, toCallProblem } from './json-call.ts';

export interface AdminCall {
  readonly method: 'GET' | 'POST';
  /** With the query. */
  readonly path: string;
  readonly body?: unknown;
  /** How long to wait for an answer; at most, and by default, `longestCallMs`. */
  readonly timeoutMs?: number;
  /** A longer answer is rejected; at most, and by default, `largestAnswerBytes`. */
  readonly maxAnswerBytes?: number;
}

export type AdminCallResult =
  | { readonly ok: true; readonly answer: JsonAnswer }
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
  const tls = {
    ...(secureContext && { secureContext }),
    ...(serverName !== undefined && { servername: serverName }),
  };
  const base = trimEnd(url.href, '/');

  async function call(
    { method, path, body, maxAnswerBytes = largestAnswerBytes }: AdminCall,
    signal: AbortSignal,
  ): Promise<JsonAnswer> {
    const headers: Record<string, string> =
      token === undefined ? {} : { authorization: `Bearer ${token}` };
    const sent = { method, headers, body, tls, maxAnswerBytes, signal };
    const answer = await callJson(new URL(`${base}${path}`), sent);
    // Such as a proxy's maintenance page.
    if (answer.value !== undefined || answer.status >= 300) return answer;
    throw new Error(
      `the server that answers is not a control plane (HTTP ${answer.status}, no JSON)`,
    );
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
        const reason = isTimeout ? `no answer within ${seconds}s` : toCallProblem(error);
        const hint = isTimeout ? otherHint : hintOf(error, url.protocol);
        const message = `the admin API at ${base} cannot be reached: ${reason}\nhint: ${hint}`;
        return { ok: false, message, isTimeout };
      }
    },
  };
}

const otherHint =
  'is a control plane serving there? choose another with --admin-url (or RATELANE_ADMIN_URL)';
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
    return 'set --ca (or RATELANE_ADMIN_CA) to a file with the CA of its certificate';
  }
  if (code === 'ECONNRESET' && protocol === 'http:') {
    return 'it may use TLS: write https:// in --admin-url (or RATELANE_ADMIN_URL)';
  }
  if (protocol === 'https:' && notTls.has(code)) {
    return 'it may not use TLS: write http:// in --admin-url (or RATELANE_ADMIN_URL)';
  }
  return otherHint;
}
