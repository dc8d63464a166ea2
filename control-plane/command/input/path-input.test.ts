import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { createTemporaryFolder } from '../../../test/support/temporary-folder.ts';
import { readConfigDirectory } from '../check/config-directory.ts';
import { runTestFiles } from '../test/run-test-files.ts';
import { readPathInput } from './path-input.ts';

test('more text than a control plane serves causes only a warning, since workers that read files accept it', async (t) => {
  const folder = createTemporaryFolder(t);
  const text = `#${' '.repeat(4 * 1024 * 1024 - 1)}`;
  const add = (name: string, of: string) => writeFileSync(join(folder, name), of);
  const problemsOf = async () => {
    const read = await readPathInput([folder]);
    t.true(read.ok);
    return read.ok
      ? read.input.problems.map(({ severity, message }) => `${severity}: ${message}`)
      : [];
  };
  for (const name of ['a.yaml', 'b.yaml', 'c.yaml', 'd.yaml']) add(name, text);
  t.deepEqual(await problemsOf(), []);
  add('e.yaml', '#');
  t.deepEqual(await problemsOf(), [
    'warning: 16777217 characters in all, more than the 16777216 that a control plane examines',
  ]);
});

test('a named file, a file of -config_dir and a file of tests must not be links to files elsewhere', async (t) => {
  const [folder, other] = [createTemporaryFolder(t), createTemporaryFolder(t)];
  const [secret, link, tests] = [join(other, 'x'), join(folder, 'a.yaml'), join(folder, 'b.yaml')];
  writeFileSync(secret, 'name read SECRET\n');
  symlinkSync(secret, link);
  writeFileSync(join(folder, 'own'), 'domain: own\n');
  symlinkSync('own', join(folder, 'own.yaml'));
  const requests = '[{domain: d, descriptor: {a: b}}]';
  writeFileSync(tests, `rules: ${secret}\ntests: [{name: x, requests: ${requests}}]`);
  const named = await readPathInput([link, join(folder, 'own.yaml')]);
  const { input } = await readConfigDirectory(folder);
  const tested = await runTestFiles([link, tests], { update: false, coverage: false });
  const all = JSON.stringify([named, input, tested]);
  t.false(all.includes('SECRET'), all);
  t.is(all.split('it is a symbolic link that leads out of the directory').length, 4);
  t.true(all.includes(`'${secret}' is not named *.yaml or *.yml`));
  t.is(all.split('domain: own').length, 4, 'links inside are followed');
});
