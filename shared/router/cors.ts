// Cross-origin use by browsers, per class or application; off unless declared (behaviour: origins). Pages of the
// application's own host are recognized by their origin.
import { HttpError } from './errors.ts';
import { addVary } from './request/listed-headers.ts';
import type { Around, RoutedRequest } from './request/request.ts';
import { patternCharacters, whyExponential } from './schema/pattern.ts';

/** `true`: any origin, without credentials. Otherwise the listed origins, with credentials; a regular expression must
 * match the whole origin. The application's own origin is always allowed. */
export type Cors = true | CorsSpec;

export interface CorsSpec {
  readonly origins: readonly (string | RegExp)[];
  /** Headers of answers that scripts can read in addition to those that every script can. */
  readonly expose?: readonly string[];
  /** For how long a browser keeps the answer to a preflight, in seconds.
   * @default 3600 */
  readonly maxAge?: number;
}

const defaultMaxAge = 3600;

/** Problems of a declaration that would otherwise admit no page, or every text, at the first request with an origin. */
export function corsProblem(cors: unknown): string | undefined {
  if (cors === undefined || cors === true) return undefined;
  const { origins } = Object(cors) as Partial<CorsSpec>;
  if (!Array.isArray(origins)) {
    return "cors is true, or a list: { origins: ['https://shop.example'] }";
  }
  for (const origin of origins) {
    if (!isOrigin(origin)) {
      return `cors: ${JSON.stringify(origin)} is not an origin, such as https://shop.example`;
    }
    const slow = origin instanceof RegExp ? whyExponential(origin.source) : undefined;
    if (slow !== undefined) return `cors: ${origin} can take exponential time: ${slow}`;
  }
  return undefined;
}

/** The form that browsers send: without a path, and without the default port of the scheme. */
function isOrigin(origin: unknown): boolean {
  if (origin instanceof RegExp || origin === 'null') return true;
  const url = typeof origin === 'string' ? URL.parse(origin) : null;
  // Schemes of applications, such as capacitor, have no origin in URLs.
  return url !== null && (url.origin === origin || url.origin === 'null');
}

/** The arounds of a declaration: the outer one sets the headers, which every answer has, including refusals and 404, so
 * that a script can read them; the inner one refuses other origins with 403, and answers preflights. */
export function toCorsArounds(cors: Cors): { readonly outer: Around; readonly inner: Around } {
  const { expose = [], maxAge = defaultMaxAge }: Partial<CorsSpec> = cors === true ? {} : cors;
  const admits = toAdmission(cors);
  return {
    async outer(next, { headers: asked }) {
      const answer = await next();
      const { headers } = answer;
      addVary(headers, 'Origin');
      const origin = asked.get('origin');
      if (origin === null || !admits(origin)) return answer;
      headers.set('access-control-allow-origin', origin);
      if (cors !== true) headers.set('access-control-allow-credentials', 'true');
      if (expose.length > 0) headers.set('access-control-expose-headers', expose.join(', '));
      return answer;
    },
    inner(next, request) {
      const { method, headers } = request;
      if (!isAdmitted(request, admits)) {
        throw new HttpError(403, { detail: 'this origin is refused' });
      }
      const asks = method === 'OPTIONS' && headers.has('origin');
      if (!asks || !headers.has('access-control-request-method')) return next();
      return new Response(null, { status: 204, headers: preflightHeaders(headers, maxAge) });
    },
  };
}

export function toAdmission(cors: Cors | undefined): (origin: string) => boolean {
  if (cors === true) return () => true;
  const admitted = (cors?.origins ?? []).map((origin) => {
    if (typeof origin === 'string') return (given: string) => given === origin;
    const anchored = new RegExp(`^(?:${origin.source})$`, origin.flags.replace(/[gy]/g, ''));
    return (given: string) => given.length <= patternCharacters && anchored.test(given);
  });
  return (given) => admitted.some((admits) => admits(given));
}

function preflightHeaders(request: Headers, maxAge: number): Record<string, string> {
  const headers = request.get('access-control-request-headers');
  return {
    'access-control-allow-methods': request.get('access-control-request-method') ?? '',
    ...(headers !== null && { 'access-control-allow-headers': headers }),
    'access-control-max-age': String(maxAge),
  };
}

/** Whether a request is from a program, from an admitted origin, or from a page of the application's own, judged by the
 * origin to which the browser has sent its request; a proxy may have changed the scheme. Behind a proxy that changes
 * `Host`, no page is. */
export function isAdmitted(
  { headers, origin: asked }: Pick<RoutedRequest, 'headers' | 'origin'>,
  admits: (origin: string) => boolean,
): boolean {
  const origin = headers.get('origin');
  if (origin === null || admits(origin)) return true;
  const page = URL.parse(origin);
  const own = URL.parse(`${page?.protocol}${asked.slice(asked.indexOf('//'))}`);
  return page !== null && own !== null && page.host === own.host;
}
