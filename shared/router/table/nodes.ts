// The elements of the routing table: modules, their classes, and the route of each method; which of them a path
// resolves to, and the answer if it has no method for the request. table.ts builds it.
import type { Binder } from '../arguments/bind.ts';
import type { Handler } from '../controller.ts';
import type { Cors } from '../cors.ts';
import { BadRequest, HttpError, NotImplemented, notFound } from '../errors.ts';
import type { Folder } from '../folder.ts';
import type { Limits } from '../limits.ts';
import type { SocketClass } from '../live/socket.ts';
import type { Op } from '../op.ts';
import { toHeaderList } from '../request/listed-headers.ts';
import type { Around, ResponseLike } from '../request/request.ts';
import type { ControllerClass } from './controller-class.ts';
import type { RouteGuards } from './route-guards.ts';
import { allowedMethods, anyVerbs, knownMethods, type Verb } from './verb.ts';

export interface ModuleNode {
  /** The folders that apply to its path, outermost first. */
  folders: readonly Folder[];
  /** The arounds for requests below its path that match no class. */
  arounds: readonly Around[];
  readonly modules: Map<string, ModuleNode>;
  readonly classes: Map<string, ClassNode>;
  /** The class Default. */
  fallback: ClassNode | undefined;
  /** The folder `[id]`: it matches any part that matches nothing else here. */
  parameter: { readonly name: string; readonly node: ModuleNode } | undefined;
}

export interface ClassNode {
  /** `<module>:<Class>`, human-readable. */
  readonly name: string;
  /** The file that its module was read from, if any. */
  readonly file: string | undefined;
  readonly cors: Cors | undefined;
  /** Whether it declares `cors` itself: its OPTIONS then handles only preflights, by convention. */
  readonly isForPreflights: boolean;
  /** The arounds for requests that match it but none of its methods. */
  readonly arounds: readonly Around[];
  /** Nested classes, and verbs with a suffix. */
  readonly children: Map<string, ClassNode>;
  readonly verbs: Map<string, Route>;
  /** Routes by request method. */
  readonly answers: Map<string, Route>;
}

export interface Route extends RouteGuards {
  readonly verb: Verb;
  /** `<module>:<Class>.<method>`, human-readable. */
  readonly name: string;
  /** The class of the method. */
  readonly owner: ClassNode;
  /** The module's path; empty for the root. */
  readonly module: string;
  readonly op: Op | undefined;
  /** The arounds of the method, outermost first. */
  readonly arounds: readonly Around[];
  readonly binder: Binder;
  /** Whether its class allows XML. */
  readonly xml: boolean;
  /** Whether conditions of the request are checked before it runs, against the tag of GET. */
  readonly isConditional: boolean;
  /** Filters by status, which remove undeclared fields from a value. */
  readonly filters: ReadonlyMap<number, (value: unknown) => unknown> | undefined;
  /** Whether its answers are JSON or XML, as the client prefers. */
  readonly negotiated: boolean;
  /** Set for a method that receives its body unparsed: as bytes, or as a stream. */
  readonly unparsed: 'raw' | 'stream' | undefined;
  /** What the method produces. */
  readonly mediaType: string | undefined;
  /** The folders that apply to the method, outermost first. */
  readonly folders: readonly Folder[];
  readonly limits: Limits;
  /** Set for a class with CONNECT, whose connections stay open. */
  readonly socket?: SocketClass;
  readonly controller: ControllerClass;
  /** The class on whose instance the method is called. */
  readonly handler: Handler;
}

export interface Match {
  readonly module: ModuleNode;
  /** Undefined if nothing is served. */
  readonly node: ClassNode | undefined;
  readonly positionals: readonly string[];
}

const lower = /^[a-z0-9._-]+$/;
const canonical = /^[a-z0-9.-]+$/;
const upper = /^[A-Z0-9._-]+$/;

const noParts: readonly string[] = [];
const noIds: readonly number[] = [];

/** Finds the longest module, then the longest class in it, else its Default (behaviour: longest-module-wins). The
 * remaining parts are positional. `strict`: only the canonical spelling matches. */
