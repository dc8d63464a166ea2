// Who may call the admin API: a guard for the router, and who the caller is, for the audit log. Where
// tokens come from is left to tokens.ts.

import type { IncomingMessage } from 'node:http';
import { isLoopback } from '../../shared/loopback.ts';
import { AccessDenied, HttpError } from '../../shared/router/errors.ts';
import { bearer, type Guard, readCredentials } from '../../shared/router/guard.ts';
import type { RoutedRequest } from '../../shared/router/request.ts';
import type { Audit } from './audit.ts';
import type { TokenSet } from './tokens.ts';

export interface Authorizer {
  readonly guard: Guard;
  /** The name of the caller's token, or `local` where none is asked for. */
  callerOf(request: RoutedRequest): string;
  /** Whether a request has a token that the guard lets pass somewhere; undefined where none is asked for. */
  readonly isAuthenticated: ((request: IncomingMessage) => boolean) | undefined;
}

/** POST asks these for an answer; nothing changes. */
const readOnly: ReadonlySet<string> = new Set(['validations', 'explanations', 'revisions/diff']);

const realm = 'ratelane';

/** Everything that is not known to be a question needs the scope `write`. Without tokens, which only
 * a loopback address may be, everybody on this machine may do everything, but no page that a browser
 * there shows. */
export function createAuthorizer(tokens: TokenSet | undefined, audit: Audit): Authorizer {
  if (tokens === undefined) {
    return { guard: localGuard, callerOf: () => 'local', isAuthenticated: undefined };
  }
  const callers = new WeakMap<RoutedRequest, string>();
  const ownerOf = (token: string) => {
    const owner = tokens.find(token);
    return owner?.scope === 'xds' ? undefined : owner;
  };
  const guard = bearer(
    (token, request) => {
      const owner = ownerOf(token);
      if (owner === undefined) {
        const detail = 'the bearer token is not known';
        throw new AccessDenied({ scheme: 'bearer', realm, detail });
      }
      if (owner.scope === 'read' && needsWrite(request)) {
        const detail = `the token ${owner.name} may only read`;
        noteRefusal(audit, request, owner.name, `403: ${detail}`);
        throw new HttpError(403, { detail });
      }
      callers.set(request, owner.name);
      return true;
    },
    { realm },
  );
  return {
    guard,
    callerOf: (request) => callers.get(request) ?? 'unknown',
    isAuthenticated({ headers: { authorization } }) {
      const token = readCredentials(authorization, 'bearer');
      return token !== undefined && ownerOf(token) !== undefined;
    },
  };
}

/** The controller, which notes all other changes, never hears of this one. */
function noteRefusal(
  audit: Audit,
  { id: requestId, method, path, remoteAddress: address }: RoutedRequest,
  who: string,
  outcome: string,
): void {
  if (method === 'OPTIONS') return;
  const what = `${method} ${path}`;
  audit({ who, address, what, requestId, before: undefined, after: undefined, outcome });
}

function needsWrite({ method, path }: RoutedRequest): boolean {
  if (method === 'GET' || method === 'HEAD') return false;
  const parts = path.split('/').filter((part) => part !== '');
  return !readOnly.has(parts[0] ?? '') && !readOnly.has(parts.join('/'));
}

/** A page of another site may have its own name lead to this machine, or send what needs no asking:
 * either shows in the headers, which a page cannot choose. */
const localGuard: Guard = {
  authenticates: true,
  check({ headers }) {
    const host = headers.get('host') ?? '';
    if (!isLoopback(toHostName(host))) {
      const detail = 'without tokens, only requests to a loopback address are answered';
      throw new HttpError(403, { detail });
    }
    const origin = headers.get('origin');
    if (origin !== null && !/^https?:\/\//.test(origin)) throw refusedOrigin();
    if (origin !== null && origin.replace(/^https?:\/\//, '') !== host) throw refusedOrigin();
  },
};

function refusedOrigin(): HttpError {
  return new HttpError(403, { detail: 'requests from this origin are refused' });
}

function toHostName(host: string): string {
  return host.replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1');
}
