// What a controller or guard throws to answer with something other than its return value, and the rejection of a start
// that fails. problem.ts makes the responses (behaviour: failures).

export interface HttpErrorOptions {
  /** Sent to the client, except with a status of 500 or above: then only logged. */
  readonly detail?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent instead of the problem document, as JSON, or unchanged if it is a text and `headers` have another
   * `content-type`; never for a status of 500 or above. */
  readonly body?: unknown;
  /** An error with a cause is reported to the log, whatever its status. */
  readonly cause?: unknown;
}

/** Answers with an error status (400-599). It replaces a status that the method has set. */
export class HttpError extends Error {
  readonly status: number;
  readonly detail: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;

  constructor(status: number, options: HttpErrorOptions = {}) {
    if (!(status >= 400 && status <= 599)) {
      throw new RangeError(
        `HttpError: ${status} is no status of an error; Stop answers with others`,
      );
    }
    const { detail, cause } = options;
    // A refusal is an answer: its stack is never read, and capturing it costs more than the answer.
    const limit = Error.stackTraceLimit;
    if (status < 500) Error.stackTraceLimit = 0;
    super(detail ?? `HTTP ${status}`, cause === undefined ? undefined : { cause });
    Error.stackTraceLimit = limit;
    this.name = 'HttpError';
    this.status = status;
    this.detail = options.detail;
    this.headers = options.headers ?? {};
    this.body = options.body;
    if (options.headers !== undefined && (options.body === undefined || status >= 500)) {
      refuseContentType(options.headers);
    }
  }
}

/** A problem document has its own media type. */
function refuseContentType(headers: Readonly<Record<string, string>>): void {
  const name = Object.keys(headers).find((given) => given.toLowerCase() === 'content-type');
  if (name !== undefined) throw new TypeError(`HttpError: ${name} is allowed only with a body`);
}

export function bodyTooLarge(maxBytes: number): HttpError {
  return new HttpError(413, { detail: `a body has at most ${maxBytes} bytes` });
}

/** 404 for a path that matches nothing. */
export function notFound(): HttpError {
  return new HttpError(404, { detail: 'no resource has this path' });
}

/** One problem of a request, as the problem document describes it. */
export interface FieldProblem {
  readonly in: 'path' | 'query' | 'body';
  /** The keyword's name, with `/` before each nested name: `size`, `tags/3`. */
  readonly name: string;
  readonly reason: string;
}

/** A violation that a schema reports. */
export interface SchemaProblem {
  /** The position inside the value: `` for the value itself, `/tags/3`. */
  readonly at: string;
  readonly reason: string;
}

/** Refuses a request for all of these reasons at once: status 400. */
export class BadRequest extends HttpError {
  readonly problems: readonly FieldProblem[];

  constructor(detail: string, problems: readonly FieldProblem[] = []) {
    super(400, { detail });
    this.name = 'BadRequest';
    this.problems = problems;
  }
}

/** An early success: the status, and the value as if the method had returned it. */
export class Stop extends Error {
  readonly status: number;
  readonly value: unknown;

  constructor(status: number, value?: unknown) {
    super(`stopped with ${status}`);
    this.name = 'Stop';
    this.status = status;
    this.value = value;
  }
}

/** Redirects the client. Never pass a location from a request unchecked. */
export class Redirect extends Error {
  readonly location: string;
  readonly status: number;

  constructor(location: string, status = 302) {
    super(`redirect to ${location}`);
    this.name = 'Redirect';
    this.location = location;
    this.status = status;
  }
}

/** 401 with `WWW-Authenticate: <Scheme>[ realm="..."]`. */
export class AccessDenied extends HttpError {
  constructor(options: {
    readonly scheme: string;
    readonly realm?: string | undefined;
    readonly detail?: string | undefined;
    readonly cause?: unknown;
  }) {
    const scheme = options.scheme.charAt(0).toUpperCase() + options.scheme.slice(1).toLowerCase();
    const realm = options.realm?.replace(/["\\]/g, '\\$&');
    super(401, {
      detail: options.detail ?? 'access denied',
      cause: options.cause,
      headers: { 'www-authenticate': realm === undefined ? scheme : `${scheme} realm="${realm}"` },
    });
    this.name = 'AccessDenied';
  }
}

/** 501: the method is not implemented yet. It is expected, so the detail is neither sent nor logged. */
export class NotImplemented extends HttpError {
  constructor(detail?: string) {
    super(501, detail === undefined ? {} : { detail });
    this.name = 'NotImplemented';
  }
}

/** 503 while the maximum number of connections is open. It is expected: its detail is sent, and it is not logged. */
export class TooManyConnections extends HttpError {
  constructor() {
    super(503, {
      detail: 'too many connections are open; ask again from time to time',
      headers: { 'retry-after': '1' },
    });
    this.name = 'TooManyConnections';
  }
}

/** The application cannot be served. The message has every reason found, one per line, some with lines below. */
export class StartError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[], options?: { cause?: unknown }) {
    super(problems.join('\n'), options);
    this.name = 'StartError';
    this.problems = problems;
  }
}
