// `npm run build`: builds the programs for the package, the image and the tests: a bundle of each program, split so
// that parts that are loaded late are separate files, together with the files that the programs read.
import {
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { type BuildOptions, build } from 'esbuild';
import { toLineMap } from './line-map.ts';

const root = join(import.meta.dirname, '..', '..');

/** Packages that become part of the bundle, with their licences: this one is half of a control plane's modules. All
 * others remain packages: audits find them, and their defects are fixed without a release of ours. */
export const bundledPackages: readonly string[] = ['typebox'];

const programs = [
  'worker/main.ts',
  'worker/client.ts',
  'control-plane/main.ts',
  // Started by the programs above, through shared/own-files.ts.
  'worker/processes/main.ts',
  'worker/rules-source/parsing-thread-main.ts',
  'control-plane/server/work-thread-main.ts',
];
/** Read as a folder; each file is loaded when its path is requested. */
const controllers = 'control-plane/server/admin/controllers/**/*.ts';
const page = 'control-plane/server/console/page';
const schemas = [
  'shared/rules/rules.schema.json',
  'control-plane/authoring/policy/policy.schema.json',
  'control-plane/server/snapshot/node-groups.schema.json',
  'control-plane/authoring/rehearsal/rule-tests/rule-tests.schema.json',
];

/** Returns the folder's path. Unchanged files in it are not touched, so that programs started from it continue; files
 * that do not belong there are removed. */
export async function buildPrograms(folder: string): Promise<string> {
  const target = resolve(folder);
  const files = new Map<string, string | Uint8Array>();
  const entries = [...programs, ...find(controllers).filter((path) => !isTest(path))];
  const options = { outdir: target, platform: 'node', target: 'node24', splitting: true } as const;
  const maps = { sourcemap: 'linked', sourcesContent: false } as const;
  await addBundle(files, entries, {
    ...options,
    ...maps,
    external: externalPackages(),
    // The location that shared/own-files.ts expects for itself.
    chunkNames: 'shared/[name]-[hash]',
    // Required licences are separate files.
    legalComments: 'none',
  });
  await addBundle(files, [`${page}/main.ts`], {
    outdir: target,
    platform: 'browser',
    target: 'es2024',
    packages: 'external',
    minify: true,
  });
  const copied = find(`${page}/*.{html,css,svg}`).concat(find('proto/**/*.{proto,json}'));
  for (const path of copied) files.set(path, readFileSync(join(root, path)));
  for (const path of schemas) {
    files.set(join('schemas', basename(path)), readFileSync(join(root, path)));
  }
  for (const name of bundledPackages) {
    files.set(join('licenses', `${name}.txt`), readLicense(name));
  }
  const { version, type } = readManifest(root);
  files.set('package.json', JSON.stringify({ version, type }));
  write(target, files);
  return target;
}

async function addBundle(
  files: Map<string, string | Uint8Array>,
  entryPoints: readonly string[],
  options: BuildOptions & { readonly outdir: string },
): Promise<void> {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [...entryPoints],
    outbase: root,
    bundle: true,
    format: 'esm',
    write: false,
    logLevel: 'warning',
    ...options,
  });
  for (const { path, text } of outputFiles ?? []) {
    const isMap = path.endsWith('.map');
    const name = relative(options.outdir, path);
    files.set(name, isMap ? JSON.stringify(toLineMap(JSON.parse(text))) : text);
  }
}

function externalPackages(): string[] {
  const { dependencies, optionalDependencies } = readManifest(root);
  const all = Object.keys({ ...dependencies, ...optionalDependencies });
  return all.filter((name) => !bundledPackages.includes(name));
}

function readLicense(name: string): Uint8Array {
  const folder = join(root, 'node_modules', name);
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  if (file === undefined) throw new Error(`${name} has no licence file to include`);
  return readFileSync(join(folder, file));
}

function readManifest(folder: string) {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    readonly version: string;
    readonly type: string;
    readonly dependencies: Readonly<Record<string, string>>;
    readonly optionalDependencies: Readonly<Record<string, string>>;
  };
}

function find(pattern: string): string[] {
  return globSync(pattern, { cwd: root }).sort();
}

function isTest(path: string): boolean {
  return path.endsWith('.test.ts');
}

function write(target: string, files: ReadonlyMap<string, string | Uint8Array>): void {
  for (const [name, content] of files) {
    const path = join(target, name);
    const bytes = Buffer.from(content);
    if (isFile(path) && readFileSync(path).equals(bytes)) continue;
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, bytes);
  }
  for (const name of readdirSync(target, { recursive: true, encoding: 'utf8' })) {
    if (isFile(join(target, name)) && !files.has(name)) rmSync(join(target, name));
  }
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

if (import.meta.main) await buildPrograms(join(root, 'dist'));
