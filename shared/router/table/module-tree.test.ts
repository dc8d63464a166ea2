import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import test from 'ava';
import { StartError } from '../errors.ts';
import { readModuleTree } from './module-tree.ts';

async function createFolder(files: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'controllers-'));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
  return folder;
}

async function withFolder(
  files: Record<string, string>,
  use: (folder: string) => Promise<void>,
): Promise<void> {
  const folder = await createFolder(files);
  try {
    await use(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

test('files and folders are modules; private ones, tests and declarations are not', async (t) => {
  const source = 'export const a = 1;';
  const files = {
    'index.ts': source,
    'limits/index.mjs': source,
    'limits/zones.ts': 'export const b: number = 2;',
    'a/b/c.js': source,
    '_hidden.ts': source,
    '_hidden/x.ts': source,
    '.dot/x.ts': source,
    'limits.test.ts': source,
    'limits.spec.ts': source,
    'types.d.ts': source,
    'notes.md': 'text',
  };
  await withFolder(files, async (folder) => {
    const tree = await readModuleTree(folder);
    t.deepEqual([...tree.keys()].sort(), ['', 'a.b.c', 'limits', 'limits.zones']);
    t.is(tree.get('limits.zones')?.['b'], 2);
  });
});

test('two files for one module, unusable names and broken modules are named together', async (t) => {
  const files = { 'limits.ts': '', 'limits/index.ts': '', 'a b.ts': '', 'a.b.ts': '' };
  await withFolder(files, async (folder) => {
    const error = await t.throwsAsync(readModuleTree(folder), { instanceOf: StartError });
    t.regex(error?.message ?? '', /limits\/index.ts and .*limits.ts are one module|limits.ts and/);
    t.regex(error?.message ?? '', /a b.ts cannot be a module/);
    t.regex(error?.message ?? '', /a.b.ts cannot be a module/);
  });
  await withFolder({ 'bad.ts': "throw new Error('no key');" }, async (folder) => {
    await t.throwsAsync(readModuleTree(folder), {
      message: /cannot import .*bad.ts: Error: no key\n.*bad.ts:1:7\)$/,
    });
  });
  const nearly = { '_folders.ts': '', '_forms.ts': '', '_folder.md': '' };
  await withFolder(nearly, async (folder) => {
    const { message } = (await t.throwsAsync(readModuleTree(folder))) as Error;
    t.is(message, `${join(folder, '_folders.ts')} is not read; did you mean _folder?`);
  });
});

test('a module that does not parse is named with the line', async (t) => {
  const files = { 'bad.ts': 'export const a = 1;\nexport const b: = 2;\n', 'odd.mjs': 'a b' };
  await withFolder(files, async (folder) => {
    const { message } = (await t.throwsAsync(readModuleTree(folder))) as Error;
    t.regex(message, /cannot import .*bad.ts: .*bad.ts:2\n(?:.*\n)?export const b: = 2;\n +\^/);
    t.regex(message, /cannot import .*odd.mjs: SyntaxError: Unexpected identifier 'b'$/);
  });
});

test('links are followed inside the folder only, and round trips end', async (t) => {
  const outside = await createFolder({ 'secret.ts': '' });
  await withFolder({ 'in/a.ts': '' }, async (folder) => {
    await symlink(join(outside, 'secret.ts'), join(folder, 'leaked.ts'));
    await symlink(outside, join(folder, 'out'));
    await symlink(join(folder, 'gone'), join(folder, 'broken'));
    await symlink(join(folder, 'in'), join(folder, 'linked'));
    await symlink(join(folder, 'in'), join(folder, 'in', 'again'));
    const tree = await readModuleTree(folder);
    t.deepEqual([...tree.keys()].sort(), ['in.a', 'linked.a']);
  });
  await rm(outside, { recursive: true });
});

test('a prefix that is not a folder is named, and a dotted prefix is a folder below this one', async (t) => {
  await t.throwsAsync(readModuleTree('./no-such'), {
    message: /no folder of controllers at .\/no-such/,
  });
  t.true((await readModuleTree('shared.router.sample')).has('widgets'));
});
