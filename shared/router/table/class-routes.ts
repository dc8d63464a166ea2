// The routes of a class, built at start: its handlers with their declarations, guards and limits, and its nested
// classes (behaviour: private-parts). Mistakes are collected, so that a start reports all of them. table.ts adds the
// classes to the table.
import Type from 'typebox';
import { varyAccept } from '../answer/format.ts';
import { type BinderOptions, compileBinder } from '../arguments/bind.ts';
import type { SchemaCompiler } from '../arguments/schema.ts';
import { tagged, withRevalidation } from '../around/conditions.ts';
import type { Handler } from '../controller.ts';
import { type Cors, corsProblem } from '../cors.ts';
import { type Folder, isFolder, toArounds } from '../folder.ts';
import { type Guard, ownSockets } from '../guard.ts';
import type { Limits } from '../limits.ts';
import type { SocketClass } from '../live/socket.ts';
import { isOp, type Op, type OpSpec, op } from '../op.ts';
import type { Around } from '../request/request.ts';
import type { Plain } from '../schema/json-schema.ts';
import {
  type ControllerClass,
  isController,
  isRouted,
  methodsOf,
  nestedClasses,
  ownEntries,
} from './controller-class.ts';
import { type Report, reportMisspelt, reportNoController, reportWrongStatics } from './misspelt.ts';
import { isParameter, isPrivateName, toClassPathName, toPathName } from './names.ts';
import type { ClassNode, ModuleNode, Route } from './nodes.ts';
import { findGuards, toGuards } from './route-guards.ts';
import { answeringVerbs, knownMethods, parseHandlerName, type Verb } from './verb.ts';

/** Parameters of a POST without a declaration: any fields, as one object. */
const anyFields = op({ body: Type.Object({}, { additionalProperties: true }) });

/** What the application declares for all classes. */
export interface ClassOptions {
  readonly compiler: SchemaCompiler;
  readonly limits: Limits;
  readonly guard: Guard | readonly Guard[] | undefined;
  readonly cors: Cors | undefined;
  readonly around: Around | readonly Around[] | undefined;
}

/** The module that contains the classes. */
interface Building {
  readonly module: string;
  readonly file: string | undefined;
  /** The folders that apply to the module, outermost first. */
  readonly folders: readonly Folder[];
  /** The enclosing classes; a class that refers back to one of them is not nested again. */
  readonly within: readonly object[];
  readonly options: ClassOptions;
  readonly report: Report;
}

export function addClass(node: ModuleNode, name: string, value: unknown, building: Building): void {
  const owner = `${building.module}:${name}`;
  if (typeof value === 'function') reportWrongStatics(owner, value, building.report);
  if (isFolder(value)) {
    building.report.mistake(`${owner} is a folder, which holds in a module _folder alone`);
  }
  const isOne = typeof value === 'function' && isController(value);
  if (!isOne && !isPrivateName(name)) reportNoController(owner, value, building.report);
  if (!isRouted(name, value)) return;
  const built = buildClass(name, value, building);
  if (built === undefined) return;
  if (name === 'Default') {
    node.fallback = built.node;
    return;
  }
  const other = node.classes.get(built.part);
  // A class can be exported both under its name and as the default.
  if (other !== undefined && other.name !== built.node.name) {
    building.report.mistake(`the classes ${other.name} and ${built.node.name} have one path`);
  }
  node.classes.set(built.part, built.node);
}

function buildClass(
  name: string,
  controller: ControllerClass,
  building: Building,
): { readonly part: string; readonly node: ClassNode } | undefined {
  const { module, file, folders, options, report } = building;
  const fullName = `${module}:${name}`;
  const part = toClassPathName(name.slice(name.lastIndexOf('.') + 1));
  if (part === undefined) {
    report.mistake(
      `${fullName} cannot be routed: its name cannot be a path part; take letters and digits, or begin it with _ where no path leads to it`,
    );
    return undefined;
  }
  const wrong = corsProblem(controller.cors);
  if (wrong !== undefined) report.mistake(`${fullName}: ${wrong}`);
  const cors = controller.cors ?? folders.findLast((folder) => folder.cors)?.cors ?? options.cors;
  const arounds = wrong === undefined ? toArounds(options.around, folders, cors) : [];
  const isForPreflights = controller.cors !== undefined;
  const node = createClassNode({ name: fullName, file, cors, isForPreflights, arounds });
  addNested(node, name, controller, building);
  if (isController(controller)) addMethods(node, controller, building);
  return { part, node };
}

