// Every setting of the worker has a test of its effect, from its environment variable to a result that is visible from
// outside: a recorded case that sets it, or a test in test/ with its name in the title. A title may insert quoted names
// from a list, but only in test/feature/settings.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { toRows } from '../../shared/settings/setting.ts';
import { workerTable } from '../../worker/settings/table.ts';
import { readCaseFiles } from '../conformance/case-file.ts';
import { listFiles } from '../support/listed-files.ts';

const root = join(import.meta.dirname, '..', '..');
const recorded = new Set(
  readCaseFiles().flatMap(({ cases }) => cases.flatMap(({ env = {} }) => Object.keys(env))),
);
const names = /\btest\w*(?:\.serial)?\(\s*(['`])(.*?)\1|'([A-Z0-9_]+)'/gs;
const titled = new Set(
  listFiles('test/feature/*.test.ts', 'test/e2e/*.test.ts').flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(names)].flatMap(
      ([, , title, name = '']) =>
        title?.match(/\b[A-Z0-9_]+\b/g) ?? (file.includes('/settings/') ? [name] : []),
    ),
  ),
);

test('each setting is set by a recorded case or named in the title of a test', (t) => {
  const settings = toRows(workerTable).map((row) => row.setting.names as readonly string[]);
  t.true(settings.length > 100);
  t.deepEqual(
    settings.filter((own) => !own.some((name) => recorded.has(name) || titled.has(name))),
    [],
    'write a test in test/feature/settings/ with the name in its title',
  );
});
