// Every setting is proven by a test that is there and that names the setting.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { toRows } from '../../shared/settings/setting.ts';
import { workerTable } from '../../worker/settings/table.ts';
import { type SettingProof, settingProofs } from './setting-proofs.ts';

const root = join(import.meta.dirname, '../..');
const settings = toRows(workerTable).map((row) => row.setting);

/** Why it is no proof; undefined when it is one. */
function findFault({ file, title }: SettingProof, names: readonly string[]): string | undefined {
  const path = join(root, file);
  if (!existsSync(path)) return `there is no ${file}`;
  const text = readFileSync(path, 'utf8');
  const place = file.endsWith('.json') ? findCase(text, title) : text.includes(title) && text;
  if (!place) return `${file} has no "${title}"`;
  const isNamed = names.some((name) => new RegExp(`(?<!\\w)${name}(?!\\w)`).test(place));
  return isNamed ? undefined : `"${title}" of ${file} names none of ${names.join(', ')}`;
}

/** A recorded case by its id. */
function findCase(text: string, id: string): string | undefined {
  const { cases }: { readonly cases: readonly { readonly id: string }[] } = JSON.parse(text);
  const found = cases.find((one) => one.id === id);
  return found && JSON.stringify(found);
}

test('every setting has one proof, in a test that is there and names it', (t) => {
  const faults = settings.flatMap((setting) => {
    const [proof, ...more] = settingProofs.filter(({ names }) => names.includes(setting.names[0]));
    const fault = proof ? findFault(proof, setting.names) : 'nothing proves it';
    return [fault, more.length > 0 ? 'it has several' : undefined]
      .filter((text) => text !== undefined)
      .map((text) => `${setting.names[0]}: ${text}`);
  });
  t.deepEqual(faults, []);
});

test('no proof is of a setting that does not exist', (t) => {
  const known = new Set<string>(settings.map(({ names }) => names[0]));
  t.deepEqual(
    settingProofs.flatMap(({ names }) => names.filter((name) => !known.has(name))),
    [],
  );
});

test('a proof whose file, title or setting is not there is found out', (t) => {
  const file = 'test/conformance/cases/tls.json';
  const names = ['GRPC_CLIENT_TLS_CACERT'];
  t.is(findFault({ file, title: 'tls-mutual', names }, names), undefined);
  t.is(
    findFault({ file: 'test/none.json', title: '', names }, names),
    'there is no test/none.json',
  );
  t.regex(findFault({ file, title: 'tls', names }, names) ?? '', /has no "tls"$/);
  t.regex(findFault({ file, title: 'tls-server', names }, names) ?? '', /names none of GRPC_/);
});
