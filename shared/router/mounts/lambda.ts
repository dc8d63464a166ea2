// The application as a handler of AWS Lambda, behind a function URL or an HTTP API: events and results of payload
// format 2.0 (docs.aws.amazon.com, "Lambda proxy integrations for HTTP APIs"). Streams are read to their end, since a
// result must be complete. The library for this, serverless-http, reads a stream of bytes as text, and leaves the stage
// and the decoded path as they are.
import { Readable } from 'node:stream';
import { toErrorResponse } from '../answer/problem.ts';
import { HttpError } from '../errors.ts';
import { ListedHeaders } from '../request/listed-headers.ts';
import { type Dispatch, isWhole, type ResponseLike, toHeaders } from '../request/request.ts';

/** The parts of an event that the router reads. */
export interface LambdaEvent {
  readonly rawPath: string;
  readonly rawQueryString: string;
  /** Names are in lower case; values of a repeated name are joined. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly cookies?: readonly string[];
  readonly body?: string | null;
  readonly isBase64Encoded?: boolean;
  readonly requestContext: {
    /** An HTTP API puts its stage before the path, unless the stage is `$default`. */
    readonly stage?: string;
    readonly http: { readonly method: string; readonly sourceIp: string };
  };
}

export interface LambdaResult {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly cookies: readonly string[];
  readonly body: string;
  readonly isBase64Encoded: boolean;
}

/** `export const handler = createLambda(await createApp())`. */
export function createLambda({ dispatch }: { readonly dispatch: Dispatch }) {
  return async (event: LambdaEvent): Promise<LambdaResult> => {
    const { rawQueryString, body, isBase64Encoded } = event;
    if (event.requestContext?.http === undefined) {
      throw new TypeError(
        'createLambda takes events of payload format 2.0: choose it for the integration',
      );
    }
    const { method, sourceIp } = event.requestContext.http;
    const answer = await dispatch({
      method,
      target: rawQueryString === '' ? toPath(event) : `${toPath(event)}?${rawQueryString}`,
      headers: readHeaders(event),
      // Some emulators send null.
      body: body
        ? Readable.from([Buffer.from(body, isBase64Encoded ? 'base64' : 'utf8')])
        : undefined,
      remoteAddress: sourceIp,
      scheme: 'https',
    });
    // The stream of the answer can fail; the error report has the reason. Nothing has been sent yet.
    return toResult(answer).catch(() => {
      const requestId = new ListedHeaders(answer.headers).get('x-request-id') ?? '';
      return toResult(toErrorResponse(new HttpError(500), requestId));
    });
  };
}

/** A function URL passes the path as it was sent; an HTTP API decodes it, so characters that a path cannot contain are
 * encoded again. */
function toPath({ rawPath, requestContext: { stage = '' } }: LambdaEvent): string {
  const prefix = `/${stage}`;
  const isBelow = stage !== '' && (rawPath === prefix || rawPath.startsWith(`${prefix}/`));
  return (isBelow ? rawPath.slice(prefix.length) || '/' : rawPath)
    .toWellFormed()
    .replace(/%(?![0-9A-Fa-f]{2})|[^!-~]+|["#<>?\\^`{|}]/g, encodeURIComponent);
}

/** Cookies are separate from the other headers. A client can send headers that the platform's `Headers` refuse. */
function readHeaders({ headers = {}, cookies = [] }: LambdaEvent): Headers {
  const all = { ...headers, ...(cookies.length > 0 && { cookie: cookies.join('; ') }) };
  return new ListedHeaders(
    Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [name, value])),
  );
}

async function toResult({ status, headers: list, body }: ResponseLike): Promise<LambdaResult> {
  const headers = toHeaders(list);
  const whole = isWhole(body) ? body : Buffer.concat(await Array.fromAsync(body));
  const cookies = headers.getSetCookie();
  headers.delete('set-cookie');
  const isBase64Encoded = whole instanceof Uint8Array;
  return {
    statusCode: status,
    headers: Object.fromEntries(headers),
    cookies,
    body: isBase64Encoded ? Buffer.from(whole).toString('base64') : (whole ?? ''),
    isBase64Encoded,
  };
}
