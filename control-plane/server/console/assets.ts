// The files of the console in the form that browsers receive: read, stripped of types if they have any, and compressed,
// once. There is no build step: browsers run the files of page/ and of the packages.
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, gzip } from 'node:zlib';
import { ownPath } from '../../../shared/own-files.ts';

export interface Asset {
  readonly mediaType: string;
  /** An entity tag, with its quotes. */
  readonly tag: string;
  readonly bodies: Readonly<Record<'identity' | 'gzip' | 'br', Buffer>>;
}

export interface ConsoleAssets {
  /** The files by path below the console; '' is the page itself. */
  readonly files: ReadonlyMap<string, Asset>;
  /** The Content-Security-Policy of the page. */
  readonly policy: string;
}

const compressors = { br: promisify(brotliCompress), gzip: promisify(gzip) };
const pageFolder = ownPath('control-plane/server/console/page');

/** The modules that the page imports by name: the file of a package, and its name below vendor/. */
const modules: Readonly<Record<string, readonly [specifier: string, name: string]>> = {
  preact: ['preact', 'preact.js'],
  'preact/hooks': ['preact/hooks', 'preact-hooks.js'],
  htm: ['htm', 'htm.js'],
  'htm/preact': ['htm/preact', 'htm-preact.js'],
  uplot: ['uplot/dist/uPlot.esm.js', 'uplot.js'],
};
const vendorStyle = ['uplot/dist/uPlot.min.css', 'uplot.css'] as const;

const mediaTypes: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
  ts: 'text/javascript; charset=utf-8',
};

/** Rejects if the package is incomplete. */
export async function readConsoleAssets(): Promise<ConsoleAssets> {
  const texts = new Map<string, string>();
  for (const name of await readdir(pageFolder)) {
    if (mediaTypeOf(name) === undefined || name.endsWith('.test.ts')) continue;
    const text = await readFile(join(pageFolder, name), 'utf8');
    texts.set(`page/${name}`, name.endsWith('.ts') ? stripTypes(text) : text);
  }
  for (const [specifier, name] of [...Object.values(modules), vendorStyle]) {
    const path = fileURLToPath(import.meta.resolve(specifier));
    texts.set(`vendor/${name}`, withoutSourceMap(await readFile(path, 'utf8')));
  }
  const imports = Object.entries(modules).map(([name, [, file]]) => [name, `./vendor/${file}`]);
  const importMap = JSON.stringify({ imports: Object.fromEntries(imports) });
  // A built package contains no types.
  const main = texts.has('page/main.ts') ? 'page/main.ts' : 'page/main.js';
  const page = texts.get('page/index.html') ?? '';
  texts.delete('page/index.html');
  texts.set('', page.replace('{}', importMap).replace('MAIN', main));
  const files = new Map<string, Asset>();
  for (const [path, text] of texts) files.set(path, await toAsset(path, text));
  return { files, policy: toPolicy(importMap) };
}

/** Everything is loaded from this server, and nothing is sent elsewhere; the import map is the only inline script. */
function toPolicy(importMap: string): string {
  const hash = createHash('sha256').update(importMap).digest('base64');
  return [
    "default-src 'none'",
    `script-src 'self' 'sha256-${hash}'`,
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/** Strips types as Node.js does for its own modules; that warns at most once per process that it may change. */
function stripTypes(text: string): string {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return stripTypeScriptTypes(text);
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** Source maps are not served. */
function withoutSourceMap(text: string): string {
  return text.replace(/^\/\/# sourceMappingURL=.*$/m, '');
}

async function toAsset(path: string, text: string): Promise<Asset> {
  const identity = Buffer.from(text);
  const [br, gzipped] = await Promise.all([compressors.br(identity), compressors.gzip(identity)]);
  const hash = createHash('sha256').update(identity).digest('base64url').slice(0, 22);
  return {
    mediaType: mediaTypeOf(path === '' ? 'index.html' : path) ?? 'application/octet-stream',
    tag: `"${hash}"`,
    bodies: { identity, gzip: gzipped, br },
  };
}

function mediaTypeOf(path: string): string | undefined {
  return mediaTypes[path.slice(path.lastIndexOf('.') + 1)];
}
