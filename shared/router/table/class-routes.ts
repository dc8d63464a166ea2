// The routes of a class, built at start: its handlers with their declarations, guards and limits, and its nested classes
// (behaviour: private-parts). Mistakes are collected, so that a start names all of them. table.ts puts the classes in
// their places.
import Type from 'typebox';
import { compileBinder } from '../arguments/bind.ts';
import type { Cors } from '../cors.ts';
import type { Folder } from '../folder.ts';
import type { Limits } from '../limits.ts';
import type { SocketClass } from '../live/open-socket.ts';
import { isOp, type Op, op } from '../op.ts';
import { mediaTypeOfName } from '../request/media-type.ts';
import { isStandard } from '../standard-schema.ts';
import {
  type ControllerClass,
  declaredMethods,
  type Handler,
  isController,
  isRouted,
  methodsOf,
  nestedClasses,
  staticNames,
} from './controller-class.ts';
import { meantStatic, meantVerb } from './misspelt.ts';
import { isParameter, toClassPathName, toPathName } from './names.ts';
import { findGuards, toGuards } from './route-guards.ts';
import type { ClassNode, ModuleNode, Route, TableOptions } from './table.ts';
import { answeringVerbs, knownMethods, parseHandlerName, type Verb } from './verb.ts';

/** Parameters of a POST without a declaration: any fields, as one object. */
const anyFields = op({ body: Type.Object({}, { additionalProperties: true }) });

interface Building {
  readonly module: string;
  /** Those that hold for the module, the outermost first. */
  readonly folders: readonly Folder[];
  /** The enclosing classes; one that refers back to them is not nested again. */
  readonly within: readonly object[];
  readonly options: TableOptions;
  readonly problems: string[];
}

export function addClass(node: ModuleNode, name: string, value: unknown, building: Building): void {
  if (!isRouted(name, value)) return;
  const built = buildClass(name, value, building);
  if (built === undefined) return;
  if (name === 'Default') {
    node.fallback = built.node;
    return;
  }
  const other = node.classes.get(built.part);
  // One class may be exported under its name and as the default.
  if (other !== undefined && other.name !== built.node.name) {
    building.problems.push(`the classes ${other.name} and ${built.node.name} have one path`);
  }
  node.classes.set(built.part, built.node);
}

function buildClass(
  name: string,
  value: ControllerClass,
  building: Building,
): { readonly part: string; readonly node: ClassNode } | undefined {
  const { module, options, problems } = building;
  const fullName = `${module}:${name}`;
  const own = name.slice(name.lastIndexOf('.') + 1);
  const pathName = toClassPathName(own);
  if (pathName === undefined) {
    problems.push(
      `${fullName} cannot be routed: its name cannot be a path part; take letters and digits, or begin it with _ where no path leads to it`,
    );
    return undefined;
  }
  const cors =
    value.cors ?? building.folders.findLast((folder) => folder.cors)?.cors ?? options.cors;
  const node = createClassNode(fullName, cors);
  const within = [...building.within, value];
  for (const [key, inner] of nestedClasses(value)) {
    if (within.includes(inner)) continue;
    if (key === 'Default') {
      problems.push(`${fullName}.Default: a nested class has a name; put its methods on ${name}`);
      continue;
    }
    const nested = buildClass(`${name}.${key}`, inner, { ...building, within });
    if (nested === undefined) continue;
    const other = node.children.get(nested.part);
    if (other !== undefined) problems.push(`${other.name} and ${nested.node.name} have one path`);
    node.children.set(nested.part, nested.node);
  }
  if (isController(value)) addMethods(node, value, pathName.extension, building);
  return { part: pathName.part, node };
}

function addMethods(
  node: ClassNode,
  controller: ControllerClass,
  extension: string | undefined,
  building: Building,
): void {
  const methods = methodsOf(controller);
  findMisspelt(node.name, controller, [...methods.keys()], building);
  for (const method of declaredMethods(controller)) {
    if (methods.has(method)) continue;
    building.problems.push(`${node.name}.${method} is declared by op() and does not exist`);
  }
  for (const [method, handler] of methods) {
    const { verb, suffix } = parseHandlerName(method) ?? {};
    if (verb === undefined) continue;
    const route = buildRoute(node, controller, { method, handler, verb, extension, building });
    if (route === undefined) continue;
    if (suffix === undefined) {
      addRoute(node, route);
      continue;
    }
    const part = toPathName(suffix);
    const name = `${node.name} (${suffix})`;
    const child = node.children.get(part) ?? createClassNode(name, node.cors);
    if (child.name !== name) {
      building.problems.push(`${node.name}.${method} and ${child.name} have one path`);
      continue;
    }
    node.children.set(part, child);
    addRoute(child, route);
  }
}

function addRoute({ verbs, answers }: ClassNode, route: Route): void {
  verbs.set(route.verb, route);
  for (const method of knownMethods) {
    const [best] = answeringVerbs(method).flatMap((verb) => verbs.get(verb) ?? []);
    if (best !== undefined) answers.set(method, best);
  }
}

