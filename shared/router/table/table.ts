// The routing table, built once at start from the modules' exports; requests only look up Maps. Two
// classes of one path are a mistake (behaviour: one-class-for-a-path). resolve.ts finds the entry of a
// path.
import Type from 'typebox';
import { type Binder, compileBinder } from '../arguments/bind.ts';
import type { SchemaCompiler } from '../arguments/schema.ts';
import type { Cors } from '../cors.ts';
import { StartError } from '../errors.ts';
import { type Folder, isFolder } from '../folder.ts';
import type { Guard } from '../guard.ts';
import type { Limits } from '../limits.ts';
import type { SocketClass } from '../live/open-socket.ts';
import { isOp, type Op, op } from '../op.ts';
import { mediaTypeOfName } from '../request/media-type.ts';
import { isStandard } from '../standard-schema.ts';
import {
  type ControllerClass,
  classNameOf,
  declaredMethods,
  type Handler,
  isController,
  isRouted,
  methodsOf,
  nestedClasses,
  staticNames,
} from './controller-class.ts';
import { meantStatic, meantVerb } from './misspelt.ts';
import { ModuleFiles, type ModuleTree } from './module-tree.ts';
import { toClassPathName, toPathName } from './names.ts';
import { withPlace } from './place.ts';
import { authenticates, findGuards, type RouteGuards, toGuards } from './route-guards.ts';
import { listRoutes } from './route-list.ts';
import { answeringVerbs, knownMethods, parseHandlerName, type Verb } from './verb.ts';

export interface ModuleNode {
  readonly modules: Map<string, ModuleNode>;
  readonly classes: Map<string, ClassNode>;
  /** The class Default. */
  fallback: ClassNode | undefined;
  /** What stands below any part that names nothing here: the folder `[id]`. */
  parameter: { readonly name: string; readonly node: ModuleNode } | undefined;
}

export interface ClassNode {
  /** `<module>:<Class>`, for people. */
  readonly name: string;
  readonly cors: Cors | undefined;
  /** Nested classes, and verbs with a suffix. */
  readonly children: Map<string, ClassNode>;
  readonly verbs: Map<string, Route>;
  /** By the method of a request. */
  readonly answers: Map<string, Route>;
}

export interface Route extends RouteGuards {
  readonly verb: Verb;
  /** `<module>:<Class>.<method>`, for people. */
  readonly name: string;
  /** `<module>:<Class>`, for people. */
  readonly className: string;
  /** The module's path; empty for the root. */
  readonly module: string;
  readonly op: Op | undefined;
  readonly binder: Binder;
  /** Its class allows it. */
  readonly xml: boolean;
  /** Its answers are JSON or XML, as the client prefers. */
  readonly negotiated: boolean;
  /** How it takes a body that is not parsed: its bytes, or while they arrive. */
  readonly unparsed: 'raw' | 'stream' | undefined;
  /** Media type from the class's extension, where the method declares a result. */
  readonly mediaType: string | undefined;
  /** Those that hold here, the outermost first. */
  readonly folders: readonly Folder[];
  readonly limits: Limits;
  /** Something comes between the request and the method that may take its time. */
  readonly waits: boolean;
  /** Of a class with CONNECT, whose connections stay open. */
  readonly socket?: SocketClass;
  readonly controller: ControllerClass;
  /** Called on an instance of it. */
  readonly handler: Handler;
}

export interface TableOptions {
  readonly compiler: SchemaCompiler;
  readonly limits: Limits;
  readonly guard: Guard | readonly Guard[] | undefined;
  /** A method whose guard was forgotten keeps the app from starting. */
  readonly requireGuards: boolean;
  readonly cors: Cors | undefined;
  /** Called for a class that no path reaches, and for one whose guard was forgotten. */
  readonly warn: (text: string) => void;
}

/** Parameters of a POST without a declaration: any fields, as one object. */
const anyFields = op({ body: Type.Object({}, { additionalProperties: true }) });

/** Throws a StartError with all mistakes. */
export function buildTable(trees: readonly ModuleTree[], options: TableOptions): ModuleNode {
  const problems: string[] = [];
  const root = createModuleNode();
  for (const tree of trees) {
    const modules = buildModules(tree, options, problems);
    findClashes(modules, '', { problems, warn: options.warn });
    merge(root, modules);
  }
  findForgottenGuards(root, problems, options);
  if (problems.length > 0) throw new StartError(problems);
  return root;
}

