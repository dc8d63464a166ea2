// Calls the admin API, with the user's token if one is needed. The token stays in this tab.
import type { ProblemJson } from '../../admin/problem-json.ts';

export type Answer<Value> =
  | { readonly ok: true; readonly value: Value }
  | {
      readonly ok: false;
      /** 0 if there was no answer. */
      readonly status: number;
      /** A human-readable sentence. */
      readonly text: string;
      readonly problems: readonly ProblemJson[];
    };

export interface Call {
  readonly method?: 'GET' | 'POST' | 'PUT';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

const tokenKey = 'ratelane.token';
const timeoutMs = 20_000;
/** The API is next to the console, also behind a proxy that adds a prefix. */
const base = new URL('..', document.baseURI);

export function readToken(): string | null {
  return sessionStorage.getItem(tokenKey);
}

export function storeToken(token: string | undefined): void {
  if (token === undefined) sessionStorage.removeItem(tokenKey);
  else sessionStorage.setItem(tokenKey, token);
}

/** The fetch request for `path` (such as `status?look=true`). */
export function toRequest(
  path: string,
  { method = 'GET', headers, body, signal }: Call = {},
): Request {
  const token = readToken();
  return new Request(new URL(path, base), {
    method,
    headers: {
      ...headers,
      accept: 'application/json',
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
    credentials: 'omit',
    cache: 'no-store',
    redirect: 'error',
  });
}

/** Never rejects. */
export async function ask<Value>(path: string, call: Call = {}): Promise<Answer<Value>> {
  const timeout = AbortSignal.timeout(timeoutMs);
  const signal = call.signal ? AbortSignal.any([call.signal, timeout]) : timeout;
  try {
    const response = await fetch(toRequest(path, { ...call, signal }));
    const value = response.status === 204 ? undefined : await response.json();
    if (response.ok) return { ok: true, value: value as Value };
    const { detail, title, problems } = value ?? {};
    return {
      ok: false,
      status: response.status,
      text: String(detail ?? title ?? `the control plane answered ${response.status}`),
      problems: Array.isArray(problems) ? problems : [],
    };
  } catch {
    const text = timeout.aborted
      ? 'the control plane did not answer within 20 seconds'
      : 'the control plane does not answer';
    return { ok: false, status: 0, text, problems: [] };
  }
}
