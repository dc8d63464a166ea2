import test from 'ava';
import { pluck } from '../test/support/pluck.ts';
import { createRulesFolder } from '../test/support/rules-folder.ts';
import { listRulesFiles } from './rules-directory.ts';
import { defaultBounds } from './rules-file.ts';

test('when there are more files than allowed, none of them is checked', async (t) => {
  const { path, replace } = createRulesFolder(t);
  for (const name of ['a', 'b', 'c', 'd', 'e']) replace(`${name}.yaml`, '');
  const listing = await listRulesFiles({
    directory: path,
    beside: undefined,
    ignoreDotFiles: true,
    bounds: { ...defaultBounds, files: 3 },
  });
  t.deepEqual(pluck(listing.problems, 'message'), ['more than 3 files; nothing is read']);
  t.is(listing.signature, path);
});
