// Turns anything thrown into a response. Texts of unexpected errors never leave the process.
import { BadRequest, HttpError, NotImplemented } from '../errors.ts';
import type { ResponseLike } from '../request/request.ts';

const titles: ReadonlyMap<number, string> = new Map([
  [200, 'OK'],
  [201, 'Created'],
  [202, 'Accepted'],
  [204, 'No Content'],
  [400, 'Bad Request'],
  [401, 'Unauthorized'],
  [403, 'Forbidden'],
  [404, 'Not Found'],
  [405, 'Method Not Allowed'],
  [406, 'Not Acceptable'],
  [408, 'Request Timeout'],
  [409, 'Conflict'],
  [412, 'Precondition Failed'],
  [413, 'Content Too Large'],
  [414, 'URI Too Long'],
  [415, 'Unsupported Media Type'],
  [422, 'Unprocessable Content'],
  [428, 'Precondition Required'],
  [429, 'Too Many Requests'],
  [431, 'Request Header Fields Too Large'],
  [500, 'Internal Server Error'],
  [501, 'Not Implemented'],
  [502, 'Bad Gateway'],
  [503, 'Service Unavailable'],
  [504, 'Gateway Timeout'],
]);

export function statusTitle(status: number): string {
  return titles.get(status) ?? `Status ${status}`;
}

/** The shape of the problem document, as a JSON Schema. */
export const problemSchema = {
  type: 'object',
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    requestId: { type: 'string' },
    errors: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          in: { enum: ['path', 'query', 'body'] },
          name: { type: 'string' },
          reason: { type: 'string' },
        },
        required: ['in', 'name', 'reason'],
      },
    },
  },
  required: ['type', 'title', 'status', 'requestId'],
} as const;

/** Headers of every answer. A method or a thrown error may override the last two. */
export function setCommonHeaders(headers: Headers, requestId: string): void {
  headers.set('x-request-id', requestId);
  if (!headers.has('x-content-type-options')) headers.set('x-content-type-options', 'nosniff');
  if (!headers.has('cache-control')) headers.set('cache-control', 'no-store');
}

/** The answer for a thrown error; a 500 where that cannot be sent. */
export function toErrorResponse(error: unknown, requestId: string): ResponseLike {
  const response = toBareResponse(error, requestId);
  setCommonHeaders(response.headers, requestId);
  return response;
}

function toBareResponse(error: unknown, requestId: string): ResponseLike {
  try {
    if (error instanceof HttpError && error.status >= 400 && error.status <= 599) {
      return toProblemResponse(error, requestId);
    }
  } catch {
    // The error has a header or body that cannot be sent; the error itself is in the report.
  }
  return toProblemResponse(new HttpError(500), requestId);
}

/** `application/problem+json` with type, title, status, detail, requestId and errors. */
function toProblemResponse(known: HttpError, requestId: string): ResponseLike {
  const { status } = known;
  const headers = new Headers(known.headers);
  const isOurs = status >= 500;
  if (known.body !== undefined && !isOurs) {
    return toJsonResponse(status, headers, known.body, 'application/json;charset=UTF-8');
  }
  const detail = isOurs ? detailOfOurs(known) : known.detail;
  const problem = {
    type: 'about:blank',
    title: statusTitle(status),
    status,
    ...(detail === undefined ? {} : { detail }),
    requestId,
    ...(known instanceof BadRequest && known.problems.length > 0 ? { errors: known.problems } : {}),
  };
  return toJsonResponse(status, headers, problem, 'application/problem+json');
}

/** An unimplemented method is no failure, and not logged. */
function detailOfOurs(known: HttpError): string {
  return known instanceof NotImplemented
    ? 'this method is not implemented'
    : 'the request failed; see the log for the request id';
}

function toJsonResponse(
  status: number,
  headers: Headers,
  value: unknown,
  type: string,
): ResponseLike {
  const body = new TextEncoder().encode(JSON.stringify(value));
  headers.set('content-type', type);
  headers.set('content-length', String(body.byteLength));
  return { status, headers, body };
}