export function resolvePath(
  root: ModuleNode,
  parts: readonly string[],
  { strict }: { readonly strict: boolean },
): Match {
  let at = 0;
  let module = root;
  let idsAt: readonly number[] = noIds;
  while (true) {
    let next = childOf(module.modules, parts[at]);
    if (next === undefined) {
      next = moduleBelowId(module, parts[at], parts[at + 1]);
      if (next === undefined) break;
      idsAt = [...idsAt, at];
    }
    module = next;
    at += 1;
  }
  let node = childOf(module.classes, parts[at]);
  if (node === undefined) node = module.fallback;
  else at += 1;
  while (node !== undefined) {
    const next = childOf(node.children, parts[at]);
    if (next === undefined) break;
    node = next;
    at += 1;
  }
  if (node === undefined || (strict && !areCanonical(parts.slice(0, at), idsAt))) {
    return { module, node: undefined, positionals: noParts };
  }
  const rest = at === parts.length ? noParts : parts.slice(at);
  if (idsAt.length === 0) return { module, node, positionals: rest };
  const ids = parts.filter((_, index) => idsAt.includes(index));
  return { module, node, positionals: [...ids, ...rest] };
}

function areCanonical(parts: readonly string[], idsAt: readonly number[]): boolean {
  return parts.every((part, at) => idsAt.includes(at) || isCanonical(part));
}

/** A part that matches nothing here is an id if the next part matches something below it; otherwise the path resolves
 * as if there were no such folder (behaviour: below-an-id). */
function moduleBelowId(
  { parameter, classes, fallback }: ModuleNode,
  part: string | undefined,
  next: string | undefined,
): ModuleNode | undefined {
  if (parameter === undefined || next === undefined) return undefined;
  if (childOf(classes, part) !== undefined) return undefined;
  if (fallback !== undefined && childOf(fallback.children, part) !== undefined) return undefined;
  const { node } = parameter;
  const isNamed = childOf(node.modules, next) ?? childOf(node.classes, next);
  return isNamed === undefined ? undefined : node;
}

/** Names in the table are canonical, so a part equal to one needs no normalization. */
function childOf<Node>(
  children: ReadonlyMap<string, Node>,
  part: string | undefined,
): Node | undefined {
  if (part === undefined || children.size === 0) return undefined;
  const child = children.get(part);
  if (child !== undefined || isCanonical(part)) return child;
  const name = canonicalPart(part);
  return name === undefined ? undefined : children.get(name);
}

/** The canonical form of a path part, or undefined if it is not a spelling of any name: kebab or snake, all lower or
 * all upper case, ASCII only. */
export function canonicalPart(part: string): string | undefined {
  if (isCanonical(part)) return part;
  if (!lower.test(part) && !upper.test(part)) return undefined;
  return part.replaceAll('_', '-').toLowerCase();
}

function isCanonical(part: string): boolean {
  return canonical.test(part);
}

interface Missed {
  readonly method: string;
  /** The remaining path after the class. */
  readonly partCount: number;
  readonly missingVerb: 405 | 501;
  readonly requestId: string;
}

/** Handles a request for which a class has no method (behaviour: verbs): OPTIONS is answered; for any other method 404,
 * 405, 426 or 501 is thrown. */
export function answerWithoutRoute(
  node: ClassNode,
  { method, partCount, missingVerb, requestId }: Missed,
): ResponseLike {
  if (!knownMethods.has(method)) throw new NotImplemented();
  const fitting = [...node.verbs].filter(([, { binder }]) => binder.fits(partCount));
  if (method === 'GET' && fitting.some(([verb]) => verb === 'CONNECT')) {
    const headers = { upgrade: 'websocket', connection: 'Upgrade', 'sec-websocket-version': '13' };
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

/** `OPTIONS *` asks which methods the server supports; no other method has this target. */
export function answerServer(method: string, requestId: string): ResponseLike {
  if (method !== 'OPTIONS') throw new BadRequest('the target * is allowed with OPTIONS only');
  return toNoContent(['allow', allowedMethods(anyVerbs).join(', ')], requestId);
}

function toNoContent(headers: string[], requestId: string): ResponseLike {
  return { status: 204, headers: toHeaderList(headers, undefined, requestId), body: undefined };
}