/** A method in small letters is no handler by the convention, and may be a helper: it is only told. */
function findMisspelt(
  owner: string,
  controller: ControllerClass,
  methods: readonly string[],
  { options, problems }: Building,
): void {
  for (const name of methods) {
    const verb = meantVerb(name);
    if (verb === undefined) continue;
    const text = `${owner}.${name} is no handler; did you mean ${verb}?`;
    if (name === name.toLowerCase()) options.warn(text);
    else problems.push(text);
  }
  for (const name of staticNames(controller)) {
    const meant = meantStatic(name);
    if (meant === undefined) continue;
    problems.push(`${owner}: the static ${name} means nothing; did you mean ${meant}?`);
  }
}

interface Declaring {
  readonly method: string;
  readonly handler: Handler;
  readonly verb: Verb;
  readonly extension: string | undefined;
  readonly building: Building;
}

function buildRoute(
  node: ClassNode,
  controller: ControllerClass,
  { method, handler, verb, extension, building }: Declaring,
): Route | undefined {
  const { module, options, problems } = building;
  const name = `${node.name}.${method}`;
  const declared: unknown = Reflect.get(controller, method);
  if (declared !== undefined && !isOp(declared)) {
    problems.push(`${name}: the static ${method} is not made by op()`);
    return undefined;
  }
  const captured = module.split('.').filter(isParameter);
  const path = declared?.path ?? [];
  const required = path.findIndex((part) => part.optional || part.byKeyword);
  if (captured.length > (required < 0 ? path.length : required)) {
    problems.push(`${name} must declare a required position for ${captured.join(' and ')}`);
    return undefined;
  }
  const xml = controller.xml === true;
  const mediaType =
    extension !== undefined && declared?.spec.returns !== undefined
      ? mediaTypeOfName(extension)
      : undefined;
  if (verb === 'PATCH') warnOfDefaults(name, declared, options.warn);
  const limits = Object.assign(
    { ...options.limits },
    ...building.folders.map((folder) => folder.limits),
    declared?.spec.limits,
  ) as Limits;
  const unparsed = declared?.spec.stream ? 'stream' : declared?.spec.raw ? 'raw' : undefined;
  try {
    const found = findGuards({
      controller,
      method,
      within: building.within,
      common: [
        ...toGuards(options.guard, 'the application'),
        ...building.folders.flatMap((folder) => toGuards(folder.guard, `a folder of ${module}`)),
      ],
    });
    return {
      verb,
      name,
      className: node.name,
      module,
      op: declared,
      binder: compileBinder(declared ?? (verb === 'POST' ? anyFields : undefined), {
        ...options,
        limits,
      }),
      ...found,
      waits: found.guards.length > 0 || verb === 'CONNECT' || unparsed !== undefined,
      unparsed,
      xml,
      negotiated: xml && mediaType === undefined && declared?.spec.produces === undefined,
      mediaType,
      folders: building.folders,
      limits,
      ...(verb === 'CONNECT' && { socket: toSocketClass(controller, building.options) }),
      controller,
      handler,
    };
  } catch (error) {
    problems.push(`${name}: ${error instanceof Error ? error.message : error}`);
    return undefined;
  }
}

/** `Type.Partial` keeps defaults: a PATCH that leaves a field out would set it back. */
function warnOfDefaults(
  name: string,
  declared: Op | undefined,
  warn: (text: string) => void,
): void {
  const names = [declared?.spec.query, declared?.spec.body].flatMap((fields) => {
    // Only TypeBox tells its defaults.
    if (fields === undefined || isStandard(fields)) return [];
    return Object.entries(fields.properties).flatMap(([key, schema]) =>
      'default' in schema ? [key] : [],
    );
  });
  if (names.length === 0) return;
  warn(
    `${name} has defaults, which reset what a request leaves out: ${names.join(', ')}; declare its fields without`,
  );
}

/** Its messages are declared like the fields of a POST. */
function toSocketClass(controller: ControllerClass, options: TableOptions): SocketClass {
  const names = methodsOf(controller);
  const declared: unknown = Reflect.get(controller, 'MESSAGE');
  if (isOp(declared) && declared.spec.raw) throw new TypeError('a message is never raw');
  if (isOp(declared) && declared.spec.stream) throw new TypeError('a message is never streamed');
  return {
    message: names.has('MESSAGE')
      ? compileBinder(isOp(declared) ? declared : anyFields, options)
      : undefined,
    create(context) {
      const instance = new controller(context) as unknown as ReturnType<SocketClass['create']>;
      // Those that were given to op() are not on the prototype.
      for (const name of ['CONNECT', 'MESSAGE'] as const) {
        const method = names.get(name);
        if (method !== undefined) instance[name] ??= method;
      }
      return instance;
    },
  };
}

function createClassNode(name: string, cors: Cors | undefined): ClassNode {
  return { name, cors, children: new Map(), verbs: new Map(), answers: new Map() };
}