function addNested(
  node: ClassNode,
  name: string,
  controller: ControllerClass,
  building: Building,
): void {
  const { report } = building;
  const within = [...building.within, controller];
  for (const [key, inner] of nestedClasses(controller)) {
    if (within.includes(inner)) continue;
    const nested = buildClass(`${name}.${key}`, inner, { ...building, within });
    if (nested === undefined) continue;
    const other = node.children.get(nested.part);
    if (other !== undefined) report.mistake(`${other.name} and ${nested.node.name} have one path`);
    node.children.set(nested.part, nested.node);
  }
}

function addMethods(node: ClassNode, controller: ControllerClass, building: Building): void {
  const { report } = building;
  const handlers = methodsOf(controller);
  reportMembers(node, controller, handlers, report);
  const withSuffixes = new Set([node]);
  for (const [key, handler] of handlers) {
    const { verb, suffix } = parseHandlerName(key) ?? {};
    if (verb === undefined) continue;
    const name = `${node.name}.${key}`;
    const declared: unknown = Reflect.get(controller, key);
    if (declared !== undefined && !isOp(declared)) {
      report.mistake(notByOp(name, key));
      continue;
    }
    const accepted = declared ?? (verb === 'POST' ? anyFields : undefined);
    const method = { key, name, verb, handler, controller, owner: node, declared, accepted };
    const route = buildRoute(method, building);
    if (route === undefined) continue;
    if (suffix === undefined) {
      addRoute(node, route);
      continue;
    }
    const part = toPathName(suffix);
    const childName = `${node.name} (${suffix})`;
    const child = node.children.get(part) ?? createClassNode({ ...node, name: childName });
    if (child.name !== childName) {
      report.mistake(`${name} and ${child.name} have one path`);
      continue;
    }
    node.children.set(part, child);
    withSuffixes.add(child);
    addRoute(child, route);
  }
  for (const { verbs } of withSuffixes) reportConditions(verbs, report);
}

/** Reports members of a class that no request would reach, or that are wrong beside each other. */
function reportMembers(
  { name: className, children }: ClassNode,
  controller: ControllerClass,
  handlers: ReadonlyMap<string, Handler>,
  report: Report,
): void {
  const statics = ownEntries(controller);
  reportMisspelt(className, { methods: handlers.keys(), statics }, report);
  if (handlers.size + children.size === 0) {
    report.warning(
      `${className} has no method, so that no path reaches it: a function in a field is not a method; the name of a base class ends in Controller`,
    );
  }
  for (const [key, value] of statics) {
    const name = `${className}.${key}`;
    const isHandled = handlers.has(key);
    if (!isOp(value)) {
      if (parseHandlerName(key) !== undefined && !isHandled) report.mistake(notByOp(name, key));
      continue;
    }
    if (value.method !== undefined && Object.hasOwn(controller.prototype, key)) {
      report.mistake(`${name} is there twice: in op() and beside it`);
    }
    if (!isHandled) report.mistake(`${name} is declared by op() and does not exist`);
  }
  for (const key of ['MESSAGE', 'DISCONNECT']) {
    if (!handlers.has(key) || handlers.has('CONNECT')) continue;
    report.mistake(`${className}.${key} is never called: a WebSocket has CONNECT`);
  }
}

