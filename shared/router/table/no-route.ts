// What is answered where a path names a class, or the server itself, that has no method for the request
// (behaviour: verbs).

import { BadRequest, HttpError, NotImplemented, notFound } from '../errors.ts';
import { type HeaderList, toHeaderList } from '../request/listed-headers.ts';
import type { ResponseLike } from '../request/request.ts';
import type { ClassNode } from './nodes.ts';
import { allowedMethods, anyVerbs, isKnownMethod } from './verb.ts';

interface Missed {
  readonly method: string;
  /** Of the path behind the class. */
  readonly partCount: number;
  readonly missingVerb: 405 | 501;
  readonly requestId: string;
}

/** OPTIONS is answered; any other method is thrown: 404, 405, 426 or 501. */
export function answerWithoutRoute(
  node: ClassNode,
  { method, partCount, missingVerb, requestId }: Missed,
): ResponseLike {
  if (!isKnownMethod(method)) throw new NotImplemented();
  const fitting = [...node.verbs].filter(
    ([verb, { binder }]) => verb !== 'CONNECT' && binder.fits(partCount),
  );
  if (fitting.length === 0 && node.verbs.get('CONNECT')?.binder.fits(partCount) === true) {
    const headers = { upgrade: 'websocket', connection: 'Upgrade' };
    throw new HttpError(426, { headers, detail: 'this is a WebSocket' });
  }
  const allow = allowedMethods(fitting.map(([verb]) => verb)).join(', ');
  if (method === 'OPTIONS' && fitting.length > 0) {
    if (!node.isForPreflights) return toNoContent(['allow', allow], requestId);
    throw new BadRequest('a preflight needs Origin and Access-Control-Request-Method');
  }
  if (missingVerb === 501 && node.verbs.size > 0 && partCount === 0) throw new NotImplemented();
  if (missingVerb === 501 || fitting.length === 0) throw notFound();
  throw new HttpError(405, { headers: { allow } });
}

/** `OPTIONS *` asks what the server supports; no other method has this target. */
export function answerServer(method: string, requestId: string): ResponseLike {
  if (method !== 'OPTIONS') throw new BadRequest('the target * goes with OPTIONS only');
  return toNoContent(['allow', allowedMethods(anyVerbs).join(', ')], requestId);
}

export function toNoContent(headers: HeaderList, requestId: string): ResponseLike {
  return { status: 204, headers: toHeaderList(headers, undefined, requestId), body: undefined };
}
