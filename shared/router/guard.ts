// Guards decide whether a request reaches its method; they run after routing and before the body is read (behaviour:
// guards-before-bodies). The application's functions decide who is allowed to do what.
import { createHash, timingSafeEqual } from 'node:crypto';
import { type Cors, isAdmitted, toAdmission } from './cors.ts';
import { AccessDenied, HttpError, Redirect, Stop } from './errors.ts';
import { type MaybePromise, settle, toNative } from './maybe-promise.ts';
import type { RoutedRequest } from './request/request.ts';

export interface Guard {
  /** Whether the guard authenticates the caller. */
  readonly authenticates: boolean;
  /** The OpenAPI security scheme of the guard, and its name. */
  readonly security?: { readonly name: string; readonly scheme: Readonly<Record<string, string>> };
  /** The status with which it refuses, if it does not authenticate. Used in descriptions. */
  readonly refusal?: number;
  /** Returns nothing, or true, to admit the request; throws to refuse it. Any other value also refuses it and is
   * reported, since it was probably intended to refuse. */
  // biome-ignore lint/suspicious/noConfusingVoidType: a function without a return statement is of this type.
  check(request: RoutedRequest): MaybePromise<void | true>;
}

export interface GuardOptions {
  readonly realm?: string;
}

/** `Authorization: Bearer <token>`. Without a check no caller passes: 403. */
export function bearer(
  check?: (token: string, request: RoutedRequest) => MaybePromise<boolean>,
  options: GuardOptions = {},
): Guard {
  return ofScheme('bearer', options, 'a bearer token is required', (token) => token, check);
}

/** `Authorization: Basic <user:password in base64>`. Without a check no caller passes: 403. */
export function basic(
  check?: (user: string, password: string, request: RoutedRequest) => MaybePromise<boolean>,
  options: GuardOptions = {},
): Guard {
  const read = (credentials: string) =>
    /^([^:]*):(.*)$/s.exec(Buffer.from(credentials, 'base64').toString());
  const ask =
    check &&
    (([, user = '', password = '']: RegExpExecArray, request: RoutedRequest) =>
      check(user, password, request));
  return ofScheme('basic', options, 'a user name and a password are required', read, ask);
}

/** A check that fails admits no caller, but is no verdict: 503, and its error is only logged. An error that it throws as
 * an answer is passed on unchanged. */
function fail(_asked: unknown, cause: unknown): never {
  const isAnswer = cause instanceof HttpError || cause instanceof Stop || cause instanceof Redirect;
  throw isAnswer ? cause : new HttpError(503, { cause });
}

/** `read` returns nothing for malformed credentials. */
function ofScheme<Credentials>(
  scheme: 'basic' | 'bearer',
  { realm }: GuardOptions,
  required: string,
  read: (text: string) => Credentials | null,
  check: ((credentials: Credentials, request: RoutedRequest) => MaybePromise<boolean>) | undefined,
): Guard {
  interface Asked {
    readonly credentials: Credentials;
    readonly request: RoutedRequest;
  }
  const ask = ({ credentials, request }: Asked) => toNative(check?.(credentials, request));
  const admit = (_asked: Asked, passed: unknown): void => {
    if (passed !== true) throw new AccessDenied({ scheme, realm });
  };
  return {
    authenticates: true,
    security: { name: scheme, scheme: { type: 'http', scheme } },
    check(request) {
      if (check === undefined) throw new HttpError(403, { detail: 'no caller has access' });
      const text = readCredentials(request.headers.get('authorization'), scheme);
      const credentials = text === undefined ? null : read(text);
      if (credentials === null) throw new AccessDenied({ scheme, realm, detail: required });
      return settle({ credentials, request }, ask, admit, fail);
    },
  };
}

/** Admits a request while `isAllowed` returns true, else answers 429; it does not authenticate callers. */
export function limited(isAllowed: (request: RoutedRequest) => MaybePromise<boolean>): Guard {
  const ask = (request: RoutedRequest) => toNative(isAllowed(request));
  const admit = (_request: RoutedRequest, passed: unknown): void => {
    if (passed !== true) throw new HttpError(429, { detail: 'too many requests' });
  };
  return {
    authenticates: false,
    refusal: 429,
    check: (request) => settle(request, ask, admit, fail),
  };
}

/** Refuses unsafe methods with 403 if a browser sends them from pages that belong neither to the application itself nor
 * to these origins. Intended for applications with cookie sessions, since browsers send forms and plain texts across
 * origins without a preflight. Behind a proxy that changes `Host`, list the public origin. */
export function fromOrigins(origins: readonly string[]): Guard {
  const admits = toAdmission({ origins });
  return {
    authenticates: false,
    refusal: 403,
    check(request) {
      const isSafe = ['GET', 'HEAD', 'OPTIONS'].includes(request.method);
      if (isSafe || isAdmitted(request, admits)) return;
      throw new HttpError(403, { detail: 'requests from this origin are refused' });
    },
  };
}

/** Runs before a WebSocket is opened: admits the application's own pages, origins that `cors` lists, and programs,
 * which send no origin; answers 403 otherwise. Browsers send cookies with a handshake from any site, without a
 * preflight, so another site could use a socket on behalf of its visitors (behaviour: sockets). `cors: true` does not
 * change that: it admits all origins without credentials, but every handshake is made with credentials. */
export function ownSockets(cors: Cors | undefined): Guard {
  const admits = toAdmission(cors === true ? undefined : cors);
  return {
    authenticates: false,
    check(request) {
      if (isAdmitted(request, admits)) return;
      throw new HttpError(403, { detail: 'sockets from this origin are refused' });
    },
  };
}

/** Compares secrets in constant time. */
export function isSameSecret(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}

const meant: Guard = { authenticates: false, check() {} };

/** Declares that every caller can call a class, or a method: the authenticating guards of the application and folders
 * do not run. It removes no guard of a class. Subclasses and nested classes must declare it themselves. */
export function open(): Guard {
  return meant;
}

export function isOpen(guard: Guard): boolean {
  return guard === meant;
}

/** Whether the value is a guard, a list of guards, or absent. */
export function areGuards(guard: unknown): guard is Guard | readonly Guard[] | undefined {
  const isGuard = (one: unknown) => typeof Object(one).check === 'function';
  return guard === undefined || [guard].flat().every(isGuard);
}

const credentialsOf = { basic: /^basic +([^ ]+)$/i, bearer: /^bearer +([^ ]+)$/i };

/** The credentials of an `Authorization` header with this scheme; undefined for another scheme or a malformed
 * header. */
export function readCredentials(
  authorization: string | null | undefined,
  scheme: 'basic' | 'bearer',
): string | undefined {
  return credentialsOf[scheme].exec(authorization ?? '')?.[1];
}
