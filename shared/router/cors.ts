// Cross-origin use by browsers, per class or application; off unless declared (behaviour: origins). Pages of the
// application's own host are recognized by their origin too.
import { BadRequest, HttpError } from './errors.ts';
import type { HeaderList, RequestHeaders } from './request/request.ts';

/** `true`: any origin, without credentials. A list: these origins, with credentials; it holds the
 * application's own origin too, since browsers send it with their POST requests. */
export type Cors = true | { readonly origins: readonly string[] };

const preflightMaxAgeSeconds = 3600;
const headerList = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:[ \t]*,[ \t]*[!#$%&'*+.^_`|~0-9A-Za-z-]+)*$/;

/** What is wrong with a declaration, which would otherwise fail at the first request with an origin. */
export function corsProblem(cors: unknown): string | undefined {
  if (cors === undefined || cors === true) return undefined;
  const isList =
    typeof cors === 'object' &&
    cors !== null &&
    'origins' in cors &&
    Array.isArray(cors.origins) &&
    cors.origins.every((origin) => typeof origin === 'string');
  return isList ? undefined : "cors is true, or a list: { origins: ['https://shop.example'] }";
}

/** The headers that every answer of such a class carries. Throws 403 for a refused origin. */
export function corsHeaders(cors: Cors, request: RequestHeaders): HeaderList {
  const vary = ['vary', 'Origin'];
  const origin = request.get('origin');
  if (origin === null) return vary;
  if (cors === true) return ['access-control-allow-origin', origin, ...vary];
  if (!cors.origins.includes(origin)) {
    throw new HttpError(403, { detail: 'this origin is refused' });
  }
  return [
    'access-control-allow-origin',
    origin,
    'access-control-allow-credentials',
    'true',
    ...vary,
  ];
}

export function isPreflight(method: string, request: RequestHeaders): boolean {
  return (
    method === 'OPTIONS' && request.has('origin') && request.has('access-control-request-method')
  );
}

/** The headers of the answer to a preflight beyond `corsHeaders`. Throws 400 if it is not well-formed. */
export function preflightHeaders(request: RequestHeaders): HeaderList {
  const method = request.get('access-control-request-method') ?? '';
  const headers = request.get('access-control-request-headers');
  for (const list of [method, headers ?? 'none']) {
    if (!headerList.test(list)) throw new BadRequest('the preflight is not well-formed');
  }
  return [
    'access-control-allow-methods',
    method,
    ...(headers === null ? [] : ['access-control-allow-headers', headers]),
    'access-control-max-age',
    String(preflightMaxAgeSeconds),
  ];
}

/** Whether a page is the application's own, by the host that the browser has sent its request to. Behind a proxy that
 * changes `Host` none is known. */
export function isOwnPage(origin: string, headers: RequestHeaders): boolean {
  const page = URL.parse(origin);
  const own = URL.parse(`${page?.protocol}//${headers.get('host')}`);
  return page !== null && own !== null && page.host === own.host;
}

/**
 * Before a WebSocket is opened: lets through the application's own pages, origins that `cors` lists, and programs, which
 * send no origin. Throws 403. Browsers send cookies with a handshake of any site, and no preflight before it, so another
 * site could use a socket in its visitors' names (behaviour: sockets). `cors: true` does not help: it admits all without
 * credentials, which a handshake cannot be made without.
 */
export function refuseForeignOrigin(headers: RequestHeaders, cors: Cors | undefined): void {
  const origin = headers.get('origin');
  if (origin === null || isOwnPage(origin, headers)) return;
  if (typeof cors === 'object' && cors.origins.includes(origin)) return;
  throw new HttpError(403, { detail: 'sockets from this origin are refused' });
}
