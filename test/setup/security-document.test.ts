// SECURITY.md tells others what holds: the files that it names have to be there, and its settings too.
import { existsSync, readFileSync } from 'node:fs';
import test from 'ava';
import { controlPlaneTable } from '../../control-plane/settings/table.ts';
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

test('the settings that SECURITY.md names exist', (t) => {
  const known = new Set(
    [...toRows(workerTable), ...toRows(controlPlaneTable)].flatMap(({ setting }) => setting.names),
  );
  const named = [
    ...text.matchAll(/`(--(?:git|xds|admin|webhook|state)[a-z-]*[a-z])`/g),
    ...text.matchAll(/`([A-Z]+_[A-Z_]+[A-Z])(?:=[^`]*)?`/g),
  ].map(([, name = '']) => name);
  t.true(named.length > 10);
  const ofNode = ['NODE_COMPILE_CACHE'];
  t.deepEqual(
    named.filter((name) => !known.has(name) && !ofNode.includes(name)),
    [],
  );
});
