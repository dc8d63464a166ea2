// `npm run package:router -- [flags of npm pack]`: the router as a package of its own.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { build } from 'esbuild';
import { createManifest } from './manifest.mjs';

const here = import.meta.dirname;
const root = join(here, '..', '..', '..');
const sources = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const folder = mkdtempSync(join(tmpdir(), 'ratelane-router-'));
try {
  const compiler = [join(root, 'node_modules', 'typescript', 'bin', 'tsc'), '-p', here];
  const dist = join(folder, 'dist');
  await bundle(dist);
  // Types are checked by `npm run types`.
  run(process.execPath, [...compiler, '--noCheck', '--outDir', dist, '--emitDeclarationOnly']);
  dropUnusedTypes(join(folder, 'dist', 'shared', 'router'));
  const { version, type } = sources;
  // The command reads its version one folder above.
  const own = join(dist, 'shared', 'router', 'package.json');
  writeFileSync(own, JSON.stringify({ version, type }));
  cpSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
  for (const name of ['README.md', 'docs']) {
    cpSync(join(root, 'shared', 'router', name), join(folder, name), { recursive: true });
  }
  const manifest = JSON.stringify(createManifest(sources), undefined, 2);
  writeFileSync(join(folder, 'package.json'), `${manifest}\n`);
  const npm = process.env.npm_execpath ? [process.execPath, process.env.npm_execpath] : ['npm'];
  run(npm[0], [...npm.slice(1), 'pack', folder, ...process.argv.slice(2)], process.env.INIT_CWD);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Few files, which start faster: the client is one by itself, and what an application may not need is apart. */
async function bundle(outdir) {
  const common = {
    bundle: true,
    format: 'esm',
    packages: 'external',
    target: 'node22',
    // Lines and names stay as they are, for stacks.
    minifySyntax: true,
    outdir,
  };
  const entry = (path) => join(root, 'shared', 'router', path);
  const [library, command, client] = ['index.ts', 'command/main.ts', 'client/client.ts'].map(entry);
  await build({
    ...common,
    entryPoints: [library, command],
    platform: 'node',
    plugins: [{ name: 'client', setup: loadClientApart }],
    splitting: true,
    outbase: root,
    chunkNames: 'shared/[name]-[hash]',
  });
  await build({ ...common, entryPoints: [client], outbase: root, platform: 'neutral' });
}

/** The library loads the client from the file that pages load. */
function loadClientApart({ onResolve }) {
  const path = './client/client.js';
  onResolve({ filter: /^\.\/client\/client\.ts$/ }, () => ({ path, external: true }));
}

/** The declarations of what neither entry exports: no user could name them. */
function dropUnusedTypes(router) {
  const used = new Set();
  const add = (file) => {
    if (used.has(file)) return;
    used.add(file);
    for (const [, path] of readFileSync(file, 'utf8').matchAll(
      /['"](\.{1,2}\/[^'"]+)\.[jt]s['"]/g,
    )) {
      add(join(dirname(file), `${path}.d.ts`));
    }
  };
  for (const entry of ['index', 'client/client']) add(join(router, `${entry}.d.ts`));
  const dist = join(router, '..', '..');
  for (const name of readdirSync(dist, { recursive: true })) {
    const file = join(dist, name);
    if (name.endsWith('.d.ts') && !used.has(file)) rmSync(file);
  }
}

function run(command, args, cwd = root) {
  const { status } = spawnSync(command, args, { stdio: 'inherit', cwd });
  if (status !== 0) throw new Error(`${args[0]} ended with ${status}`);
}
