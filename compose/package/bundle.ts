// `npm run build`: makes of the sources what the package and the image have, and what tests start: a bundle of each
// program, split so that parts that are loaded late are files of their own, with the files that the programs read.
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

/** Packages that become part of the bundle, with their licences: this one is half of the modules of a control plane. All
 * others stay packages, which audits find and whose defects are mended without a release of ours. */
export const bundledPackages: readonly string[] = ['typebox'];

const programs = [
  'worker/main.ts',
  'worker/client.ts',
  'control-plane/main.ts',
  // What these start, by shared/own-files.ts.
  'worker/processes/main.ts',
  'worker/rules-source/parsing-thread-main.ts',
  'control-plane/server/work-thread-main.ts',
];
/** Read as a folder, each when its path is asked for. */
const controllers = 'control-plane/server/admin/controllers/**/*.ts';
const page = 'control-plane/server/console/page';
const schemas = [
  'shared/rules/rules.schema.json',
  'control-plane/authoring/policy/policy.schema.json',
  'control-plane/server/snapshot/node-groups.schema.json',
  'control-plane/authoring/rehearsal/rule-tests/rule-tests.schema.json',
];

/**
 * Gives the folder's path. What is in it already and is the same is not touched, so that programs that were started from it
 * continue; what does not belong there is removed.
 */
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
    // Where shared/own-files.ts expects to be.
    chunkNames: 'shared/[name]-[hash]',
    // Those that have to be there are files of their own.
    legalComments: 'none',
  });
  await addBundle(files, [`${page}/main.ts`], {
    outdir: target,
    platform: 'browser',
    target: 'es2024',
    packages: 'external',
    minify: true,
  });
  const copied = find(`${page}/*.{html,css,svg}`).concat(find('proto/**/*.proto'));
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
  if (file === undefined) throw new Error(`${name} has no licence that could come along`);
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
