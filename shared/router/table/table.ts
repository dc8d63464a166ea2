// The routing table, built once at start from the modules' exports; requests only read Maps. Two classes with the same
// path are a mistake (behaviour: one-class-for-a-path). At the start module-tree.ts reads the modules, class-routes.ts
// makes the routes of their classes, and route-guards.ts determines who can call them; for a request nodes.ts finds the
// entry of its path.
import { corsProblem } from '../cors.ts';
import { StartError } from '../errors.ts';
import { type Folder, isFolder, toArounds } from '../folder.ts';
import { areGuards } from '../guard.ts';
import { addClass, type ClassOptions } from './class-routes.ts';
import { classNameOf } from './controller-class.ts';
import { isNearlyFolder, type Report } from './misspelt.ts';
import { fileOf, type ModuleTree, withFile } from './module-tree.ts';
import { isParameter, toPathName } from './names.ts';
import type { ModuleNode } from './nodes.ts';
import { authenticates } from './route-guards.ts';
import { listRoutes } from './route-list.ts';

export interface TableOptions extends ClassOptions {
  /** If true, a method without a guard keeps the app from starting. */
  readonly requireGuards: boolean;
  /** Called for a class that no path reaches, and for a class whose guard was forgotten. */
  readonly warn: (text: string) => void;
}

type ReportOf = (file: string | undefined) => Report;

/** Throws a StartError with all mistakes. */
export function buildTable(trees: readonly ModuleTree[], options: TableOptions): ModuleNode {
  const problems: string[] = [];
  const reportOf: ReportOf = (file) => ({
    mistake: (text) => problems.push(withFile(text, file)),
    warning: (text) => options.warn(withFile(text, file)),
  });
  const root = createModuleNode([]);
  for (const tree of trees) {
    const modules = buildModules(tree, options, reportOf);
    findClashes(modules, '', reportOf);
    merge(root, modules);
  }
  surroundModules(root, options);
  findForgottenGuards(root, options.requireGuards, reportOf);
  if (problems.length > 0) throw new StartError(problems);
  if (listRoutes(root).length === 0) reportNone(trees, options.warn);
  return root;
}

function buildModules(tree: ModuleTree, options: TableOptions, reportOf: ReportOf): ModuleNode {
  const names = new Map<string, string>();
  const folders = findFolders(tree, reportOf);
  const root = createModuleNode(foldersOf([], folders));
  for (const [name, exports] of [...tree].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const parts = name === '' ? [] : name.split('.');
    if (parts.some((part) => part.startsWith('_'))) continue;
    const file = fileOf(tree, name);
    const report = reportOf(file);
    const path = parts.map((part) => (isParameter(part) ? part : toPathName(part)));
    const other = names.get(path.join('/'));
    if (other !== undefined) {
      const text = `the modules ${other} and ${name} have one path`;
      report.mistake(withFile(text, fileOf(tree, other)));
    }
    names.set(path.join('/'), name);
    let node = root;
    for (const [at, part] of path.entries()) {
      const make = () => createModuleNode(foldersOf(parts.slice(0, at + 1), folders));
      if (!isParameter(part)) {
        const next = node.modules.get(part) ?? make();
        node.modules.set(part, next);
        node = next;
        continue;
      }
      node.parameter ??= { name: part, node: make() };
      const other = node.parameter.name;
      if (other !== part) {
        report.mistake(`${name}: the folders ${part} and ${other} are one place`);
      }
      node = node.parameter.node;
    }
    if (isParameter(parts.at(-1) ?? '') && 'Default' in exports) {
      report.mistake(
        `${name}:Default: the path of a part alone belongs to the module above it, as a position`,
      );
    }
    const holding = foldersOf(parts, folders);
    const building = { module: name, file, folders: holding, within: [], options, report };
    for (const [exported, value] of Object.entries(exports)) {
      addClass(node, classNameOf(exported, value), value, building);
    }
  }
  return root;
}

function reportNone(trees: readonly ModuleTree[], warn: TableOptions['warn']): void {
  const found = trees.flatMap((tree) =>
    [...tree].map(([name, exports]) => {
      const names = Object.keys(exports).join(', ') || 'nothing';
      return `${fileOf(tree, name) ?? (name || 'the root module')} exports ${names}`;
    }),
  );
  const named = found.join('; ') || 'there is no module';
  warn(`nothing is served, no export is a controller with a method such as GET: ${named}`);
}

