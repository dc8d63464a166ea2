// The module `_folder` speaks for every controller in its folder and below: who may call, which limits hold, and
// what is done before and after a method (behaviour: folders).

import { cancelStream, ReplaceableStream, toBody } from './answer/stream.ts';
import type { Cors } from './cors.ts';
import { describeValue, type Guard } from './guard.ts';
import { defaultLimits, type Limits } from './limits.ts';
import { refuseUnknownNames } from './near-names.ts';
import { DraftHeaders } from './request/draft-headers.ts';
import {
  type HeaderList,
  isWhole,
  type ResponseLike,
  type RoutedRequest,
  withoutBody,
} from './request/request.ts';

type MaybePromise<Value> = Value | Promise<Value>;

/** An answer before it is sent; `after` may change all of it. */
export interface Answer {
  status: number;
  readonly headers: Headers;
  body: ResponseLike['body'];
}

export interface FolderSpec<State extends object> {
  /** Asked after those of the application and of the folders above, before those of classes. */
  readonly guard?: Guard | readonly Guard[];
  /** For classes that do not declare their own. */
  readonly cors?: Cors;
  /** `ignore`: names in a query that a method does not declare are dropped, where `refuse`, the default, answers 400.
   * The query of a GET that declares no names is ignored always. */
  readonly unknownQuery?: 'ignore' | 'refuse';
  /** The limits of a method's own `op` go before these. */
  readonly limits?: Partial<Limits>;
  /** Runs when all guards have let the request pass, the outermost folder's first, before the body is read. What it
   * returns is in `this.state`; what it throws is the answer. */
  before?(request: RoutedRequest): MaybePromise<State | undefined>;
  /** Runs for every answer of a method below, also for refusals and errors, the innermost folder's first. */
  after?(answer: Answer, request: RoutedRequest): MaybePromise<void>;
  /** Gets what a guard, a hook or a method has thrown, and refusals of the router itself, such as the 400 for wrong
   * arguments (`BadRequest`), but no `Stop` and `Redirect`; what it returns is taken for
   * thrown instead, if it returns something. */
  onError?(error: unknown, request: RoutedRequest): MaybePromise<unknown>;
}

const brand: unique symbol = Symbol('folder');

export interface Folder<State extends object = object> extends FolderSpec<State> {
  readonly [brand]: true;
}

/** By name: a misspelt guard would be one that is never asked. */
const specNames: Readonly<Record<keyof FolderSpec<object>, true>> = {
  guard: true,
  cors: true,
  limits: true,
  unknownQuery: true,
  before: true,
  after: true,
  onError: true,
};

/** Throws a TypeError for a name that it does not have. `export const folder = defineFolder({ guard, before: ... })` in a module `_folder`. */
export function defineFolder<State extends object = object>(
  spec: FolderSpec<State>,
): Folder<State> {
  refuseUnknownNames('defineFolder', spec, specNames);
  refuseUnknownNames('defineFolder: limits', spec.limits ?? {}, defaultLimits);
  const { unknownQuery = 'refuse' } = spec;
  if (unknownQuery !== 'ignore' && unknownQuery !== 'refuse') {
    throw new TypeError(`defineFolder: unknownQuery is 'ignore' or 'refuse'`);
  }
  return Object.freeze({ ...spec, [brand]: true as const });
}

/** The type of the state that `before` returns: `class Notes extends Controller<StateOf<typeof folder>>`. */
export type StateOf<Declared> = Declared extends Folder<infer State> ? State : never;

export function isFolder(value: unknown): value is Folder {
  return typeof value === 'object' && value !== null && brand in value;
}

/** Calls `before` of each, the outermost first, and keeps what it finds out. Throws where that is no object: a `false`
 * that was meant to refuse would let every caller pass. */
export async function runBefore(folders: readonly Folder[], request: RoutedRequest): Promise<void> {
  for (const folder of folders) {
    const found: unknown = await folder.before?.(request);
    if (found === undefined) continue;
    if (typeof found !== 'object' || found === null) {
      throw new TypeError(
        `the before of a folder returned ${describeValue(found)}; it returns an object or nothing, and throws to refuse`,
      );
    }
    Object.assign(request.state, found);
  }
}

/** The error that is left when each folder has seen it, the innermost first. */
export async function runOnError(
  folders: readonly Folder[],
  error: unknown,
  request: RoutedRequest,
): Promise<unknown> {
  let thrown = error;
  for (const folder of folders.toReversed()) {
    thrown = (await folder.onError?.(thrown, request)) ?? thrown;
  }
  return thrown;
}

export async function runAfter(
  folders: readonly Folder[],
  answer: ResponseLike,
  request: RoutedRequest,
): Promise<ResponseLike> {
  const pairs: [string, string][] = [];
  for (let at = 0; at < answer.headers.length; at += 2) {
    pairs.push([answer.headers[at] ?? '', answer.headers[at + 1] ?? '']);
  }
  const headers = new DraftHeaders(pairs);
  const length = headers.get('content-length');
  const stream = isWhole(answer.body) ? undefined : new ReplaceableStream(answer.body);
  const given = stream ?? answer.body;
  const changing: Answer = { status: answer.status, headers, body: given };
  try {
    for (const folder of folders.toReversed()) await folder.after?.(changing, request);
  } catch (error) {
    await stream?.end();
    throw error;
  }
  const { status } = changing;
  const body = await toAnswered(changing, stream);
  const isChanged = body !== given || status !== answer.status;
  if (isChanged || headers.get('content-length') !== length) setLength(headers, body, given);
  const list: HeaderList = [...headers].flat();
  return { ...answer, status, headers: list, body: body === stream ? answer.body : body };
}

/** Ends the streams that are not sent. */
async function toAnswered(
  { status, body }: Answer,
  stream: ReplaceableStream | undefined,
): Promise<ResponseLike['body']> {
  if (body === stream && !withoutBody.has(status)) return body;
  if (isWhole(body) || withoutBody.has(status)) {
    await stream?.end();
    if (body !== stream && !isWhole(body)) await cancelStream(toBody(body));
    return withoutBody.has(status) ? undefined : body;
  }
  return stream === undefined ? toBody(body) : stream.replacedBy(body);
}

/** A tag of the bytes before the change is a weak one of those behind it. */
function setLength(headers: Headers, body: ResponseLike['body'], given: unknown): void {
  if (typeof body === 'string') headers.set('content-length', String(Buffer.byteLength(body)));
  else if (body instanceof Uint8Array) headers.set('content-length', String(body.byteLength));
  else headers.delete('content-length');
  const tag = headers.get('etag');
  if (body !== given && tag?.startsWith('"')) headers.set('etag', `W/${tag}`);
}
