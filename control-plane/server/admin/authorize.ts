// Decides which callers may use the admin API: a guard for the router, and the caller's name for the audit log.
// tokens.ts reads the tokens.

import type { IncomingMessage } from 'node:http';
import { isLoopback } from '../../../shared/host-port.ts';
import {
  AccessDenied,
  bearer,
  type Guard,
  HttpError,
  type RoutedRequest,
  readCredentials,
} from '../../../shared/router/index.ts';
import type { Audit } from '../history/activity/audit.ts';
import type { TokenOwner, TokenSet } from './tokens.ts';

export type RouteScope = 'read' | 'write';

export interface Authorizer {
  readonly guard: Guard;
  /** The name of the caller's token, or `local` if none is required and none was sent. */
  callerOf(request: RoutedRequest): string;
  /** `write` if no token is required and none was sent. */
  scopeOf(request: RoutedRequest): RouteScope;
  /** Whether an open stream is allowed to continue: the token of its request is still valid. */
  mayGoOn(request: RoutedRequest): boolean;
  /** Whether a request has a token that the guard accepts for some path; undefined if none is required. */
  readonly isAuthenticated: ((request: IncomingMessage) => boolean) | undefined;
}

interface Caller extends TokenOwner {
  readonly scope: RouteScope;
}

/** A POST to these paths changes nothing. */
const readOnly: ReadonlySet<string> = new Set([
  'validations',
  'explanations',
  'effects',
  'revisions/diff',
  'counters',
  'looks',
]);

const realm = 'ratelane';
/** The caller if no token is required and none was sent. */
export const localCaller = 'local';

export interface AuthorizerDeps {
  /** The tokens of users and pipelines; undefined without a token file. */
  readonly tokens: TokenSet | undefined;
  /** The token that control planes send each other; undefined without peers. */
  readonly peerToken: TokenSet | undefined;
  /** Only this machine can reach the address. */
  readonly isLoopback: boolean;
  readonly audit: Audit;
}

/** Any request not known to be read-only needs the scope `write`. On a loopback address without a token file, every
 * program on this machine may do everything, except pages in a browser; a caller that sends the peers' token there has
 * the rights of a peer. */
export function createAuthorizer(deps: AuthorizerDeps): Authorizer {
  const { tokens, peerToken, isLoopback, audit } = deps;
  const needsToken = tokens !== undefined || !isLoopback;
  const callers = new WeakMap<RoutedRequest, Caller>();
  /** A token that is in both files has the scope from the tokens file. */
  const ownerOf = (token: string): Caller | undefined => {
    const owners = [tokens?.find(token), peerToken?.find(token)];
    return owners.find((owner): owner is Caller => owner !== undefined && owner.scope !== 'xds');
  };
  const tokenGuard = bearer(
    (token, request) => {
      const owner = ownerOf(token);
      if (owner === undefined) {
        const detail = 'the bearer token is not known';
        throw new AccessDenied({ scheme: 'bearer', realm, detail });
      }
      if (owner.scope === 'read' && needsWrite(request)) {
        const detail = `the token ${owner.name} can only read`;
        noteRefusal(audit, request, owner.name, `403: ${detail}`);
        throw new HttpError(403, { detail });
      }
      callers.set(request, owner);
      return true;
    },
    { realm },
  );
  const hasKnownToken = (authorization: string | null | undefined): boolean => {
    const token = readCredentials(authorization, 'bearer');
    return token !== undefined && ownerOf(token) !== undefined;
  };
  const mayGoOn = (request: RoutedRequest): boolean =>
    (!needsToken && !callers.has(request)) || hasKnownToken(request.headers.get('authorization'));
  if (needsToken) {
    return {
      mayGoOn,
      guard: tokenGuard,
      callerOf: (request) => callers.get(request)?.name ?? 'unknown',
      scopeOf: (request) => callers.get(request)?.scope ?? 'read',
      isAuthenticated: ({ headers }) => hasKnownToken(headers.authorization),
    };
  }
  return {
    mayGoOn,
    guard: {
      authenticates: true,
      check(request) {
        const isPeer = hasKnownToken(request.headers.get('authorization'));
        return (isPeer ? tokenGuard : localGuard).check(request);
      },
    },
    callerOf: (request) => callers.get(request)?.name ?? localCaller,
    scopeOf: (request) => callers.get(request)?.scope ?? 'write',
    isAuthenticated: undefined,
  };
}

/** The controller audits all other changes, but never receives a refused one. */
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

/** A page of another site may resolve its own host name to this machine, or send requests without a preflight. Both are
 * visible in headers that a page cannot set. */
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