/** The arounds for paths of modules that match none of their classes. */
function surroundModules(node: ModuleNode, options: ClassOptions): void {
  const cors = node.folders.findLast((folder) => folder.cors)?.cors ?? options.cors;
  node.arounds = toArounds(options.around, node.folders, cors);
  for (const module of node.modules.values()) surroundModules(module, options);
  if (node.parameter !== undefined) surroundModules(node.parameter.node, options);
}

/** The folders by the module path of their own folder. */
function findFolders(tree: ModuleTree, reportOf: ReportOf): ReadonlyMap<string, Folder> {
  const folders = new Map<string, Folder>();
  for (const [name, exports] of tree) {
    const parts = name.split('.');
    const last = parts.pop() ?? '';
    const { mistake } = reportOf(fileOf(tree, name));
    if (last !== '_folder') {
      if (isNearlyFolder(last)) mistake(`${name} is not read; did you mean _folder?`);
      continue;
    }
    const [folder, ...others] = Object.values(exports).filter(isFolder);
    if (folder === undefined || others.length > 0) {
      mistake(`${name} must export one folder, made by defineFolder()`);
      continue;
    }
    const wrong = areGuards(folder.guard)
      ? corsProblem(folder.cors)
      : 'its guard is not made by bearer(), basic() or the like';
    if (wrong !== undefined) mistake(`${name}: ${wrong}`);
    else folders.set(parts.join('.'), folder);
  }
  return folders;
}

/** The folders that apply to a module, outermost first. */
function foldersOf(
  parts: readonly string[],
  folders: ReadonlyMap<string, Folder>,
): readonly Folder[] {
  const paths = ['', ...parts.map((_, at) => parts.slice(0, at + 1).join('.'))];
  return paths.flatMap((path) => folders.get(path) ?? []);
}

/** If there is no guard at all, none was forgotten, unless guards are required. */
function findForgottenGuards(root: ModuleNode, areRequired: boolean, reportOf: ReportOf): void {
  const routes = listRoutes(root).map(({ route }) => route);
  if (!areRequired && !routes.some(({ guards }) => guards.some(authenticates))) return;
  const forgotten = Map.groupBy(
    routes.filter(({ isForgotten }) => isForgotten),
    ({ owner }) => owner,
  );
  for (const [{ name, file }, methods] of forgotten) {
    const names = methods.map((method) => method.name.slice(name.length + 1)).join(', ');
    const text = `${name} has no guard for ${names}; give it one, or open() where every caller may call`;
    const { mistake, warning } = reportOf(file);
    if (areRequired) mistake(text);
    else warning(text);
  }
}

function createModuleNode(folders: readonly Folder[]): ModuleNode {
  const children = { modules: new Map(), classes: new Map() };
  return { folders, arounds: [], ...children, fallback: undefined, parameter: undefined };
}

/** Classes and modules of the later tree replace those of the earlier one with the same path. Two modules are
 * merged. */
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
  into.folders = [...new Set([...into.folders, ...from.folders])];
  if (into.parameter === undefined) into.parameter = from.parameter;
  else if (from.parameter !== undefined) merge(into.parameter.node, from.parameter.node);
}

/** A module takes precedence over a class, in the order in which the path is read; two classes with the same path are a
 * mistake. */
function findClashes(node: ModuleNode, path: string, reportOf: ReportOf): void {
  const below = [...(node.fallback?.children ?? [])];
  for (const [part, { name, file }] of [...node.classes, ...below]) {
    if (!node.modules.has(part)) continue;
    const text = `the module at ${path}/${part} hides the class ${name}, which has the same path`;
    reportOf(file).warning(text);
  }
  for (const [part, { name, file }] of below) {
    const other = node.classes.get(part)?.name;
    if (other === undefined) continue;
    reportOf(file).mistake(`${name} and ${other} have one path: ${path}/${part}`);
  }
  for (const [part, module] of node.modules) findClashes(module, `${path}/${part}`, reportOf);
  const { parameter } = node;
  if (parameter !== undefined) findClashes(parameter.node, `${path}/${parameter.name}`, reportOf);
}
