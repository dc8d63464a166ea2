// Calls the methods of controllers over HTTP, as their types declare them:
// `client<Modules>(url).widgets.GET({}, 'w-1')`. It also runs in a browser page, so it imports nothing from Node.
// client-type.ts has its type.
import { toClassPathName, toPathName } from '../table/names.ts';
import type { Answer, Client, Problem } from './client-type.ts';

export interface ClientOptions {
  /** Headers for each request, such as the caller's token; evaluated for every call. A WebSocket has none of them. */
  readonly headers?: () => Readonly<Record<string, string>>;
  /** Sends a request; default: the global `fetch`. An application's own `fetch` needs no server. */
  readonly fetch?: (request: Request) => Promise<Response>;
  /** The time from the call to the last byte of the answer; for events, to the first. A timeout is a failure with
   * status 0. */
  readonly timeoutMs?: number;
  /** Ends calls under way, and events. */
  readonly signal?: AbortSignal;
}

const defaultTimeoutMs = 30_000;
const verb = /^(?:(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)(?:_(.+))?|CONNECT)$/;
/** Methods whose fields are sent in the query; those of all others are sent in the body. */
const withoutBody: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** `url` is where the application is mounted; in a page it can be a path. Each answer is a value: `ok` with the
 * method's result, or not `ok`, with `status` and `error`; `CONNECT` opens a `WebSocket`. Rejects with a TypeError for
 * an argument that cannot be sent. */
export function client<Modules extends object>(
  url: string | URL,
  options: ClientOptions = {},
): Client<Modules> {
  const text = String(url);
  const base = text.endsWith('/') ? text.slice(0, -1) : text;
  return toNode({ base, parts: [], options }) as Client<Modules>;
}

interface Endpoint {
  readonly base: string;
  /** The parts of the path so far; `[id]` is replaced by a position. */
  readonly parts: readonly string[];
  readonly options: ClientOptions;
}

function toNode(endpoint: Endpoint): object {
  const { base, parts, options } = endpoint;
  return new Proxy(
    {},
    {
      get(_node, name) {
        // An object with `then` would be treated as a promise.
        if (typeof name === 'symbol' || name === 'then') return undefined;
        const [isCall, method, suffix] = verb.exec(name) ?? [];
        if (isCall === undefined) return toNode({ ...endpoint, parts: [...parts, toPart(name)] });
        if (method === undefined) {
          return (fields: object = {}, ...given: readonly unknown[]) =>
            openSocket(base + fillPath(parts, given), fields);
        }
        const named = suffix === undefined ? parts : [...parts, toPathName(suffix)];
        return async (fields: object = {}, ...given: readonly unknown[]) => {
          const [first, ...behind] = given;
          const [raw, positionals] = isBodyArgument(first) ? [first, behind] : [undefined, given];
          const path = base + fillPath(named, positionals);
          return call(method, path, { fields, raw }, options);
        };
      },
    },
  );
}

/** Classes begin with a capital letter; modules can have a name that is already in kebab-case. */
function toPart(name: string): string {
  return /^[A-Z]/.test(name) ? (toClassPathName(name) ?? name) : toPathName(name);
}

/** A body that is one argument, either a list or that of a method with `raw` or `stream`, precedes the positions, which
 * have other types. */
type BodyArgument = Bytes | readonly unknown[];
type Bytes = Blob | FormData | Uint8Array<ArrayBuffer>;

function isBodyArgument(value: unknown): value is BodyArgument {
  return (
    value instanceof Blob ||
    value instanceof FormData ||
    value instanceof Uint8Array ||
    Array.isArray(value)
  );
}

/** The first positions replace the `[id]` folders; the others are appended. */
function fillPath(parts: readonly string[], positionals: readonly unknown[]): string {
  const end = positionals.indexOf(undefined);
  const given = positionals.slice(0, end < 0 ? undefined : end);
  const path = parts.map(
    (part) => `/${part.startsWith('[') ? encodePosition(given.shift()) : part}`,
  );
  return [...path, ...given.map((value) => `/${encodePosition(value)}`)].join('');
}

function encodePosition(value: unknown): string {
  const text = String(value ?? '');
  // Servers drop these segments, which would yield another path.
  if (text === '' || text === '.' || text === '..' || !text.isWellFormed()) {
    throw new TypeError(`${JSON.stringify(text)} cannot be a part of a path`);
  }
  return encodeURIComponent(text);
}

type Fields = readonly (readonly [name: string, value: unknown])[];

function toFields(fields: object): Fields {
  return Object.entries(fields).filter(([, value]) => value !== undefined);
}

function openSocket(path: string, fields: object): WebSocket {
  // A path alone refers to the page's own server, as for the other calls.
  const url = new URL(new Request(path + toQuery(toFields(fields))).url);
  url.protocol = url.protocol.replace('http', 'ws');
  return new WebSocket(url);
}

