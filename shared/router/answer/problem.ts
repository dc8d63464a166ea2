// Turns anything thrown into a response. Texts of unexpected errors never leave the process.
import { STATUS_CODES } from 'node:http';
import Type from 'typebox';
import { BadRequest, HttpError, NotImplemented, TooManyConnections } from '../errors.ts';
import { toHeaderList, toListedHeaders } from '../request/listed-headers.ts';
import type { ResponseLike } from '../request/request.ts';

export function statusTitle(status: number): string {
  return STATUS_CODES[status] ?? `Status ${status}`;
}

/** The shape of the problem document. */
export const problemSchema: Type.TSchema = Type.Object({
  type: Type.String(),
  title: Type.String(),
  status: Type.Integer(),
  detail: Type.Optional(Type.String()),
  requestId: Type.String(),
  errors: Type.Optional(
    Type.Array(
      Type.Object({
        in: Type.Enum(['path', 'query', 'body']),
        name: Type.String(),
        reason: Type.String(),
      }),
    ),
  ),
});

const problemType = 'application/problem+json';

export interface ErrorResponse extends ResponseLike {
  readonly body: string;
}

/** The answer for a thrown error; a 500 if the error cannot be sent. */
export function toErrorResponse(error: unknown, requestId: string): ErrorResponse {
  try {
    if (error instanceof HttpError && error.status >= 400 && error.status <= 599) {
      return toProblemResponse(error, requestId);
    }
  } catch {
    // The error has a header or body that cannot be sent; the report has the error itself.
  }
  return toProblemResponse(new HttpError(500), requestId);
}

/** Prepares the answer for a constant error, which costs less than half of one that is made for each request: only the
 * id differs, whose characters need no escaping. */
export function prepareErrorResponse(error: HttpError): (requestId: string) => ErrorResponse {
  const [before, behind] = toErrorResponse(error, '\0').body.split('\\u0000') as [string, string];
  return (requestId) => {
    const about = { type: problemType, set: undefined, requestId };
    return toTextResponse(error.status, before + requestId + behind, about);
  };
}

/** `application/problem+json` with type, title, status, detail, requestId and errors. */
function toProblemResponse(known: HttpError, requestId: string): ErrorResponse {
  const { status, headers } = known;
  const isOurs = status >= 500;
  const set = Object.keys(headers).length === 0 ? undefined : toListedHeaders(headers);
  if (known.body !== undefined && !isOurs) {
    const type = set?.get('content-type') ?? 'application/json;charset=UTF-8';
    const isText = typeof known.body === 'string' && !/json/i.test(type);
    const text = isText ? String(known.body) : JSON.stringify(known.body);
    return toTextResponse(status, text, { set, requestId, type });
  }
  const problem = {
    type: 'about:blank',
    title: statusTitle(status),
    status,
    // JSON omits undefined values.
    detail: isOurs ? detailOfOurs(known) : known.detail,
    requestId,
    errors: known instanceof BadRequest && known.problems.length > 0 ? known.problems : undefined,
  };
  return toTextResponse(status, JSON.stringify(problem), { set, requestId, type: problemType });
}

/** An expected status is not a failure, and is not logged. */
function detailOfOurs(known: HttpError): string {
  if (known instanceof NotImplemented) return 'this method is not implemented';
  if (known instanceof TooManyConnections) return known.message;
  return 'the request failed; see the log for the request id';
}

function toTextResponse(
  status: number,
  body: string,
  about: {
    readonly type: string;
    readonly set: Headers | undefined;
    readonly requestId: string;
  },
): ErrorResponse {
  const own = ['content-type', about.type, 'content-length', String(Buffer.byteLength(body))];
  return { status, headers: toHeaderList(own, about.set, about.requestId), body };
}
