// Where controllers come from: which folders, by the constructor (or the command line, which calls it), else the
// environment, else `controllers`; a folder read once, at start, or a tree that is there already (behaviour:
// start-loads-all); and where in it a mistake is. Links are followed inside the folder only. table.ts interprets the
// exports.
import { readFileSync } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, extname, join, relative, resolve, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { StartError } from '../errors.ts';
import { isNearlyFolder } from './misspelt.ts';

/** Module path (dots between parts, empty for the root module) to the module's exports. */
export type ModuleTree = ReadonlyMap<string, Readonly<Record<string, unknown>>>;

/** Modules that were read from files. */
export class ModuleFiles extends Map<string, Readonly<Record<string, unknown>>> {
  /** By the module's path. */
  readonly files: ReadonlyMap<string, string>;

  constructor(files: ReadonlyMap<string, string>) {
    super();
    this.files = files;
  }
}

const extensions: ReadonlySet<string> = new Set(['.ts', '.mts', '.js', '.mjs']);
const moduleName = /^[A-Za-z][A-Za-z0-9_-]*$/;
/** A folder whose name stands for a part of the path: `[id]`. */
const parameterName = /^\[[A-Za-z][A-Za-z0-9_]*\]$/;
const folderFile = /^_folder\.m?[tj]s$/;
const maxDepth = 31;

/**
 * Imports every module below a folder: `limits.ts` is the module `limits`, `limits/index.ts` the
 * same, `limits/zones.ts` is `limits.zones`. Names that begin with `_` (but `_folder`) or a dot, declarations
 * and tests are left out. The prefix is a path, or a dotted module path below the working directory.
 * Throws a StartError with every module that cannot be imported.
 */
export async function readModuleTree(prefix: string): Promise<ModuleTree> {
  const { files, problems } = await findModules(await findRoot(prefix));
  const tree = new ModuleFiles(files);
  for (const [name, file] of files) {
    try {
      tree.set(name, (await import(pathToFileURL(file).href)) as Record<string, unknown>);
    } catch (error) {
      if (isWithoutTypeScript(error)) throw new StartError([withoutTypeScript(file)]);
      problems.push(`cannot import ${file}${toPlace(error, file)}: ${toReason(error)}`);
    }
  }
  if (problems.length > 0) throw new StartError(problems);
  return tree;
}

/** The file that a module was read from; undefined for one of a tree that was there already. */
export function fileOf(tree: ModuleTree, module: string): string | undefined {
  return tree instanceof ModuleFiles ? tree.files.get(module) : undefined;
}

/**
 * A problem, behind its file from the working directory and the line of the method or class that it names: the first
 * `<module>:<Class>.<method>` in it. As it is where the file is not known.
 */
export function withPlace(problem: string, file: string | undefined): string {
  if (file === undefined) return problem;
  const [, names] = /:([A-Za-z_]\w*(?:\.\w+)*)/.exec(problem) ?? [];
  const line = findLine(readFileSync(file, 'utf8').split('\n'), names?.split('.') ?? []);
  return `${relative('', file)}${line === undefined ? '' : `:${line}`}: ${problem}`;
}

/** Of the last name that the source has as it is written for a class or a member, each behind the one before. */
function findLine(lines: readonly string[], names: readonly string[]): number | undefined {
  let found: number | undefined;
  for (const name of names) {
    const isNamed = new RegExp(
      `\\b(?:class|static|readonly|async)\\s+\\*?${name}\\b|^\\s*\\*?${name}\\s*\\(`,
    );
    const at = lines.findIndex((line, index) => index >= (found ?? 0) && isNamed.test(line));
    if (at >= 0) found = at + 1;
  }
  return found;
}

function isWithoutTypeScript(error: unknown): boolean {
  return error instanceof Error && /^Unknown file extension "\.m?ts"/.test(error.message);
}

/** Once for all modules: each of them has this reason. */
function withoutTypeScript(file: string): string {
  return `cannot import ${file}: Node.js ${process.version} does not run TypeScript as it is started; take 22.18 or newer, or compile the controllers to JavaScript`;
}

/** The line of the module that has thrown, or has called what did. */
function toPlace(error: unknown, file: string): string {
  const stack = error instanceof Error ? (error.stack ?? '') : '';
  const [, behind = ''] = stack.split(`${pathToFileURL(file).href}:`, 2);
  const line = stack.includes('\n    at ') ? /^\d+(?=:\d+\)?$)/m.exec(behind) : null;
  return line === null ? '' : `:${line[0]}`;
}