async function call(
  method: string,
  path: string,
  { fields, raw }: { readonly fields: object; readonly raw: BodyArgument | undefined },
  options: ClientOptions,
): Promise<Answer<unknown>> {
  const given = toFields(fields);
  const headers = new Headers(options.headers?.());
  const isInQuery = withoutBody.has(method) || raw !== undefined;
  const body = isInQuery ? toSent(raw, headers) : toBody(given, headers);
  const late = new AbortController();
  const { signal: left = late.signal, timeoutMs = defaultTimeoutMs } = options;
  const request = new Request(isInQuery ? path + toQuery(given) : path, {
    method,
    headers,
    signal: AbortSignal.any([late.signal, left]),
    ...(body !== undefined && { body }),
  });
  const timer = setTimeout(() => late.abort(), timeoutMs);
  try {
    const response = await (options.fetch ?? fetch)(request);
    const isStream = response.ok && typeOf(response) === 'text/event-stream';
    return isStream ? toSuccess(response, readEvents(response)) : await readAnswer(response);
  } catch (cause) {
    const detail = cause instanceof Error ? cause.message : String(cause);
    const error = { type: 'about:blank', title: 'No answer', status: 0, detail };
    return toFailure(0, new Headers(), error);
  } finally {
    clearTimeout(timer);
  }
}

function toQuery(given: Fields): string {
  const pairs = itemsOf(given).map(
    ([name, item]) => [name, toText(name, item)] as [string, string],
  );
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`;
}

/** Lists become repeated names. Throws a TypeError for an empty one, which would be taken for a missing one. */
function itemsOf(given: Fields): Fields {
  const empty = given.find(([, value]) => Array.isArray(value) && value.length === 0);
  if (empty !== undefined) throw new TypeError(`${empty[0]}: leave an empty list out`);
  return given.flatMap(([name, value]) => [value].flat().map((item) => [name, item] as const));
}

function toSent(raw: BodyArgument | undefined, headers: Headers): string | Bytes | undefined {
  return Array.isArray(raw) ? toJson(raw, headers) : (raw as Bytes | undefined);
}

/** JSON, or a form if there are files; undefined without fields. */
function toBody(given: Fields, headers: Headers): string | FormData | undefined {
  if (given.length === 0) return undefined;
  if (!given.flatMap(([, value]) => value).some((item) => item instanceof Blob)) {
    return toJson(Object.fromEntries(given), headers);
  }
  const form = new FormData();
  for (const [name, item] of itemsOf(given)) {
    if (item instanceof Blob) form.append(name, item);
    else form.append(name, toText(name, item));
  }
  return form;
}

function toJson(value: unknown, headers: Headers): string {
  headers.set('content-type', 'application/json');
  return JSON.stringify(value);
}

/** A value without a text form in a query or a form would reach the method as another value: null would be `null`. */
function toText(name: string, value: unknown): string {
  const plain: unknown = value instanceof Date ? value.toJSON() : value;
  const text = String(plain);
  if (typeof plain !== 'object' && plain !== undefined && text.isWellFormed()) return text;
  throw new TypeError(
    `${name} cannot be sent as a text: null, objects and lone surrogates need JSON`,
  );
}

async function readAnswer(response: Response): Promise<Answer<unknown>> {
  const value = await readValue(response);
  if (response.ok) return toSuccess(response, value);
  const { status, statusText: title, headers } = response;
  const isObject = typeof value === 'object' && value !== null && !(value instanceof Blob);
  return toFailure(status, headers, isObject ? value : { type: 'about:blank', title, status });
}

/** Reads JSON as its value, any other text as a text, and everything else as a Blob. */
async function readValue(response: Response): Promise<unknown> {
  const type = typeOf(response);
  if (response.body === null || type === '') return undefined;
  if (type === 'application/json' || type.endsWith('+json')) {
    const text = await response.text();
    return text === '' ? undefined : (JSON.parse(text) as unknown);
  }
  return type.startsWith('text/') ? response.text() : response.blob();
}

function typeOf({ headers }: Response): string {
  return (headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

function toSuccess({ status, headers }: Response, value: unknown): Answer<unknown> {
  return { ok: true, status, headers, value };
}

/** The type assumes that only the declared statuses occur; the server determines the body. */
function toFailure(status: number, headers: Headers, error: object): Answer<unknown> {
  return { ok: false, status, headers, error: error as Problem } as Answer<unknown>;
}

/** Server-sent events as they arrive, each of them parsed as JSON. Ends with the stream, and throws if the stream is interrupted; a reader that stops closes it. */
async function* readEvents({ body }: Response): AsyncGenerator<unknown, void, undefined> {
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  try {
    let line = '';
    let data: string[] = [];
    while (true) {
      const { done, value } = (await reader?.read()) ?? { done: true };
      if (done || value === undefined) return;
      const [first = '', ...more] = value.split('\n');
      line += first;
      for (const next of more) {
        const text = line.endsWith('\r') ? line.slice(0, -1) : line;
        line = next;
        if (text.startsWith('data:')) data.push(text.slice(5));
        if (text !== '' || data.length === 0) continue;
        yield JSON.parse(data.join('\n'));
        data = [];
      }
    }
  } finally {
    // A failed stream cannot be cancelled.
    await reader?.cancel().catch(() => {});
  }
}