/** Conditions of a request are compared with the tag of GET on the same path. */
function reportConditions(verbs: ReadonlyMap<string, Route>, report: Report): void {
  for (const { isConditional, name } of verbs.values()) {
    if (!isConditional || verbs.get('GET')?.op?.spec.etag === true) continue;
    report.mistake(`${name} has etag, whose tag is that of GET: declare it for GET too`);
  }
}

function addRoute({ verbs, answers }: ClassNode, route: Route): void {
  verbs.set(route.verb, route);
  for (const method of knownMethods) {
    const [best] = answeringVerbs(method).flatMap((verb) => verbs.get(verb) ?? []);
    if (best !== undefined) answers.set(method, best);
  }
}

/** A method of a class, with what its class declares for it. */
interface Method {
  /** The name in the source, such as `POST_reset`. */
  readonly key: string;
  /** `<module>:<Class>.<method>`, human-readable. */
  readonly name: string;
  readonly verb: Verb;
  readonly handler: Handler;
  readonly controller: ControllerClass;
  readonly owner: ClassNode;
  readonly declared: Op | undefined;
  /** What defines the arguments: `declared`, or any fields for a POST without a declaration. */
  readonly accepted: Op | undefined;
}

function buildRoute(method: Method, building: Building): Route | undefined {
  const { name } = method;
  const { report } = building;
  for (const { find, finding } of methodChecks) {
    const problem = find(method, building);
    if (problem === undefined) continue;
    if (finding === 'warning') report.warning(`${name} ${problem}`);
    else report.mistake(`${name} ${problem}`);
    if (finding === 'last mistake') return undefined;
  }
  try {
    return toRoute(method, building);
  } catch (error) {
    report.mistake(`${name}: ${error instanceof Error ? error.message : error}`);
    return undefined;
  }
}

/** Throws an Error that names what is invalid in the declaration. */
function toRoute(method: Method, building: Building): Route {
  const { key, verb, handler, controller, owner, name, declared, accepted } = method;
  const { module, folders, within, options } = building;
  const spec: OpSpec = declared?.spec ?? {};
  // The limits of the method override those of the inner folder, and so on up to the application's.
  const levels = [...folders.map((folder) => folder.limits), spec.limits];
  const limits: Limits = Object.assign({ ...options.limits }, ...levels);
  const common = [...toGuards(options.guard), ...folders.flatMap((folder) => folder.guard ?? [])];
  const { guards, isForgotten } = findGuards({ controller, method: key, within, common });
  const isSocket = verb === 'CONNECT';
  const isTagged = spec.etag === true && (verb === 'GET' || verb === 'HEAD');
  const xml = controller.xml === true;
  const negotiated = xml && spec.produces === undefined;
  const added = [...(negotiated ? [varyAccept] : []), ...(isTagged ? [tagged] : [])];
  return {
    verb,
    name,
    owner,
    module,
    op: declared,
    arounds: [...owner.arounds, ...added],
    binder: compileBinder(accepted, {
      compiler: options.compiler,
      limits,
      unknownQuery: unknownQueryOf(verb, folders),
    }),
    guards: isSocket ? [ownSockets(owner.cors), ...guards] : guards,
    isForgotten,
    folders,
    limits,
    unparsed: spec.stream ? 'stream' : spec.raw ? 'raw' : undefined,
    xml,
    mediaType: spec.produces,
    controller,
    handler: isTagged ? withRevalidation(handler) : handler,
    isConditional: spec.etag === true && !isTagged,
    filters: spec.filter ? toFilters(spec.returns ?? {}, options.compiler) : undefined,
    negotiated,
    ...(isSocket && { socket: toSocketClass(controller, options) }),
  };
}

/** One check of a method, before its route is built. */
interface MethodCheck {
  /** The problem, as a text that follows the name of the method. */
  find(method: Method, building: Building): string | undefined;
  /** After the `last mistake` the method is not examined further; after a `mistake` a start reports all others too. */
  readonly finding: 'warning' | 'mistake' | 'last mistake';
}