/** For syntax errors Node puts the place before the stack: file and line, source, a mark. It has none for
 * imported plain JavaScript. */
function toReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const [place = ''] = (error.stack ?? '').split('\n    at ', 1);
  const isPlaced = error instanceof SyntaxError && /^.+:\d+\n/.test(place);
  return isPlaced ? place : error.message;
}

/** The folder of a prefix. Rejects with a StartError where there is none. */
export async function findRoot(prefix: string): Promise<string> {
  const dotted = /^[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)+$/.test(prefix);
  const candidates = [prefix, ...(dotted ? [prefix.replaceAll('.', sep)] : [])];
  for (const candidate of candidates) {
    const found = await realpath(resolve(candidate)).catch(() => undefined);
    if (found !== undefined && (await stat(found)).isDirectory()) return found;
  }
  throw new StartError([`there is no folder of controllers at ${prefix}; name another prefix`]);
}

/** By the path of the module. */
async function findModules(root: string) {
  const files = new Map<string, string>();
  const problems: string[] = [];

  /** `seen`: folders on the way here, so that a link to one of them ends. */
  async function collect(folder: string, path: readonly string[], seen: readonly string[]) {
    for (const name of (await readdir(folder)).sort()) {
      if (name.startsWith('.')) continue;
      if (name.startsWith('_') && !folderFile.test(name)) {
        const isMeant = isNearlyFolder(toModuleName(name) ?? '');
        if (isMeant) problems.push(`${join(folder, name)} is not read; did you mean _folder?`);
        continue;
      }
      const real = await realpath(join(folder, name)).catch(() => undefined);
      if (real === undefined || !real.startsWith(root + sep)) continue;
      const kind = await stat(real);
      const module = kind.isDirectory() ? name : toModuleName(name);
      if (module === undefined || (!kind.isDirectory() && !kind.isFile())) continue;
      const isNamed =
        moduleName.test(module) ||
        (kind.isFile() ? module === '_folder' : parameterName.test(module));
      if (!isNamed) {
        problems.push(`${join(folder, name)} cannot be a module: its name cannot be a path part`);
      } else if (kind.isFile()) {
        const key = (module === 'index' ? path : [...path, module]).join('.');
        const other = files.get(key);
        if (other === undefined) files.set(key, real);
        else problems.push(`${other} and ${real} are one module; remove or rename one`);
      } else if (!seen.includes(real) && path.length < maxDepth) {
        await collect(real, [...path, module], [...seen, real]);
      }
    }
  }

  await collect(root, [], [root]);
  return { files, problems };
}

/** Undefined for a file that is no module. */
function toModuleName(file: string): string | undefined {
  const extension = extname(file);
  const name = basename(file, extension);
  if (!extensions.has(extension) || /\.(?:d|test|spec)$/.test(name)) return undefined;
  return name;
}

type Environment = Readonly<Record<string, string | undefined>>;

const numbered = /^ENDPOINTS_PREFIX_(\d+)$/;

/** Several prefixes merge, the later one wins; a source replaces those after it. */
export function choosePrefixes(
  given: string | readonly string[] | undefined,
  env: Environment,
): readonly string[] {
  // An empty one is ignored, as in the environment: as a path it would be the working directory.
  const named = [given ?? []].flat().filter((prefix) => prefix !== '');
  if (named.length > 0) return named;
  const fromEnvironment = readEnvironment(env);
  return fromEnvironment.length > 0 ? fromEnvironment : ['controllers'];
}

/** On Windows a colon behind one letter is that of a drive. */
export function splitPaths(text: string, platform: string = process.platform): readonly string[] {
  return text.split(platform === 'win32' ? /(?<!(?:^|[:;])[A-Za-z]):|;/ : ':');
}

/** `ENDPOINTS_PREFIX`, several joined by `:`, then `ENDPOINTS_PREFIX_1`, `_2`, ... by number. */
function readEnvironment(env: Environment): readonly string[] {
  const numbers = Object.keys(env)
    .filter((name) => numbered.test(name))
    .sort((a, b) => Number(numbered.exec(a)?.[1]) - Number(numbered.exec(b)?.[1]));
  return ['ENDPOINTS_PREFIX', ...numbers].flatMap((name) =>
    splitPaths(env[name] ?? '').filter((prefix) => prefix !== ''),
  );
}