function buildModules(tree: ModuleTree, options: TableOptions, problems: string[]): ModuleNode {
  const root = createModuleNode();
  const paths = new Map<string, string>();
  const folders = findFolders(tree, problems);
  for (const [name, exports] of [...tree].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const parts = name === '' ? [] : name.split('.');
    if (parts.some((part) => part.startsWith('_'))) continue;
    const path = parts.map((part) => (isParameter(part) ? part : toPathName(part)));
    const other = paths.get(path.join('/'));
    if (other !== undefined) problems.push(`the modules ${other} and ${name} have one path`);
    paths.set(path.join('/'), name);
    let node = root;
    for (const part of path) {
      if (!isParameter(part)) {
        const next = node.modules.get(part) ?? createModuleNode();
        node.modules.set(part, next);
        node = next;
        continue;
      }
      node.parameter ??= { name: part, node: createModuleNode() };
      if (node.parameter.name !== part) {
        problems.push(`${name}: the folders ${part} and ${node.parameter.name} are one place`);
      }
      node = node.parameter.node;
    }
    if (parts.length > 0 && isParameter(parts.at(-1) ?? '') && 'Default' in exports) {
      problems.push(`${name}:Default: the path of a part alone belongs to the module above it`);
    }
    const above = parts.flatMap((_, at) => folders.get(parts.slice(0, at + 1).join('.')) ?? []);
    const holding = [...(folders.get('') ?? []), ...above];
    const own: string[] = [];
    const builder = { module: name, within: [], folders: holding, options, problems: own };
    for (const [exported, value] of Object.entries(exports)) {
      addClass(node, classNameOf(exported, value), value, builder);
    }
    const file = tree instanceof ModuleFiles ? tree.files.get(name) : undefined;
    problems.push(...(file === undefined ? own : own.map((problem) => withPlace(problem, file))));
  }
  return root;
}

/** By the module path of their folder. */
function findFolders(tree: ModuleTree, problems: string[]): ReadonlyMap<string, readonly [Folder]> {
  const folders = new Map<string, readonly [Folder]>();
  for (const [name, exports] of tree) {
    const parts = name.split('.');
    if (parts.pop() !== '_folder') continue;
    const [folder, ...others] = Object.values(exports).filter(isFolder);
    if (folder === undefined || others.length > 0) {
      problems.push(`${name} must export one folder, made by defineFolder()`);
    } else {
      folders.set(parts.join('.'), [folder]);
    }
  }
  return folders;
}

interface Building {
  readonly module: string;
  /** Those that hold for the module, the outermost first. */
  readonly folders: readonly Folder[];
  /** The enclosing classes; one that refers back to them is not nested again. */
  readonly within: readonly object[];
  readonly options: TableOptions;
  readonly problems: string[];
}

function addClass(node: ModuleNode, name: string, value: unknown, building: Building): void {
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

/** Where nothing has a guard, nothing was forgotten, unless guards are required. */
function findForgottenGuards(
  root: ModuleNode,
  problems: string[],
  { requireGuards, warn }: TableOptions,
): void {
  const routes = listRoutes(root).map(({ route }) => route);
  if (!requireGuards && !routes.some(({ guards }) => guards.some(authenticates))) return;
  const forgotten = Map.groupBy(
    routes.filter(({ isForgotten }) => isForgotten),
    ({ className }) => className,
  );
  for (const [className, methods] of forgotten) {
    const names = methods.map(({ name }) => name.slice(className.length + 1)).join(', ');
    const text = `${className} has no guard for ${names}; give it one, or open() where everybody may call`;
    if (requireGuards) problems.push(text);
    else warn(text);
  }
}

function isParameter(part: string): boolean {
  return part.startsWith('[');
}

function createClassNode(name: string, cors: Cors | undefined): ClassNode {
  return { name, cors, children: new Map(), verbs: new Map(), answers: new Map() };
}

function createModuleNode(): ModuleNode {
  return { modules: new Map(), classes: new Map(), fallback: undefined, parameter: undefined };
}

/** Classes and modules of the later tree replace those of the earlier one with the same path. Two modules
 * merge. */
function merge(into: ModuleNode, from: ModuleNode): void {
  const named = [...from.classes.keys(), ...(from.fallback?.children.keys() ?? [])];
  for (const part of named) if (!from.modules.has(part)) into.modules.delete(part);
  for (const part of [...named, ...from.modules.keys()]) into.classes.delete(part);
  for (const [part, node] of from.modules) {
    const mine = into.modules.get(part);
    if (mine === undefined) into.modules.set(part, node);
    else merge(mine, node);
  }
  for (const [part, node] of from.classes) into.classes.set(part, node);
  into.fallback = from.fallback ?? into.fallback;
  if (into.parameter === undefined) into.parameter = from.parameter;
  else if (from.parameter !== undefined) merge(into.parameter.node, from.parameter.node);
}

interface Clashes {
  readonly problems: string[];
  readonly warn: (text: string) => void;
}

/** A module goes before a class, as the path is read; two classes of one path are a mistake. */
function findClashes(node: ModuleNode, path: string, clashes: Clashes): void {
  for (const [part, { name }] of [...node.classes, ...(node.fallback?.children ?? [])]) {
    if (!node.modules.has(part)) continue;
    clashes.warn(`the module at ${path}/${part} hides the class ${name}, which has the same path`);
  }
  for (const [part, { name }] of node.fallback?.children ?? []) {
    const other = node.classes.get(part)?.name;
    if (other === undefined) continue;
    clashes.problems.push(`${name} and ${other} have one path: ${path}/${part}`);
  }
  for (const [part, module] of node.modules) findClashes(module, `${path}/${part}`, clashes);
  const { parameter } = node;
  if (parameter !== undefined) findClashes(parameter.node, `${path}/${parameter.name}`, clashes);
}
