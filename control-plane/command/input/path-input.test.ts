import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { createTemporaryFolder } from '../../../test/support/temporary-folder.ts';
import { readPathInput } from './path-input.ts';

test('more than a control plane serves deserves a warning, as workers that read files take it', async (t) => {
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
