// Tests the result of `npm run build`, and what bundling could break: the files' locations, their order, and files that
// are read at run time.
import { execFile } from 'node:child_process';
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { buildPrograms } from '../../../compose/package/bundle.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const run = promisify(execFile);
let folder = '';

test.before('programs are built where they find the packages', async () => {
  const cache = join(root, 'node_modules', '.cache');
  mkdirSync(cache, { recursive: true });
  folder = await buildPrograms(mkdtempSync(join(cache, 'bundle-test-')));
});
test.after.always(() => rmSync(folder, { recursive: true, force: true }));

test('everything that a program loads by its path is in a build, and no module loads in other ways', (t) => {
  const asked = new Set<string>();
  const others: string[] = [];
  for (const path of globSync('{shared,worker,control-plane}/**/*.ts', { cwd: root })) {
    if (/\.test\.ts$|-fixture\.ts$|^shared\/(?:router|setup)\//.test(path)) continue;
    const text = readFileSync(join(root, path), 'utf8');
    for (const [, name = ''] of text.matchAll(/\bownPath\('([^']+)'\)/g)) asked.add(name);
    if (/\bimport\.meta\b/.test(text)) others.push(path);
  }
  t.true(asked.size >= 6);
  for (const name of asked) t.true(existsSync(join(folder, name.replace(/\.ts$/, '.js'))), name);
  // The first and the last load packages.
  t.deepEqual(others.sort(), [
    'control-plane/server/console/assets.ts',
    'shared/library.ts',
    'shared/own-files.ts',
  ]);
});

test('a stack trace names the files and lines of the sources, like one from the sources', async (t) => {
  const broken = `process.stdout.write = () => { throw new Error('broken'); }`;
  const positionsOf = async (main: string) => {
    const flags = ['--import', `data:text/javascript,${encodeURIComponent(broken)}`];
    const args = [...flags, main, 'check', join(root, 'compose', 'rules')];
    const { stderr } = await t.throwsAsync<Error & { stderr: string }>(run(process.execPath, args));
    t.regex(stderr, /a defect of this program: Error: broken\n/);
    return [...stderr.matchAll(/((?:shared|worker|control-plane)\/[\w/-]+\.ts:\d+)/g)].map(
      ([, position]) => position,
    );
  };
  const built = await positionsOf(join(folder, 'control-plane', 'main.js'));
  t.true(built.length >= 3, built.join());
  t.deepEqual(built, await positionsOf(join(root, 'control-plane', 'main.ts')));
});

for (const entry of ['worker/main.js', 'worker/processes/main.js']) {
  test(`${entry} calls on strings fast although it loads the Redis client`, async (t) => {
    const script = `process.argv.push('worker', '--help');
      await import('${join(folder, entry)}'); await import('ioredis');
      process.on('exit', () => console.log(%HasFastProperties(String.prototype)))`;
    const flags = ['--allow-natives-syntax', '--input-type=module', '--eval', script];
    const { stdout } = await run(process.execPath, flags, { cwd: root });
    t.is(stdout.trim().split('\n').at(-1), 'true');
  });
}

test('a worker loads neither the libraries nor the parts that only some workers need', (t) => {
  const loaded = new Set<string>();
  const packages = new Set<string>();
  const add = (file: string) => {
    if (loaded.has(file)) return;
    loaded.add(file);
    const text = readFileSync(file, 'utf8');
    for (const [, name = ''] of text.matchAll(
      /^(?:import |import|\} from |.* from )"([^"]+)";$/gm,
    )) {
      if (name.startsWith('.')) add(join(dirname(file), name));
      else packages.add(name);
    }
  };
  for (const name of globSync('shared/run-worker-*.js', { cwd: folder })) add(join(folder, name));
  t.true(packages.has('fastify'));
  t.notRegex([...packages].join('\n'), /^(?:ioredis|@grpc|@opentelemetry|typebox)/m);
  t.notRegex([...loaded].join('\n'), /-store-|xds-source|process-group|reflection|otel/);
});

test('building again leaves files unchanged, and removes those that belong to no program', async (t) => {
  const file = join(folder, 'worker', 'main.js');
  const stray = join(folder, 'shared', 'stray.js');
  const { mtimeMs } = statSync(file);
  writeFileSync(stray, '');
  await buildPrograms(folder);
  t.is(statSync(file).mtimeMs, mtimeMs);
  t.false(existsSync(stray));
});
