// Plants mistakes and checks that lint finds them: rules that infer types, or that are new in the linter, might
// silently stop working. The last tests are for rules that the linter does not have.
import { spawnSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { storeKindNames, storeKinds } from '../../worker/counters/store-kinds.ts';
import type { Owner } from '../support/owner.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { countFloors, findFileCircles, findFolderCircles } from './folder-circles.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

function lint(t: Owner, files: Readonly<Record<string, string>>): string {
  const folder = createTemporaryFolder(t);
  cpSync(join(root, 'biome.json'), join(folder, 'biome.json'));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const biome = join(root, 'node_modules', '.bin', 'biome');
  const { stdout, stderr } = spawnSync(biome, ['lint', '--vcs-enabled=false', '--colors=off'], {
    cwd: folder,
    encoding: 'utf8',
    timeout: 30_000,
  });
  return stdout + stderr;
}

const work = 'export async function work(): Promise<void> {}\n';

test('a promise that is never awaited is found, also when it comes from another file', (t) => {
  const output = lint(t, {
    'worker/work.ts': work,
    'worker/planted.ts':
      "import { work } from './work.ts';\nexport function start(): void {\n  work();\n}\n",
  });
  t.regex(output, /planted\.ts:3:3 lint\/nursery\/noFloatingPromises/);
});

test('an awaited promise is not reported', (t) => {
  const output = lint(t, {
    'worker/work.ts': work,
    'worker/right.ts':
      "import { work } from './work.ts';\nexport async function start(): Promise<void> {\n  await work();\n}\n",
  });
  t.false(output.includes('lint/'), output);
});

test('a promise in place of a plain value is found', (t) => {
  const output = lint(t, {
    'worker/planted.ts':
      'async function isReady(): Promise<boolean> {\n  return true;\n}\nexport function start(): number {\n  if (isReady()) {\n    return 1;\n  }\n  return 0;\n}\n',
  });
  t.regex(output, /planted\.ts:5:\d+ lint\/nursery\/noMisusedPromises/);
});

test('imports follow the layers, and the programs do not import each other', (t) => {
  const output = lint(t, {
    'worker/a.ts': "import '../control-plane/b.ts';\n",
    'control-plane/b.ts': "import '../worker/a.ts';\n",
    'shared/c.ts': "import '../worker/a.ts';\n",
    'control-plane/authoring/d.ts': "import '../server/e.ts';\n",
    'control-plane/server/f.ts': "import '../../worker/a.ts';\n",
  });
  const files = [
    'worker/a.ts',
    'control-plane/b.ts',
    'shared/c.ts',
    'control-plane/authoring/d.ts',
    'control-plane/server/f.ts',
  ];
  for (const file of files) {
    t.true(output.includes(`${file}:1:8 lint/style/noRestrictedImports`), `${file}: ${output}`);
  }
});

test('folders that import each other in a circle are found, also by type imports', (t) => {
  const files = {
    'main.ts': "import './a/a.ts';\n",
    'a/a.ts': "import { b } from '../b/b.ts';\n",
    'b/b.ts': "import type {\n  C,\n} from '../c/deep/c.ts';\nexport const b = 1;\n",
    'c/deep/c.ts': "export type C = import('../../a/a.ts').A;\nimport '../../d/d.ts';\n",
    'd/d.ts': "import './e.ts';\nimport '../../shared/f.ts';\n",
  };
  t.deepEqual(findFolderCircles(new Map(Object.entries(files))), [
    'a/a.ts imports b/b.ts',
    'b/b.ts imports c/deep/c.ts',
    'c/deep/c.ts imports a/a.ts',
  ]);
});

test('files that import each other in a circle are found, by types and by late imports', (t) => {
  const files = {
    'a/main.ts': "import './a.ts';\n",
    'a/a.ts': "import type { B } from './b.ts';\nimport { c } from '../b/c.ts';\n",
    'a/b.ts': "export const load = () => import('./a.ts');\n",
    'b/c.ts': "import { d } from './d.ts';\nexport const c = d;\n",
    'b/d.ts': 'export const d = 1;\n',
  };
  t.deepEqual(findFileCircles(new Map(Object.entries(files))), [
    'a/a.ts imports a/b.ts',
    'a/b.ts imports a/a.ts',
  ]);
});

/** The texts of modules by their paths below the folder, without tests. */
function readSources(folder: string, pattern: string): ReadonlyMap<string, string> {
  const files = globSync(pattern, { cwd: folder }).filter((file) => !file.endsWith('.test.ts'));
  return new Map(files.map((file) => [file, readFileSync(join(folder, file), 'utf8')]));
}

for (const [folder, known] of [
  ['control-plane', 'main.ts'],
  ['control-plane/authoring', 'rule-change.ts'],
  ['control-plane/server', 'server.ts'],
  ['shared', 'rules-file.ts'],
  ['shared/router', 'app.ts'],
  ['worker', 'serving.ts'],
] as const) {
  test(`no folders of ${folder} import each other in a circle`, (t) => {
    const texts = readSources(join(root, folder), '**/*.ts');
    t.true(texts.has(known));
    t.deepEqual(findFolderCircles(texts), []);
  });
}

test('layers are counted along the longest chain of imports', (t) => {
  const files = {
    'main.ts': "import './a/a.ts';\n",
    'a/a.ts': "import '../b/b.ts';\nimport '../c/c.ts';\n",
    'b/b.ts': "import type { C } from '../c/c.ts';\n",
    'c/c.ts': '',
  };
  t.is(countFloors(new Map(Object.entries(files))), 4);
});

test('the folders of control-plane/server are on six layers, with server.ts above them', (t) => {
  t.is(countFloors(readSources(join(root, 'control-plane/server'), '**/*.ts')), 7);
});

test('each room has a line in the layout', (t) => {
  const [, layout = ''] = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8').split('## Layout');
  const marks = ['\nshared/', '\nworker/', '\n  authoring/', '\n  server/', '\ntest/'];
  const parents = ['shared', 'worker', 'control-plane/authoring', 'control-plane/server'];
  for (const [index, parent] of parents.entries()) {
    const [from, to] = [marks[index], marks[index + 1]].map((mark = '') => layout.indexOf(mark));
    const lines = layout.slice(from, to);
    for (const room of globSync('*/', { cwd: join(root, parent), exclude: ['docs'] })) {
      t.regex(lines, new RegExp(`\\s${basename(room)}/`), `${parent}/${room}`);
    }
  }
});

test('no files import each other in a circle', (t) => {
  const texts = readSources(root, '{worker,control-plane,shared}/**/*.ts');
  t.true(texts.has('worker/serving.ts'));
  t.deepEqual(findFileCircles(texts), []);
});

/** Lines that compare something with the name of a kind of counter stores, or with a value of BACKEND_TYPE for it. */
function findKindComparisons(files: ReadonlyMap<string, string>): string[] {
  const names = [...Object.keys(storeKinds), ...Object.keys(storeKindNames)].join('|');
  const compared = new RegExp(`(?:[!=]==?\\s*|\\bcase\\s+)['"](?:${names})['"]`);
  const reversed = new RegExp(`['"](?:${names})['"]\\s*[!=]==?`);
  return [...files].flatMap(([file, text]) =>
    text
      .split('\n')
      .flatMap((line, index) =>
        compared.test(line) || reversed.test(line) ? [`${file}:${index + 1}`] : [],
      ),
  );
}

test('a comparison with the name of a counter store is found', (t) => {
  const files = {
    'a.ts': "if (backend === 'redis') work();\n",
    'b.ts': "work();\nif ('memcache' !== options.backend) work();\n",
    'c.ts': "switch (kind) {\n  case 'memory':\n}\n",
    'd.ts': "const backend = 'redis';\n",
  };
  const found = findKindComparisons(new Map(Object.entries(files)));
  t.deepEqual(found, ['a.ts:1', 'b.ts:2', 'c.ts:2']);
});

test('no file compares the name of a counter store: it asks store-kinds.ts', (t) => {
  const texts = readSources(root, '{worker,control-plane,shared}/**/*.ts');
  t.true(texts.has('worker/serving.ts'));
  t.deepEqual(findKindComparisons(texts), []);
});