const methodChecks: readonly MethodCheck[] = [
  { find: findSurplus, finding: 'mistake' },
  { find: findMissingPosition, finding: 'last mistake' },
  { find: findDefaultsOfPatch, finding: 'warning' },
];

/** What a method takes beyond its declaration would always be undefined. */
function findSurplus({ handler: { length }, accepted }: Method): string | undefined {
  if (accepted === undefined) {
    return length === 0
      ? undefined
      : 'takes arguments, which a static op(...) of its name declares';
  }
  const { path, spec, bodyValue } = accepted;
  const isBehind = spec.raw || spec.stream || bodyValue?.isBehind;
  const most = spec.rest === undefined ? 1 + (isBehind ? 1 : 0) + path.length : length;
  if (length <= most) return undefined;
  return `takes ${length} arguments, of which op() declares ${most}: its fields are one, and each position`;
}

/** Each folder `[id]` of the module's path is passed as a position that no request can omit. */
function findMissingPosition({ declared }: Method, { module }: Building): string | undefined {
  const captured = module.split('.').filter(isParameter);
  const path = declared?.path ?? [];
  const firstOther = path.findIndex((part) => part.optional || part.byKeyword);
  const required = firstOther < 0 ? path.length : firstOther;
  if (captured.length <= required) return undefined;
  return `must declare a required position for ${captured.join(' and ')}`;
}

/** `Type.Partial` retains defaults: a PATCH without a field would reset the field. */
function findDefaultsOfPatch({ verb, declared }: Method): string | undefined {
  if (verb !== 'PATCH') return undefined;
  const names = (['query', 'body'] as const)
    .flatMap((where) => Object.entries((declared?.fields[where]?.['properties'] ?? {}) as Plain))
    .flatMap(([key, schema]) => ('default' in (schema as Plain) ? [key] : []));
  if (names.length === 0) return undefined;
  return `has defaults, which reset the fields that a request omits: ${names.join(', ')}; declare its fields without defaults`;
}

function notByOp(name: string, method: string): string {
  return `${name}: the static ${method} is not made by op()`;
}

function toFilters(returns: NonNullable<OpSpec['returns']>, compiler: SchemaCompiler) {
  return new Map(
    Object.entries(returns).map(([status, schema]) => [
      Number(status),
      compiler.compileFilter(schema as unknown as Plain),
    ]),
  );
}

/** Unsafe methods and WebSockets refuse unknown fields even if they declare none. */
function unknownQueryOf(verb: Verb, folders: readonly Folder[]): BinderOptions['unknownQuery'] {
  const unknownQuery = folders.findLast((folder) => folder.unknownQuery)?.unknownQuery;
  if (unknownQuery === 'ignore') return 'ignore';
  return verb === 'GET' || verb === 'HEAD' ? 'unread' : 'refuse';
}

/** Messages are declared like the fields of a POST. */
function toSocketClass(controller: ControllerClass, options: ClassOptions): SocketClass {
  const names = methodsOf(controller);
  const declared: unknown = Reflect.get(controller, 'MESSAGE');
  if (isOp(declared) && declared.spec.stream) throw new TypeError('a message is never streamed');
  return {
    protocols: controller.protocols ?? [],
    acceptsBytes: isOp(declared) && declared.spec.raw === true,
    message: names.has('MESSAGE')
      ? compileBinder(isOp(declared) ? declared : anyFields, {
          ...options,
          unknownQuery: 'refuse',
        })
      : undefined,
    create(context) {
      const instance = new controller(context) as unknown as ReturnType<SocketClass['create']>;
      // Methods that were passed to op() are not on the prototype.
      for (const name of ['CONNECT', 'MESSAGE', 'DISCONNECT'] as const) {
        const method = names.get(name);
        if (method !== undefined) instance[name] ??= method;
      }
      return instance;
    },
  };
}

function createClassNode(about: Omit<ClassNode, 'children' | 'verbs' | 'answers'>): ClassNode {
  return { ...about, children: new Map(), verbs: new Map(), answers: new Map() };
}
