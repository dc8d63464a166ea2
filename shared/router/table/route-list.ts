// All routes of a table as a list, for operators and for descriptions.
import type { ServedMethod } from '../op.ts';
import type { ClassNode, ModuleNode, Route } from './nodes.ts';

export interface RouteEntry extends ServedMethod {
  readonly route: Route;
}

/** Sorted by path and verb. A class that a module of its name hides is not served. */
export function listRoutes(root: ModuleNode): readonly RouteEntry[] {
  const entries: RouteEntry[] = [];
  listModule(root, '', entries);
  const key = ({ path, route }: RouteEntry) => `${path} ${route.verb}`;
  return entries.sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

/** The path with these parameters: the first ones replace the folders that represent a part, the others are
 * appended. */
export function fillPath(
  path: string,
  parameters: readonly string[],
  toPart: (name: string) => string,
): string {
  let used = 0;
  const base = path.replace(/\[\w+\]/g, () => toPart(parameters[used++] ?? ''));
  const behind = parameters.slice(used).map(toPart);
  return [base === '/' ? '' : base, ...behind].join('/') || '/';
}

/** The path as authors write it: `/widgets[/:id]`, `/many[/:rest...]`. */
export function toPathText({ path, parameters, route }: ServedMethod): string {
  const declared = route.op?.path ?? [];
  const captured = path.split('/').filter((part) => part.startsWith('[')).length;
  const filled = fillPath(path, parameters.slice(0, captured), (name) => `:${name}`);
  const base = filled === '/' && parameters.length > 0 ? '' : filled;
  const parts = declared.slice(captured).map(({ optional, byKeyword }, index) => {
    const name = parameters[captured + index];
    return optional || byKeyword ? `[/:${name}]` : `/:${name}`;
  });
  const rest = route.op?.spec.rest === undefined ? '' : `[/:${parameters[declared.length]}...]`;
  return `${base}${parts.join('')}${rest}`;
}

function listModule(node: ModuleNode, path: string, entries: RouteEntry[]): void {
  for (const [part, module] of node.modules) listModule(module, `${path}/${part}`, entries);
  const { parameter } = node;
  if (parameter !== undefined) listModule(parameter.node, `${path}/${parameter.name}`, entries);
  const hidden = new Set([...node.modules.keys(), ...node.classes.keys()]);
  if (node.fallback !== undefined) listClass(node.fallback, path, entries, hidden);
  for (const [part, inner] of node.classes) {
    if (!node.modules.has(part)) listClass(inner, `${path}/${part}`, entries, new Set());
  }
}

function listClass(
  node: ClassNode,
  path: string,
  entries: RouteEntry[],
  hidden: ReadonlySet<string>,
): void {
  const routes = [...node.verbs.values()];
  const names = parameterNames(routes, path);
  for (const route of routes) {
    const count = (route.op?.path.length ?? 0) + (route.op?.spec.rest === undefined ? 0 : 1);
    entries.push({ path: path === '' ? '/' : path, parameters: names.slice(0, count), route });
  }
  for (const [part, child] of node.children) {
    if (!hidden.has(part)) listClass(child, `${path}/${part}`, entries, new Set());
  }
}

/** The names by position, so that a path has the same template for all verbs. Folders `[id]` name the positions that
 * have no name. */
function parameterNames(routes: readonly Route[], path: string): readonly string[] {
  const names: string[] = [];
  const folders = Array.from(path.matchAll(/\[(\w+)\]/g), ([, name]) => name);
  const length = Math.max(0, ...routes.map(({ op }) => (op?.path.length ?? 0) + 1));
  for (let index = 0; index < length; index += 1) {
    const parts = routes.flatMap(({ op }) => op?.path[index] ?? []);
    const given = parts.map(({ name }) => name).find(Boolean);
    const isRest = parts.length === 0;
    const name = given ?? folders[index] ?? (isRest ? 'rest' : `arg${index + 1}`);
    names.push(names.includes(name) ? `${name}${index + 1}` : name);
  }
  return names;
}
