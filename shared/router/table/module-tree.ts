// Where controllers come from: the folders, given by the constructor (or the command line, which calls it), else the
// environment, else `controllers`; a folder is read once, at start, or a tree of modules is passed in (behaviour:
// start-loads-all). Links are followed only inside the folder. table.ts
// interprets the exports.
import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, extname, join, relative, resolve, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { toErrorText } from '../answer/error-report.ts';
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
/** A folder whose name represents a part of the path: `[id]`. */
const parameterName = /^\[[A-Za-z][A-Za-z0-9_]*\]$/;
const folderFile = /^_folder\.m?[tj]s$/;
const maxDepth = 31;

/** Imports every module below a folder: `limits.ts` is the module `limits`, `limits/index.ts` the same,
 * `limits/zones.ts` is `limits.zones`. Names that begin with `_` (except `_folder`) or a dot, declarations and tests
 * are excluded. The prefix is a path, or a dotted module path below the working directory. Throws a StartError with
 * every module that cannot be imported. */
export async function readModuleTree(prefix: string): Promise<ModuleTree> {
  const { files, problems } = await findModules(await findRoot(prefix));
  const tree = new ModuleFiles(files);
  for (const [name, file] of files) {
    try {
      tree.set(name, (await import(pathToFileURL(file).href)) as Record<string, unknown>);
    } catch (error) {
      const reason = toErrorText(error).replace(/\n {4}at .*node:.*/g, '');
      problems.push(`cannot import ${file}: ${reason}`);
    }
  }
  if (problems.length > 0) throw new StartError(problems);
  return tree;
}

/** The file that a module was read from; undefined for one of a tree that was passed in. */
export function fileOf(tree: ModuleTree, module: string): string | undefined {
  return tree instanceof ModuleFiles ? tree.files.get(module) : undefined;
}

/** A problem, prefixed with its file, relative to the working directory, if it is known. */
export function withFile(problem: string, file: string | undefined): string {
  return file === undefined ? problem : `${relative('', file)}: ${problem}`;
}

/** The folder of a prefix. Rejects with a StartError if there is none. */
export async function findRoot(prefix: string): Promise<string> {
  const dotted = /^[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)+$/.test(prefix);
  const candidates = [prefix, ...(dotted ? [prefix.replaceAll('.', sep)] : [])];
  for (const candidate of candidates) {
    const found = await realpath(resolve(candidate)).catch(() => undefined);
    if (found !== undefined && (await stat(found)).isDirectory()) return found;
  }
  throw new StartError([`there is no folder of controllers at ${prefix}; name another prefix`]);
}

/** The files by module path. */
async function findModules(root: string) {
  const files = new Map<string, string>();
  const problems: string[] = [];

  /** `seen`: the parent folders, so that a link to one of them ends the search. */
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

/** Undefined for a file that is not a module. */
function toModuleName(file: string): string | undefined {
  const extension = extname(file);
  const name = basename(file, extension);
  if (!extensions.has(extension) || /\.(?:d|test|spec)$/.test(name)) return undefined;
  return name;
}

type Environment = Readonly<Record<string, string | undefined>>;

const numbered = /^ENDPOINTS_PREFIX_(\d+)$/;

/** Several prefixes are merged, and the later one takes precedence; a source replaces those of lower precedence. */
export function choosePrefixes(
  given: string | readonly string[] | undefined,
  env: Environment,
): readonly string[] {
  // An empty prefix is ignored, as in the environment: as a path it would be the working directory.
  const named = [given ?? []].flat().filter((prefix) => prefix !== '');
  if (named.length > 0) return named;
  const fromEnvironment = readEnvironment(env);
  return fromEnvironment.length > 0 ? fromEnvironment : ['controllers'];
}

/** On Windows a colon after a single letter belongs to a drive. */
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
