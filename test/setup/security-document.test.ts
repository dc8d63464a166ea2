// SECURITY.md is one page: the files, tests and settings that it names exist, and each limit names its test.
// test/docs/proven-lines.test.ts checks that each line on rights has a test.
import { existsSync, readFileSync } from 'node:fs';
import test from 'ava';
import { controlPlaneTable } from '../../control-plane/server/settings/table.ts';
import { toRows } from '../../shared/settings/setting.ts';
import { workerTable } from '../../worker/settings/table.ts';

const root = new URL('../../', import.meta.url);
const text = readFileSync(new URL('SECURITY.md', root), 'utf8');

test('the files that SECURITY.md names are there', (t) => {
  const quoted = [...text.matchAll(/`([\w./-]+\/[\w.-]+\.ts)`/g)].map(([, path = '']) => path);
  const linked = [...text.matchAll(/\]\(([\w./-]+)\)/g)].map(([, path = '']) => path);
  t.true(quoted.length > 10);
  const missing = [...quoted, ...linked].filter((path) => !existsSync(new URL(path, root)));
  t.deepEqual(missing, []);
});

test('SECURITY.md is one page', (t) => {
  const words = text.trim().split(/\s+/).length;
  t.true(words <= 1_100, `${words} words`);
});

test('each bound of SECURITY.md names the test that proves it', (t) => {
  const [, section = ''] = text.split('## What is bounded');
  const rows = section.split('\n').filter((line) => /^\| (?!Surface)/.test(line));
  t.true(rows.length > 20);
  t.deepEqual(
    rows.filter((row) => !/ \| `[\w./-]+\.test\.ts`(?:, `[\w./-]+\.test\.ts`)* \|$/.test(row)),
    [],
  );
});

test('the settings that SECURITY.md names exist', (t) => {
  const known = new Set(
    [...toRows(workerTable), ...toRows(controlPlaneTable)].flatMap(({ setting }) => setting.names),
  );
  const named = [
    ...text.matchAll(/`(--(?:git|xds|admin|webhook|state)[a-z-]*[a-z])`/g),
    ...text.matchAll(/`([A-Z]+_[A-Z_]+[A-Z])(?:=[^`]*)?`/g),
  ].map(([, name = '']) => name);
  t.true(named.length > 5);
  t.deepEqual(
    named.filter((name) => !known.has(name)),
    [],
  );
});
